// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.hpp"

#include "spaces.hpp"

namespace support {
namespace {

template <class Space>
using Bytes = Kokkos::View<unsigned char*, Space, Kokkos::MemoryUnmanaged>;
template <class Space>
using ConstBytes = Kokkos::View<const unsigned char*, Space, Kokkos::MemoryUnmanaged>;

}  // namespace

template <class Exec>
void copy_in(void* to, const void* from_host, std::size_t bytes) {
  Kokkos::fence();
  Kokkos::deep_copy(Bytes<typename Exec::memory_space>(static_cast<unsigned char*>(to), bytes),
                    ConstBytes<Kokkos::HostSpace>(static_cast<const unsigned char*>(from_host), bytes));
}
template <class Exec>
void copy_out(void* to_host, const void* from, std::size_t bytes) {
  Kokkos::fence();
  Kokkos::deep_copy(Bytes<Kokkos::HostSpace>(static_cast<unsigned char*>(to_host), bytes),
                    ConstBytes<typename Exec::memory_space>(static_cast<const unsigned char*>(from), bytes));
}

// All spaces of the build.
template <class... Exec>
struct Instantiate {
  static constexpr void (*in[])(void*, const void*, std::size_t) = {copy_in<Exec>...};
  static constexpr void (*out[])(void*, const void*, std::size_t) = {copy_out<Exec>...};
};
template struct Instantiate<RIGEL_TEST_SPACES>;

}  // namespace support
