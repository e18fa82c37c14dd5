// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/solver/library.hpp>

#include <dlfcn.h>

#include <map>

namespace rigel::backends::solver {
namespace {

// The library of a name, or null with the reason.
void* open(const std::string& name, std::string& missing) {
  void* const found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!found) missing = name + " is not found (LD_LIBRARY_PATH says where to look for it)";
  return found;
}

template <class Function>
void load(void* from, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(from, name));
  if (!function && missing.empty()) missing = std::string("the library has no ") + name;
}

Library loaded() {
  Library l;
  void* const blas = open("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR), l.missing);
  void* const solver = blas ? open("libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR), l.missing) : nullptr;
  if (!solver) return l;
#define RIGEL_LOAD(name) load(solver, #name, l.name, l.missing);
  RIGEL_CUSOLVER_FUNCTIONS(RIGEL_LOAD)
#undef RIGEL_LOAD
#define RIGEL_LOAD(name) load(blas, #name, l.name, l.missing);
  RIGEL_CUBLAS_FUNCTIONS(RIGEL_LOAD)
#undef RIGEL_LOAD
  return l;
}

}  // namespace

const Library& library() {
  static const Library* const one = new Library(loaded());  // never destroyed: calls may come from static destructors
  return *one;
}

void check_library(int status, const char* function) {
  if (status != 0) throw Error(Code::device, std::string(function) + " returned status " + std::to_string(status));
}

Streams::Streams(cudaStream_t stream) {
  const Library& lib = library();
  for (int i = 0; i < count; ++i) {
    Handles& h = handles_[i];
    h.stream = stream;
    if (i > 0) cuda::check(cudaStreamCreateWithFlags(&h.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    cuda::check(cudaEventCreateWithFlags(&end_[i], cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check_library(lib.cusolverDnCreate(&h.solver), "cusolverDnCreate");
    check_library(lib.cusolverDnSetStream(h.solver, h.stream), "cusolverDnSetStream");
    check_library(lib.cusolverDnCreateParams(&h.parameters), "cusolverDnCreateParams");
  }
  check_library(lib.cublasCreate_v2(&handles_[0].blas), "cublasCreate");
  check_library(lib.cublasSetStream_v2(handles_[0].blas, stream), "cublasSetStream");
  cuda::check(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

Streams& Streams::of(int device, cudaStream_t stream) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<int, cudaStream_t>, std::unique_ptr<Streams>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Streams>& one = (*all)[{device, stream}];
  if (!one) one.reset(new Streams(stream));
  return *one;
}

void Streams::fork(int used) const {
  if (used <= 1) return;
  cuda::check(cudaEventRecord(begin_, handles_[0].stream), "cudaEventRecord");
  for (int i = 1; i < used; ++i) cuda::check(cudaStreamWaitEvent(handles_[i].stream, begin_, 0), "cudaStreamWaitEvent");
}

void Streams::join(int used) const {
  for (int i = 1; i < used; ++i) {
    cuda::check(cudaEventRecord(end_[i], handles_[i].stream), "cudaEventRecord");
    cuda::check(cudaStreamWaitEvent(handles_[0].stream, end_[i], 0), "cudaStreamWaitEvent");
  }
}

}  // namespace rigel::backends::solver
