// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist(): D(l,m,n) = metric(X(l,m,:), Z(l,n,:)), the distances between the rows of two matrices, as one contract() with a
// semiring and an epilogue of the closed set, so that compiled kernels do all of it.
#pragma once

#include <rigel/contract.hpp>

#include <cmath>
#include <limits>

namespace rigel {

struct CdistOptions {
  bool skip_epilogue = false;  // leave out the metric's own last step: the sum of squares, not its root
  Batch batch = Batch::first;
  Promise require = Promise::none;               // only kernels that promise this are considered
  Precision precision = Precision::accumulator;  // the least that terms are rounded to
  bool may_cancel = false;                       // Euclidean: errors may be relative to the lines' norms, see cdist()
  std::string_view kernel = {};                  // a kernel's name or the leading part of it
  Workspace workspace = {};                      // cdist_workspace_size() bytes; else from the instance's pool
};

/// Metrics. One is a struct with `with<Element>(K, use)`, which returns use(semiring, program): what is accumulated over
/// the K coordinates, and what then makes a distance of it. Others of the same form are as good.
namespace metric {

/// Σ_k |x_k − z_k|.
struct manhattan {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l1<Element>{}, epilogue::Program{});
  }
};

/// Σ_k (x_k − z_k)².
struct squared_euclidean {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l2_squared<Element>{}, epilogue::Program{});
  }
};

/// (Σ_k (x_k − z_k)²)^½.
struct euclidean {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l2_squared<Element>{}, epilogue::pow(0.5));
  }
};

/// max_k |x_k − z_k|.
struct chebyshev {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(linf<Element>{}, epilogue::Program{});
  }
};

/// Σ_k x_k·z_k: the inner product, a similarity.
struct inner_product {
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(plus_times<Element>{}, epilogue::Program{});
  }
};

/// #{k : x_k ≠ z_k} / K; the count alone with skip_epilogue.
struct hamming {
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return use(rigel::hamming<Element>{}, epilogue::scale(1 / static_cast<double>(k)));
  }
};

/// Σ_k |x_k ⊻ z_k| / (bits of K words), |·| the number of set bits: the part of the bits in which two codes differ. The count
/// alone with skip_epilogue, which D may then hold as integers. X and Z hold words of 8, 32 or 64 bits.
struct bit_hamming {
  static constexpr bool takes_words = true;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return use(rigel::bit_hamming<Element>{}, epilogue::scale(1 / (8.0 * sizeof(Element) * static_cast<double>(k))));
  }
};

/// 1 − Σ_k |x_k ∧ z_k| / Σ_k |x_k ∨ z_k|, 0 of two empty sets: bits are members of sets (P. Jaccard, The distribution of the
/// flora in the alpine zone, 1912). In float; X and Z as for bit_hamming.
struct bit_jaccard {
  static constexpr bool takes_words = true;
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(rigel::bit_jaccard<Element>{}, epilogue::Program{});
  }
};

/// (Σ_k |x_k − z_k|^p)^(1/p) for any p > 0 (a metric from p = 1 on), the largest |x_k − z_k| for p = ∞ (H. Minkowski,
/// Geometrie der Zahlen, 1896). p = 1, 2 and ∞ are manhattan, euclidean and chebyshev; integers take no other p.
struct minkowski {
  double p = 2;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    if (!(p > 0)) throw Error(Code::invalid_argument, "cdist: minkowski's p is " + std::to_string(p) + ", expected p > 0");
    if (p == 1) return manhattan{}.template with<Element>(k, use);
    if (p == 2) return euclidean{}.template with<Element>(k, use);
    if (p == std::numeric_limits<double>::infinity()) return chebyshev{}.template with<Element>(k, use);
    using Accumulator = accumulator_for<Element>;
    if constexpr (std::is_floating_point_v<Accumulator>) {
      lp<Element> s;
      s.p = static_cast<Accumulator>(p);
      return use(s, epilogue::pow(1 / p));
    } else {
      throw Error(Code::unsupported, "cdist: minkowski's p is " + std::to_string(p) +
                                         ", expected 1, 2 or infinity for integers; floating-point numbers take any p > 0");
    }
  }
};

}  // namespace metric

