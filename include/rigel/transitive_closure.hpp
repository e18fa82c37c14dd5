// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// transitive_closure(): which vertices of a graph can be reached from which, on packed bits, in place, by blocked
// elimination over contract().
//
// As closure.hpp derives, one block K of b vertices after the other is eliminated by D ← D ∨ D(:,K) T D(K,:) with
// T = D(K,K)*, where products are Boolean. D's rows are packed, w bits a word. So a Boolean product is or_and on words if
// its left factor is expanded, an entry becoming a word of equal bits: word j of row i of the product is
// ⋁_k W(i,k) ∧ R(k,j), w pairs an instruction. Only a panel of b columns is ever expanded. For each block:
//
//     T = (D ∨ 1)(K,K)*, R = (D ∨ 1)(K,:)     one small kernel (detail/transitive_closure.hpp)
//     W = (D ∨ 1)(:,K) T, expanded            another
//     D = D ∨ W ∧ R                           contract, n × ⌈n/w⌉ × b
//
// The empty path, 1, joined to the factors reaches D by the product: T(i,i) and R(i,i) are set for i in K, hence W(i,i),
// hence D(i,i). With it W(i,:) = T(i,:) there.
//
// S. Warshall, A theorem on Boolean matrices, 1962.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/transitive_closure.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>

namespace rigel {

struct TransitiveClosureOptions {
  std::int64_t block = 256;  // vertices eliminated at a time: a multiple of a word's bits, at most 512
  Batch batch = Batch::first;
  Promise require = Promise::none;  // of the contractions
  std::string_view kernel = {};     // of the contractions: a kernel's name or the leading part of it
  Workspace workspace = {};         // transitive_closure_workspace_size() bytes; else from Rigel's pool
};

namespace detail {

// Everything of one call: checks, workspace, the sequence of launches.
template <class Exec, class Word>
class TransitiveClosure {
 public:
  using Data = ReachabilityData<Word>;

  TransitiveClosure(const Exec& exec, const Operand& d, const TransitiveClosureOptions& options)
      : exec_(exec),
        options_(options),
        data_{d.batches, d.rows, words_of(d.rows), strided_in<Word>(d), {}, {}, {}},
        block_(std::min(options.block, data_.words * Data::bits)) {
    const auto refuse = [](const std::string& text) { throw Error(Code::invalid_argument, "transitive_closure: " + text); };
    const std::string bits = std::to_string(Data::bits);
    if (d.columns != data_.words) {
      Operand expected = d;
      expected.columns = data_.words;
      refuse("D " + describe(d) + ", expected " + extents(expected) + ": rows of " + std::to_string(d.rows) +
             " bits in words of " + bits);
    }
    if (options.block < 1 || options.block > Data::max_block || options.block % Data::bits != 0)
      refuse("options.block is " + std::to_string(options.block) + ", expected a multiple of " + bits + " up to " +
             std::to_string(Data::max_block));
    // D does not overlap itself: the checks of a product of nothing that is written to D.
    Problem product;
    product.batch = d.batches;
    product.m = product.a.rows = d.rows;
    product.n = product.b.columns = d.columns;
    product.c = d;
    product.names = {"transitive_closure", "A", "B", "D"};
    validate(product);
  }

  /// Bytes of the closure's own arrays, and of the contractions' workspace behind them. With a base: places them.
  std::size_t place(std::uintptr_t base = 0) {
    if (data_.batches == 0 || data_.n == 0) return 0;
    std::uintptr_t end = base;
    // By rows, each of them aligned to vectors.
    const auto take = [&](Strided<Word>& m, std::int64_t rows, std::int64_t columns) {
      const std::int64_t pitch = (columns + 3) / 4 * 4;
      m = {reinterpret_cast<Word*>(end), rows * pitch, pitch, 1};
      end += (sizeof(Word) * data_.batches * rows * pitch + 255) / 256 * 256;
    };
    take(data_.square, block_, words_of(block_));
    take(data_.left, data_.n, block_);
    take(data_.right, block_, data_.words);
    inner_ = {reinterpret_cast<void*>(end), 0};
    // All blocks are alike but the last.
    for (const std::int64_t b : {std::min(block_, data_.n), (data_.n - 1) % block_ + 1})
      contraction(b, [&](const auto&... arguments) {
        with_problem(arguments..., [&](const Problem& p) {
          const Kernel& kernel = select(p);
          if (kernel.workspace) inner_.bytes = std::max(inner_.bytes, kernel.workspace(kernel.info, p));
        });
      });
    return end - base + inner_.bytes;
  }

