// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of semirings, compiled at once.
#include "texts.hpp"

#include <rigel/detail/shared_work.hpp>
#include <rigel/runtime_compile.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <stdexcept>

using rigel::runtime::Semiring, rigel::runtime::statistics;

namespace {

std::vector<Semiring> semirings(int count, const std::string& factor) {
  std::vector<Semiring> list;
  for (int i = 0; i < count; ++i)
    list.push_back(Semiring(
        {.name = "of_list_" + std::to_string(i), .multiply = "a * b * " + factor + std::to_string(i), .add = "x + y"}));
  return list;
}

}  // namespace

TEST_CASE("text lists: each semiring is compiled once, progress counts them, and calls compile nothing more") {
  if (!texts::can_compile()) return;
  const auto before = statistics();
  std::vector<std::size_t> counts;
  std::set<std::string> names;
  const auto list = semirings(6, "1.2");
  rigel::runtime::compile<texts::Host>(
      list,
      [&](std::size_t done, std::size_t count, const Semiring& semiring) {
        CHECK(count == 6);
        counts.push_back(done);
        names.insert(semiring.name());
      },
      3);
  CHECK(counts == std::vector<std::size_t>{1, 2, 3, 4, 5, 6});
  CHECK(names.size() == 6);
  const auto after = statistics();
  CHECK(after.compiled + after.from_disk == before.compiled + before.from_disk + 6);
  CHECK(texts::product(list[5], 2.f, 3.f) == 6 * 1.25f);
  rigel::runtime::compile<texts::Host>(semirings(6, "1.2"));
  const auto last = statistics();
  CHECK(last.compiled == after.compiled);
  CHECK(last.from_memory == after.from_memory + 6);
  rigel::runtime::compile<texts::Host>({});
}

TEST_CASE("text lists: one that fails keeps none from being compiled") {
  if (!texts::can_compile()) return;
  const auto list = semirings(4, "2.5");
  int done = 0;
  const auto fails = [&](std::size_t, std::size_t, const Semiring& semiring) {
    ++done;
    if (semiring.name() == "of_list_1" || semiring.name() == "of_list_2") throw std::runtime_error(semiring.name());
  };
  CHECK_THROWS_WITH_AS(rigel::runtime::compile<texts::Host>(list, fails), "of_list_1", std::runtime_error);
  CHECK(done == 4);
  const auto before = statistics();
  CHECK(texts::product(list[3], 1.f, 1.f) == 2.53f);
  CHECK(statistics().compiled == before.compiled);
  const auto refused = support::caught([&] { rigel::runtime::compile<texts::Host>(list, {}, -1); });
  CHECK(refused.code == rigel::Code::invalid_argument);
  CHECK(refused.message == "runtime::compile: threads is -1, expected a number of threads, or 0");
}

TEST_CASE("shared work: each call is made once on any number of threads, and the error is that of the first") {
  for (const int threads : {0, 1, 3, 64}) {
    CAPTURE(threads);
    std::array<std::atomic<int>, 20> calls = {};
    const auto work = [&](std::size_t i) {
      ++calls[i];
      if (i % 7 == 5) throw std::runtime_error(std::to_string(i));
    };
    CHECK_THROWS_WITH_AS(rigel::detail::share_work(calls.size(), threads, work), "5", std::runtime_error);
    CHECK(std::all_of(calls.begin(), calls.end(), [](const auto& count) { return count == 1; }));
  }
  rigel::detail::share_work(0, 2, [](std::size_t) { FAIL("no call"); });
}