namespace detail {

// Whether a metric is one of codes, packed in words.
template <class M>
inline constexpr bool takes_words = false;
template <class M>
  requires requires { M::takes_words; }
inline constexpr bool takes_words<M> = M::takes_words;

// Rigel's type for what a view holds: its own 16-bit floats for Kokkos's, one name for integers of one width.
template <class T>
constexpr auto element_for() {
  constexpr Scalar scalar = scalar_of_value<T>();
  if constexpr (scalar == Scalar::f16)
    return std::type_identity<half>{};
  else if constexpr (scalar == Scalar::bf16)
    return std::type_identity<bfloat16>{};
  else if constexpr (scalar == Scalar::u8)
    return std::type_identity<std::uint8_t>{};
  else if constexpr (scalar == Scalar::i64)
    return std::type_identity<std::int64_t>{};
  else if constexpr (scalar == Scalar::u64)
    return std::type_identity<std::uint64_t>{};
  else
    return std::type_identity<T>{};
}

inline void validate_cdist(const Operand& x, const Operand& z, const Operand& d) {
  const auto describe = [](const char* name, const Operand& o, const char* is = " ") {
    std::string text = std::string(name) + " '" + o.label + "'" + is;
    if (o.batches != 1) text += std::to_string(o.batches) + 'x';
    return text + std::to_string(o.rows) + 'x' + std::to_string(o.columns);
  };
  const auto refuse = [&](const char* name, const Operand& o, const std::string& expected) {
    throw Error(Code::invalid_argument, "cdist: " + describe(name, o, " is ") + ", expected " + expected);
  };
  if (z.columns != x.columns) refuse("Z", z, std::to_string(x.columns) + " columns to match " + describe("X", x));
  if (d.rows != x.rows) refuse("D", d, std::to_string(x.rows) + " rows to match the rows of " + describe("X", x));
  if (d.columns != z.rows) refuse("D", d, std::to_string(z.rows) + " columns to match the rows of " + describe("Z", z));
  const std::string batches = std::to_string(d.batches) + " batches or one to match " + describe("D", d);
  if (x.batches != d.batches && x.batches != 1) refuse("X", x, batches);
  if (z.batches != d.batches && z.batches != 1) refuse("Z", z, batches);
}

// Hands `use` the arguments of the contract() that a cdist() is.
template <class Exec, class X, class Z, class D, class M, class E, class Use>
auto with_cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last,
                const CdistOptions& options, const Use& use) {
  using T = typename view_t<X>::non_const_value_type;
  using Element = typename decltype(element_for<T>())::type;
  constexpr Scalar type = scalar_of_value<T>();
  constexpr bool is_word = type == Scalar::u8 || type == Scalar::u32 || type == Scalar::u64;
  if constexpr (takes_words<M>)
    static_assert(is_word, "cdist: this metric is one of bits, X holds words of them: u8, u32 or u64");
  else
    static_assert(
        type != Scalar::other && (!is_word || type == Scalar::u8),
        "cdist: X holds numbers: f16, bf16, f32, f64, i8, u8, i32 or i64; words of bits have metrics of their own");
  static_assert(holds<typename view_t<Z>::non_const_value_type, Element>, "cdist: X and Z hold the same type");
  const Operand rows = operand_of(x, options.batch);
  validate_cdist(rows, operand_of(z, options.batch), operand_of(d, options.batch));
  const ContractOptions contraction{.batch = options.batch,
                                    .require = options.require,
                                    .precision = options.precision,
                                    .may_cancel = options.may_cancel,
                                    .kernel = options.kernel,
                                    .workspace = options.workspace};
  return metric.template with<Element>(rows.columns, [&](const auto& semiring, epilogue::Program own) {
    if (options.skip_epilogue) own = {};
    if (std::is_integral_v<typename view_t<D>::value_type> && !own.empty())
      throw Error(Code::unsupported, "cdist: D '" + operand_of(d, options.batch).label +
                                         "' holds integers, expected floating-point numbers for this metric, or "
                                         "options.skip_epilogue");
    if constexpr (std::is_same_v<E, epilogue::Program>)
      return use(exec, semiring, x, transposed(z), d, own | last, contraction);
    else
      return use(exec, semiring, x, transposed(z), d, epilogue::Composed<epilogue::Program, E>{own, last}, contraction);
  });
}

}  // namespace detail

