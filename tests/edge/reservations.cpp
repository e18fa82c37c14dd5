// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The list of reserved blocks, on addresses that nothing reads: which part a captured call gets, and what release removes.
#include <src/reservations.hpp>

#include <doctest/doctest.h>

#include <vector>

using rigel::detail::Reservations, rigel::detail::StreamKey;

namespace {

constexpr StreamKey first{0, 7}, second{0, 8}, of_another_device{1, 7};
alignas(256) std::byte memory[4096];
std::byte* const larger = memory + 1024;  // 2048 bytes

// A handle for each stream.
const void* handle_of(StreamKey stream) { return memory + stream.id; }

}  // namespace

TEST_CASE("reservations: each stream has its own") {
  Reservations all;
  CHECK(all.bytes(first) == 0);
  CHECK(all.take(first, 1) == nullptr);
  REQUIRE(all.add(first, handle_of(first), memory, 1000));
  CHECK(all.bytes(first) == 1000);
  for (const StreamKey other : {second, of_another_device}) {
    CHECK(all.bytes(other) == 0);
    CHECK(all.take(other, 1) == nullptr);
  }
  CHECK(all.take(first, 1001) == nullptr);
  CHECK(all.take(first, 1000) == memory);
  all.give_back(memory);
  all.remove([](StreamKey) { return true; }, [](int, void*, std::size_t) {});
}

TEST_CASE("reservations: one call after the other gets the same part, nested ones get parts of their own") {
  Reservations all;
  REQUIRE(all.add(first, handle_of(first), memory, 1000));
  for (int call = 0; call < 3; ++call) {
    void* const outer = all.take(first, 300);
    CHECK(outer == memory);
    void* const inner = all.take(first, 400);
    CHECK(inner == memory + 512);  // the next multiple of 256
    CHECK(all.take(first, 100) == nullptr);
    all.give_back(inner);
    all.give_back(outer);
  }
  all.remove([](StreamKey) { return true; }, [](int, void*, std::size_t) {});
}

TEST_CASE("reservations: a larger block takes over, and the smaller one stays until all of the stream's are removed") {
  Reservations all;
  REQUIRE(all.add(first, handle_of(first), memory, 1000));
  REQUIRE(all.add(second, handle_of(second), memory + 3072, 1000));
  void* const before = all.take(first, 1000);
  REQUIRE(all.add(first, handle_of(first), larger, 2048));
  CHECK(all.bytes(first) == 2048);
  CHECK(all.take(first, 2048) == larger);
  all.give_back(larger);
  all.give_back(before);
  CHECK(all.take(first, 10) == larger);
  all.give_back(larger);

  std::vector<std::pair<void*, std::size_t>> removed;
  const auto remove = [&](StreamKey stream) {
    removed.clear();
    all.remove([&](StreamKey one) { return one == stream; },
               [&](int device, void* data, std::size_t bytes) {
                 CHECK(device == stream.device);
                 removed.emplace_back(data, bytes);
               });
  };
  remove(of_another_device);
  CHECK(removed.empty());
  remove(first);
  CHECK(removed == std::vector<std::pair<void*, std::size_t>>{{memory, 1000}, {larger, 2048}});
  CHECK(all.bytes(first) == 0);
  CHECK(all.bytes(second) == 1000);
  remove(second);
  CHECK(removed.size() == 1);
}

TEST_CASE("reservations: a handle finds the stream that was last seen to have it") {
  Reservations all;
  const void* const handle = handle_of(first);
  CHECK(!all.stream_of(0, handle, 0));
  REQUIRE(all.add(first, handle, memory, 1000));
  CHECK(all.stream_of(0, handle, 0) == first);
  CHECK(!all.stream_of(1, handle, 0));
  CHECK(!all.stream_of(0, handle_of(second), 0));
  all.see(first, handle);
  CHECK(all.stream_of(0, handle, 0) == first);
  all.see(of_another_device, handle);
  CHECK(all.stream_of(0, handle, 0) == first);
  // The stream is gone, and another one has its handle.
  all.see(second, handle);
  CHECK(!all.stream_of(0, handle, 0));
  CHECK(all.bytes(first) == 1000);
  REQUIRE(all.add(second, handle, larger, 2048));
  CHECK(all.stream_of(0, handle, 0) == second);
  all.remove([](StreamKey) { return true; }, [](int, void*, std::size_t) {});
  CHECK(!all.stream_of(0, handle, 0));
}

TEST_CASE("reservations: the default streams of threads have one handle and memory of their own") {
  constexpr StreamKey mine{0, 7, 1}, yours{0, 8, 2}, yours_on_another_device{1, 9, 2};
  const void* const handle = memory;
  Reservations all;
  REQUIRE(all.add(mine, handle, memory, 1000));
  CHECK(!all.stream_of(0, handle, 2));
  all.see(yours, handle);
  REQUIRE(all.add(yours, handle, larger, 2048));
  all.see(mine, handle);
  all.see(yours_on_another_device, handle);
  CHECK(all.stream_of(0, handle, 1) == mine);
  CHECK(all.stream_of(0, handle, 2) == yours);
  CHECK(all.take(mine, 1000) == memory);
  CHECK(all.take(yours, 1000) == larger);
  all.give_back(memory);
  all.give_back(larger);
  all.remove([](StreamKey) { return true; }, [](int, void*, std::size_t) {});
}
