// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// transitive_closure(): which vertex of a graph reaches which, on packed bits, in place, by blocked elimination on top of
// contract().
//
// As closure.hpp derives, blocks K of b vertices are eliminated one after the other by D ← D ∨ D(:,K) T D(K,:) with
// T = D(K,K)* and Boolean products. D's rows are packed, w bits per word. A Boolean product is then or_and on words if its
// left factor is expanded, each entry to a word of equal bits: word j of row i of the product is ⋁_k W(i,k) ∧ R(k,j), w pairs
// per instruction. Only a panel of b columns is ever expanded. For each block:
//
//     T = (D ∨ 1)(K,K)*, R = (D ∨ 1)(K,:)     one small kernel (detail/transitive_closure.hpp)
//     W = (D ∨ 1)(:,K) T, expanded            another
//     D = D ∨ W ∧ R                           contract, n × ⌈n/w⌉ × b
//
// The empty path, 1, is joined to the factors and reaches D through the product: for i in K, T(i,i) and R(i,i) are set, hence
// W(i,i), hence D(i,i). For these i it also makes W(i,:) = T(i,:).
//
// S. Warshall, A theorem on Boolean matrices, 1962.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/transitive_closure.hpp>

namespace rigel {

/// Options of transitive_closure().
struct TransitiveClosureOptions {
  std::int64_t block = 256;  // vertices eliminated at a time: a multiple of a word's bits, at most 512
  Batch batch = Batch::first;
  Promise require = Promise::none;  // of the contractions
  std::string_view kernel = {};     // of the contractions: a kernel's name or the leading part of it
  Workspace workspace = {};         // transitive_closure_workspace_size() bytes; else from Rigel's pool
};

namespace detail {

// Static checks, then what the driver takes, handed to `use`.
template <class Exec, class DView, class Use>
auto with_transitive_closure(const Exec& exec, const DView& d, const TransitiveClosureOptions& options, const Use& use) {
  using Word = typename DView::non_const_value_type;
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "transitive_closure: the first argument is a Kokkos execution space instance");
  static_assert(std::is_same_v<Word, std::uint32_t> || std::is_same_v<Word, std::uint64_t>,
                "transitive_closure: D holds packed bits, std::uint32_t or std::uint64_t");
  static_assert(!std::is_const_v<typename DView::value_type>,
                "transitive_closure: D is written, its elements cannot be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename DView::memory_space>::accessible,
                "transitive_closure: the execution space cannot access D");
  const or_and<Word> semiring;
  const epilogue::Program as_it_is;
  EliminateBlock own = nullptr;
  if constexpr (space_of<Exec> == Space::other) own = eliminate_block<type_list<Exec>, Word>;
  return use(contraction_on<Word>(
                 exec, semiring, {}, {}, operand_of(d, options.batch, "D"), as_it_is, {},
                 {.accumulate = true, .require = options.require, .kernel = options.kernel, .workspace = options.workspace},
                 "contract"),
             options.block, own);
}

}  // namespace detail

/// D ← D*, asynchronously on `exec`: D(l,i,j) = 1 if a path leads from vertex i to vertex j of graph l; the empty path from i
/// to i is one.
///
/// exec   any execution space instance
/// d      view of rank 2, n × ⌈n/w⌉, or 3 (with a batch of graphs), of any layout, of std::uint32_t or std::uint64_t,
///        w = 32 or 64 bits: bit j mod w (the lowest is bit 0) of word ⌊j/w⌋ of row i says whether there is an arc from i to j
/// The last word's bits beyond n are on no path. If all of them are zero they stay so, else they are unspecified.
/// Every kernel and every options.block give the same bits. The workspace holds one block of columns expanded to words.
/// Throws Error(invalid_argument) for a D of other extents or a block that is not a multiple of w, and as contract() does;
/// D is then unchanged.
template <class Exec, class DView>
void transitive_closure(const Exec& exec, const DView& d, const TransitiveClosureOptions& options = {}) {
  detail::with_transitive_closure(exec, d, options, detail::run_transitive_closure);
}

/// Bytes of workspace that the same call of transitive_closure() needs, in memory of the execution space, aligned to 256.
template <class Exec, class DView>
std::size_t transitive_closure_workspace_size(const Exec& exec, const DView& d,
                                              const TransitiveClosureOptions& options = {}) {
  return detail::with_transitive_closure(exec, d, options, detail::transitive_closure_bytes);
}

}  // namespace rigel