/// D(l,m,n) = epilogue( metric(X(l,m,:), Z(l,n,:)) ), asynchronously on `exec`.
///
/// exec      any execution space instance; every view must be accessible from it
/// x, z, d   views of rank 2, or 3 with a batch index, of any layout, or transposed() ones: x is M × K, z is N × K, d is
///           M × N. A batch extent of 1, or a missing one, broadcasts x or z. x and z may be the same; d overlaps neither.
/// metric    one of rigel::metric: manhattan, euclidean, squared_euclidean, chebyshev, minkowski{p}, inner_product, hamming; of
///           packed codes bit_hamming, bit_jaccard
/// last      an epilogue after the metric's own, for instance epilogue::laplace(bandwidth)
/// Near points keep their relative accuracy: differences are taken before they are squared, wherever |x|² + |z|² − 2x·z would lose
/// more digits than stated here. Large Euclidean distances of f32 may come from products of f64: within 2 units of the last
/// place, nearer than sums of f32; options.require = Promise::reference_bits excludes that, and the memory it takes, 8 bytes for each
/// element of x and z. With options.precision = Precision::promoted those of f32 may come from products of halves, within 1e-5 of
/// themselves, and those of f64 from products of f64, within (8.25·K + 100)·2^-53. x against itself is exactly 0 on the diagonal and
/// symmetric then.
/// With options.may_cancel what loses more digits in these products stays as it is, 0 where it is negative. With c the median of
/// eight rows (of x, or of z where only that is the same for all batches), s = |x − c|² + |z − c|² and D the squared distance,
///     |error of D| ≤ (K/16 + 66)·2^-24·s for products of halves, (33·K/32 + 15)·2^-53·s for those of f64,
/// besides the rounding of D and of its root, and 2^-126 (f64: 2^-1000). Only what is infinite or NaN is then computed by differences.
/// x and z hold f32 or f64 numbers (sums in their type), f16 or bf16 (sums in f32), or integers (sums in integers, which
/// wrap); codes are words of u8, u32 or u64, whose bits are counted.
/// K = 0 gives 0 (hamming and bit_hamming: NaN, as 0/0); M = 0 or N = 0 is a no-op.
/// Throws Error(invalid_argument) for extents that do not fit, p ≤ 0 or a d that overlaps; Error(unsupported) for
/// integers that would need a root, or where no kernel covers the call.
template <class Exec, class X, class Z, class D, class M, class E>
  requires Epilogue<E, double>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last,
           const CdistOptions& options = {}) {
  detail::with_cdist(exec, x, z, d, metric, last, options, [&](auto&&... arguments) {
    detail::with_problem(
        arguments..., [&](const Problem& p) { run(p, options.workspace); }, Names{"cdist", "X", "transposed Z", "D"});
  });
}
template <class Exec, class X, class Z, class D, class M>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const CdistOptions& options = {}) {
  cdist(exec, x, z, d, metric, epilogue::Program{}, options);
}

/// Every kernel that the same call of cdist() could use: predicted time, or the reason why not; '*' marks the choice.
template <class Exec, class X, class Z, class D, class M, class E = epilogue::Program>
std::string explain_cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last = {},
                          const CdistOptions& options = {}) {
  return detail::with_cdist(exec, x, z, d, metric, last, options, [](auto&&... arguments) { return explain(arguments...); });
}

/// Bytes of workspace that the same call of cdist() needs.
template <class Exec, class X, class Z, class D, class M, class E = epilogue::Program>
std::size_t cdist_workspace_size(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last = {},
                                 const CdistOptions& options = {}) {
  return detail::with_cdist(exec, x, z, d, metric, last, options,
                            [](auto&&... arguments) { return workspace_size(arguments...); });
}

}  // namespace rigel
