// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The teams of kernels for devices, on a host.
#pragma once

#include <doctest/doctest.h>

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace support {

/// A team whose threads are coroutines of one host thread: each runs until it waits at a barrier, then the next one.
class Coroutines {
 public:
  // Calls work(rank) on each of `count` threads.
  Coroutines(int count, std::function<void(int)> work)
      : work_(std::move(work)),
        threads_(static_cast<std::size_t>(count)),
        stacks_(std::make_unique_for_overwrite<char[]>(stack_bytes * threads_.size())) {
    running_ = this;
    for (Thread& thread : threads_) {
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = stacks_.get() + stack_bytes * static_cast<std::size_t>(&thread - threads_.data());
      thread.context.uc_stack.ss_size = stack_bytes;
      thread.context.uc_link = &scheduler_;
      makecontext(&thread.context, [] { running_->start(); }, 0);
    }
    for (std::size_t ended = 0; ended < threads_.size();) {
      ended = 0;
      for (at_ = 0; at_ < threads_.size(); ++at_) {
        swapcontext(&scheduler_, &threads_[at_].context);
        ended += threads_[at_].ended;
      }
      if (ended != 0 && ended != threads_.size()) FAIL("a thread ended while others wait at a barrier");
    }
  }
  // The running thread waits for all others.
  static void wait() { swapcontext(&running_->threads_[running_->at_].context, &running_->scheduler_); }

 private:
  static constexpr std::size_t stack_bytes = 128 * 1024;
  struct Thread {
    ucontext_t context;
    bool ended = false;
  };
  void start() {
    work_(static_cast<int>(at_));
    threads_[at_].ended = true;
  }

  static inline Coroutines* running_ = nullptr;
  std::function<void(int)> work_;
  std::vector<Thread> threads_;
  std::unique_ptr<char[]> stacks_;
  ucontext_t scheduler_{};
  std::size_t at_ = 0;
};

/// What the kernels ask of a Kokkos team. Its scratch memory is full of old values.
class Team {
 public:
  Team(int rank, int league_rank, int league_size, std::vector<std::byte>& scratch)
      : rank_(rank), league_rank_(league_rank), league_size_(league_size), scratch_(&scratch) {}

  int team_rank() const { return rank_; }
  int league_rank() const { return league_rank_; }
  int league_size() const { return league_size_; }
  void team_barrier() const { Coroutines::wait(); }
  const Team& team_scratch(int) const { return *this; }
  void* get_shmem_aligned(std::size_t bytes, std::size_t alignment) const {
    void* first = scratch_->data();
    std::size_t space = scratch_->size();
    return std::align(alignment, bytes, first, space);
  }

 private:
  int rank_, league_rank_, league_size_;
  std::vector<std::byte>* scratch_;
};

/// Fewer teams than pieces of work, so that a team takes several.
template <class Work>
void run(const Work& work, int threads, std::size_t bytes) {
  constexpr int league_size = 2;
  for (int league_rank = 0; league_rank < league_size; ++league_rank) {
    std::vector<std::byte> scratch(bytes, std::byte{0xa5});
    Coroutines(threads, [&](int rank) { work(Team(rank, league_rank, league_size, scratch)); });
  }
}

}  // namespace support
