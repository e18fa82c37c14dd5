// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The linear layer on every GPU of a machine: the same bits, in both tiers, while all of them work at once.
#include "layer.hpp"

#include <tests/support/compare.hpp>
#include <tests/support/skip.hpp>

#include <doctest/doctest.h>

#ifdef KOKKOS_ENABLE_CUDA
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

namespace {

using layer::Activation, layer::Values;
using rigel::Tier;

void require(cudaError_t status) { REQUIRE_MESSAGE(status == cudaSuccess, cudaGetErrorString(status)); }

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::CudaSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// One GPU: a stream, an instance on it, and the operands of a layer.
class Device {
 public:
  explicit Device(int number) : number_(number) {
    use();
    require(cudaStreamCreate(&stream_));
    exec_.emplace(stream_);
  }
  ~Device() {
    exec_.reset();
    if (cudaSetDevice(number_) != cudaSuccess) return;
    for (void* memory : memory_) cudaFree(memory);
    cudaStreamDestroy(stream_);
  }
  Device(const Device&) = delete;

  template <class T>
  Matrix<T> matrix(int rows, int columns, const Values& values) {
    std::vector<T> host;
    for (const double value : values) host.push_back(support::number<T>(value));
    host.resize(static_cast<std::size_t>(rows) * columns);
    use();
    void* memory = nullptr;
    require(cudaMalloc(&memory, host.size() * sizeof(T)));
    memory_.push_back(memory);
    require(cudaMemcpy(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return {static_cast<T*>(memory), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  }
  template <class T>
  Values values(const Matrix<T>& matrix) const {
    use();
    exec_->fence();
    std::vector<T> host(matrix.size());
    require(cudaMemcpy(host.data(), matrix.data(), host.size() * sizeof(T), cudaMemcpyDeviceToHost));
    Values list;
    for (const T& value : host) list.push_back(support::to_double(value));
    return list;
  }
  const Kokkos::Cuda& exec() const { return *exec_; }

 private:
  void use() const { require(cudaSetDevice(number_)); }
  int number_;
  cudaStream_t stream_ = nullptr;
  std::optional<Kokkos::Cuda> exec_;
  std::vector<void*> memory_;
};

template <class T>
void check(std::vector<std::unique_ptr<Device>>& devices, Tier tier) {
  const rigel::LinearOptions options{.tier = tier, .epilogue = Activation::gelu}, plain{.tier = tier};
  for (const auto [m, k, n] : {std::array{1, 512, 77}, {65, 1000, 256}, {1000, 768, 130}, {129, 4096, 128}}) {
    if (tier == Tier::tensor && sizeof(T) == 4 && std::min({m, k, n}) < 107) continue;  // sums that the tier does not cover
    struct Results {
      Matrix<T> y, dx;
      Matrix<float> dw, db;
    };
    std::vector<Results> results;
    const auto numbers = [](int rows, int columns, std::uint64_t seed) {
      return layer::random<T>(static_cast<std::size_t>(rows) * columns, seed);
    };
    for (const auto& device : devices) {
      const Matrix<T> x = device->matrix<T>(m, k, numbers(m, k, 1)), w = device->matrix<T>(k, n, numbers(k, n, 2)),
                      dy = device->matrix<T>(m, n, numbers(m, n, 3));
      Results r{device->matrix<T>(m, n, {}), device->matrix<T>(m, k, {}), device->matrix<float>(k, n, {}),
                device->matrix<float>(1, n, {})};
      rigel::linear_forward(device->exec(), x, w, rigel::no_bias, r.y, options);
      rigel::linear_backward_weight(device->exec(), x, dy, r.dw, r.db, plain);
      rigel::linear_backward_input(device->exec(), dy, w, r.dx, plain);
      results.push_back(r);
    }
    CAPTURE(m);
    for (std::size_t i = 1; i < devices.size(); ++i) {
      CAPTURE(i);
      CHECK(support::same(devices[i]->values(results[i].y), devices[0]->values(results[0].y)));
      CHECK(support::same(devices[i]->values(results[i].dx), devices[0]->values(results[0].dx)));
      CHECK(support::same(devices[i]->values(results[i].dw), devices[0]->values(results[0].dw)));
      CHECK(support::same(devices[i]->values(results[i].db), devices[0]->values(results[0].db)));
    }
  }
}

}  // namespace

TEST_CASE("linear: all GPUs of a machine give the same bits") {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) {
    support::skip("this machine has fewer than two GPUs");
    return;
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) devices.push_back(std::make_unique<Device>(i));
  check<float>(devices, Tier::scalar);
  check<rigel::bfloat16>(devices, Tier::scalar);
  check<rigel::half>(devices, Tier::scalar);
  check<float>(devices, Tier::tensor);
  check<rigel::bfloat16>(devices, Tier::tensor);
  check<rigel::half>(devices, Tier::tensor);
  require(cudaSetDevice(devices[0]->exec().cuda_device()));
}
#endif
