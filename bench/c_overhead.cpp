// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call through the C interface costs beyond the same call in C++: the smallest product, with an epilogue, by the kernel that
// both choose. On a host the call includes its work; on a GPU it is the time to enqueue it. Rounds of C++ and C alternate.
//
// usage: bench_c_overhead      (OMP_NUM_THREADS=1 takes the threads' start out of both)
#include <rigel/rigel.h>
#include <rigel/contract.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int rounds = 101, calls = 100;

double median(std::vector<double> list) {
  std::ranges::nth_element(list, list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2));
  return list[list.size() / 2];
}

// Nanoseconds of a call, on average over a round. `wait` is outside.
template <class Call, class Wait>
double time(const Call& call, const Wait& wait) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const auto end = std::chrono::steady_clock::now();
  wait();
  return std::chrono::duration<double, std::nano>(end - begin).count() / calls;
}

void require(rigel_code code) {
  if (code == RIGEL_OK) return;
  std::fprintf(stderr, "%s\n", rigel_last_error());
  std::exit(1);
}

template <class Exec>
void compare(const Exec& exec, int device, void* stream) {
  constexpr int n = 4;
  const Kokkos::View<float**, Kokkos::LayoutRight, typename Exec::memory_space> a("a", n, n), b("b", n, n), c("c", n, n);
  rigel_handle* handle = nullptr;
  require(rigel_create(device, stream, &handle));
  const rigel_matrix of_a = RIGEL_ROW_MAJOR(a.data(), RIGEL_F32, n, n), of_b = RIGEL_ROW_MAJOR(b.data(), RIGEL_F32, n, n),
                     of_c = RIGEL_ROW_MAJOR(c.data(), RIGEL_F32, n, n);
  rigel_contract_args args = {};
  args.size = sizeof args;
  args.semiring = "min_plus";
  args.epilogue.steps_count = 1;
  args.epilogue.steps[0].kind = RIGEL_SCALE;
  args.epilogue.steps[0].x = 2;
  const auto in_cpp = [&] { rigel::contract(exec, rigel::min_plus<float>{}, a, b, c, rigel::epilogue::scale(2)); };
  const auto in_c = [&] { require(rigel_contract(handle, &args, &of_a, &of_b, &of_c)); };
  const auto wait = [&] {
    exec.fence();
    require(rigel_synchronize(handle));
  };
  in_cpp();
  in_c();
  wait();
  std::vector<double> cpp, plain_c, beyond;
  for (int round = 0; round < rounds; ++round) {
    cpp.push_back(time(in_cpp, wait));
    plain_c.push_back(time(in_c, wait));
    beyond.push_back(plain_c.back() - cpp.back());
  }
  std::printf("%-8s C++ %8.0f ns, C %8.0f ns, beyond %6.0f ns a call (medians of %d rounds of %d calls)\n", exec.name(),
              median(cpp), median(plain_c), median(beyond), rounds, calls);
  rigel_destroy(handle);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  compare(Kokkos::DefaultHostExecutionSpace(), -1, nullptr);
#ifdef KOKKOS_ENABLE_CUDA
  cudaStream_t stream{};
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  {
    const Kokkos::Cuda exec(stream);
    compare(exec, exec.cuda_device(), stream);
  }
  cudaStreamDestroy(stream);
#endif
}
