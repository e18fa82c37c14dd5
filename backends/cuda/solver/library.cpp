// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/solver/library.hpp>
#include <rigel/detail/capture.hpp>

#include <dlfcn.h>

#include <map>
#include <thread>
#include <tuple>

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

void check_library(const Solve& p, int status, const char* function) {
  if (status != 0)
    throw Error(Code::device, std::string(p.function) + ": " + function + " returned status " + std::to_string(status) +
                                  " for " + p.summary());
}

namespace {

void check(const Solve& p, cudaError_t status, const char* function) {
  if (status != cudaSuccess) cuda::check(status, std::string(p.function) + ": " + function);
}

}  // namespace

void Streams::make(const Solve& p) {
  const Library& lib = library();
  for (int i = 0; i < count; ++i) {
    Handles& h = handles_[i];
    h.stream = static_cast<cudaStream_t>(p.execution.stream);
    if (i > 0) check(p, cudaStreamCreateWithFlags(&h.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(p, cudaEventCreateWithFlags(&end_[i], cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check_library(p, lib.cusolverDnCreate(&h.solver), "cusolverDnCreate");
    check_library(p, lib.cusolverDnSetStream(h.solver, h.stream), "cusolverDnSetStream");
    check_library(p, lib.cusolverDnCreateParams(&h.parameters), "cusolverDnCreateParams");
  }
  check_library(p, lib.cublasCreate_v2(&handles_[0].blas), "cublasCreate");
  check(p, cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

// The handles are told which stream has the address that they know.
void Streams::take(const Solve& p) {
  unsigned long long id = 0;
  check(p, cudaStreamGetId(handles_[0].stream, &id), "cudaStreamGetId");
  if (id_ == id) return;
  const Library& lib = library();
  check_library(p, lib.cusolverDnSetStream(handles_[0].solver, handles_[0].stream), "cusolverDnSetStream");
  check_library(p, lib.cublasSetStream_v2(handles_[0].blas, handles_[0].stream), "cublasSetStream");
  id_ = id;
}

// Of handles that could not all be made; the others stay.
Streams::~Streams() {
  const Library& lib = library();
  for (int i = 0; i < count; ++i) {
    const Handles& h = handles_[i];
    if (h.parameters) lib.cusolverDnDestroyParams(h.parameters);
    if (h.solver) lib.cusolverDnDestroy(h.solver);
    if (h.blas) lib.cublasDestroy_v2(h.blas);
    if (end_[i]) cudaEventDestroy(end_[i]);
    if (i > 0 && h.stream) cudaStreamDestroy(h.stream);
  }
  if (begin_) cudaEventDestroy(begin_);
}

Streams& Streams::of(const Solve& p) {
  using Key = std::tuple<int, cudaStream_t, std::thread::id>;
  static std::mutex mutex;
  static auto* const all = new std::map<Key, std::unique_ptr<Streams>>;
  const auto stream = static_cast<cudaStream_t>(p.execution.stream);
  // The handle of each thread's own default stream is the same for all threads.
  const auto owner = stream == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id{};
  const Key key{p.execution.device, stream, owner};
  const bool captured = detail::is_captured(p.execution, p.function);
  Streams* known = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = all->find(key); found != all->end()) {
      known = found->second.get();
    } else if (!captured) {
      std::unique_ptr<Streams> one(new Streams);
      one->make(p);
      one->take(p);
      return *all->emplace(key, std::move(one)).first->second;
    }
  }
  if (!known)
    throw Error(Code::unsupported,
                std::string(p.function) +
                    ": the handles of cuSOLVER cannot be made while the stream is being captured; expected "
                    "a call on it, or of workspace_size(), before the capture");
  if (!captured) {
    const auto used =
        known->lock();  // which another thread's call may hold, without keeping calls on other streams from theirs
    known->take(p);
  }
  return *known;
}

Fork::Fork(const Solve& p, const Streams& streams, int used, bool waits)
    : p_(p), streams_(streams), used_(1), waits_(waits) {
  if (used <= 1) return;
  check(p, cudaEventRecord(streams.begin_, streams[0].stream), "cudaEventRecord");
  for (; used_ < used; ++used_)
    if (const cudaError_t status = cudaStreamWaitEvent(streams[used_].stream, streams.begin_, 0); status != cudaSuccess) {
      end();  // those that are forked
      check(p, status, "cudaStreamWaitEvent");
    }
}

Fork::~Fork() {
  if (!joined_) end();
}

void Fork::join() {
  joined_ = true;
  check(p_, end(), "joining streams");
}

// Goes on after an error, and returns the first one.
cudaError_t Fork::end() {
  cudaError_t first = cudaSuccess;
  const auto note = [&](cudaError_t status) { first = first == cudaSuccess ? status : first; };
  const cudaStream_t caller = streams_[0].stream;
  for (int i = 1; i < used_; ++i) {
    note(cudaEventRecord(streams_.end_[i], streams_[i].stream));
    note(cudaStreamWaitEvent(caller, streams_.end_[i], 0));
  }
  if (waits_) note(cudaStreamSynchronize(caller));
  return first;
}

}  // namespace rigel::backends::solver
