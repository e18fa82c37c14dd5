// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that presize() reserves, as a list of blocks: which block a captured call gets, and which part of it. It allocates
// and frees none of that memory.
#pragma once

#include <rigel/detail/workspace.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace rigel::detail {

/// A stream. CUDA never uses an id twice, unlike a stream's handle; but it tells the id only while the stream is not being captured.
struct StreamKey {
  int device = -1;
  unsigned long long id = 0;
  std::uint64_t thread = 0;  // whose default stream it is: those of all threads have one handle. 0: any thread's
  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};

/// Blocks of several streams, the newest first. Any thread may call any member at any time.
class Reservations {
 public:
  struct Block {
    StreamKey stream;
    const void* handle = nullptr;  // the stream's
    bool has_handle = true;        // another stream has got it otherwise
    std::byte* memory = nullptr;
    std::size_t bytes = 0, used = 0;
    int parts = 0;  // in use
    Block* next = nullptr;
  };

  /// Bytes of the stream's newest block, 0 if it has none.
  std::size_t bytes(StreamKey stream) {
    const std::lock_guard lock(mutex_);
    const Block* block = newest(stream);
    return block ? block->bytes : 0;
  }

  /// Adds a block, which take() then uses in place of the stream's earlier ones. These stay, since graphs may hold their addresses.
  /// False if there is no memory for the list.
  bool add(StreamKey stream, const void* handle, void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block* const block = new (std::nothrow)
        Block{.stream = stream, .handle = handle, .memory = static_cast<std::byte*>(memory), .bytes = bytes, .next = first_};
    if (block) first_ = block;
    return block != nullptr;
  }

  /// The stream that had this handle when it was last seen, if it has blocks.
  std::optional<StreamKey> stream_of(int device, const void* handle, std::uint64_t thread) {
    const std::lock_guard lock(mutex_);
    for (Block* block = first_; block; block = block->next)
      if (block->has_handle && block->handle == handle && block->stream.device == device && block->stream.thread == thread)
        return block->stream;
    return std::nullopt;
  }

  /// The handle is that of `stream` now: blocks of streams that had it before serve no call any more.
  void see(StreamKey stream, const void* handle) {
    const std::lock_guard lock(mutex_);
    for (Block* block = first_; block; block = block->next)
      if (block->handle == handle && block->stream.device == stream.device && block->stream.thread == stream.thread &&
          block->stream != stream)
        block->has_handle = false;
  }

  /// A part of the stream's newest block, apart from the parts that are in use; null if no such part has `bytes` bytes. The next
  /// call on the stream may get the same part: stream order keeps the two apart.
  void* take(StreamKey stream, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block* const block = newest(stream);
    if (!block || block->bytes - block->used < bytes) return nullptr;
    std::byte* const part = block->memory + block->used;
    const std::size_t left = block->bytes - block->used;
    block->used += aligned(bytes) < left ? aligned(bytes) : left;
    ++block->parts;
    return part;
  }

  /// Ends the use of a part.
  void give_back(const void* part) {
    const std::lock_guard lock(mutex_);
    for (Block* block = first_; block; block = block->next)
      if (part >= block->memory && part < block->memory + block->bytes) {
        if (--block->parts == 0) block->used = 0;
        return;
      }
  }

  /// Removes the blocks for which `is_one(stream)` holds, and hands the memory of each to `release(device, memory, bytes)`.
  template <class IsOne, class Release>
  void remove(const IsOne& is_one, const Release& release) {
    Block* removed = nullptr;
    {
      const std::lock_guard lock(mutex_);
      for (Block** link = &first_; *link;) {
        Block* const block = *link;
        if (!is_one(block->stream)) {
          link = &block->next;
          continue;
        }
        *link = block->next;
        block->next = std::exchange(removed, block);
      }
    }
    while (removed) {
      Block* const block = std::exchange(removed, removed->next);
      release(block->stream.device, static_cast<void*>(block->memory), block->bytes);
      delete block;
    }
  }

 private:
  Block* newest(StreamKey stream) const {
    for (Block* block = first_; block; block = block->next)
      if (block->stream == stream) return block;
    return nullptr;
  }

  std::mutex mutex_;
  Block* first_ = nullptr;
};

static_assert(std::is_trivially_destructible_v<Reservations>, "leases may come after the destructors of all static objects");

}  // namespace rigel::detail