  void run() {
    if (data_.batches == 0 || data_.n == 0) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::transitive_closure");
    const CallMemory memory("transitive_closure", execution_of(exec_), options_.workspace, place());
    place(memory.address());
    for (std::int64_t k0 = 0; k0 < data_.n; k0 += block_) {
      const std::int64_t b = std::min(block_, data_.n - k0);
      reachability_diagonal(exec_, data_, k0, b);
      reachability_expand(exec_, data_, k0, b);
      contraction(b, [](const auto&... arguments) { contract(arguments...); });
    }
  }

 private:
  static std::int64_t words_of(std::int64_t n) { return (n + Data::bits - 1) / Data::bits; }

  // D = D ∨ W ∧ R for a block of b vertices, handed to `use` as contract()'s arguments.
  template <class Use>
  void contraction(std::int64_t b, const Use& use) const {
    const auto matrix = [&](const Strided<Word>& m, std::int64_t rows, std::int64_t columns) {
      return batch_of<Exec>(m, data_.batches, rows, columns);
    };
    const ContractOptions options{
        .accumulate = true, .require = options_.require, .kernel = options_.kernel, .workspace = inner_};
    use(exec_, or_and<Word>{}, matrix(data_.left, data_.n, b), matrix(data_.right, b, data_.words),
        matrix(data_.d, data_.n, data_.words), epilogue::Program{}, options);
  }

  const Exec& exec_;
  TransitiveClosureOptions options_;
  Data data_;
  std::int64_t block_;
  Workspace inner_;
};

// Static checks, then the object that runs the call.
template <class Exec, class DView>
auto transitive_closure_of(const Exec& exec, const DView& d, const TransitiveClosureOptions& options) {
  using Word = typename DView::non_const_value_type;
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "transitive_closure: the first argument is a Kokkos execution space instance");
  static_assert(std::is_same_v<Word, std::uint32_t> || std::is_same_v<Word, std::uint64_t>,
                "transitive_closure: D holds packed bits, std::uint32_t or std::uint64_t");
  static_assert(!std::is_const_v<typename DView::value_type>,
                "transitive_closure: D is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename DView::memory_space>::accessible,
                "transitive_closure: the execution space cannot access D");
  return TransitiveClosure<Exec, Word>(exec, operand_of(d, options.batch), options);
}

}  // namespace detail

/// D ← D*, asynchronously on `exec`: D(l,i,j) = 1 where a path leads from vertex i to vertex j of graph l; the empty path
/// from i to i is one.
///
/// exec   any execution space instance
/// d      view of rank 2, n × ⌈n/w⌉, or 3 (with a batch of graphs), of any layout, of std::uint32_t or std::uint64_t,
///        w = 32 or 64 bits: bit j mod w, the lowest first, of word ⌊j/w⌋ of row i says whether there is an arc from i to j
/// The last word's bits beyond n lie on no path. Where all of them are zero they stay so, else they are unspecified.
/// Every kernel and every options.block give the same bits. The workspace holds one block of columns expanded to words.
/// Throws Error(invalid_argument) for a D of other extents or a block that is no multiple of w, and as contract() does;
/// D is then as it was.
template <class Exec, class DView>
void transitive_closure(const Exec& exec, const DView& d, const TransitiveClosureOptions& options = {}) {
  detail::transitive_closure_of(exec, d, options).run();
}

/// Bytes of workspace that the same call of transitive_closure() needs, in memory of the execution space, aligned to 256.
template <class Exec, class DView>
std::size_t transitive_closure_workspace_size(const Exec& exec, const DView& d,
                                              const TransitiveClosureOptions& options = {}) {
  return detail::transitive_closure_of(exec, d, options).place();
}

}  // namespace rigel
