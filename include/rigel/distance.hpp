// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist(): D(l,m,n) = metric(X(l,m,:), Z(l,n,:)), the distances between the rows of two matrices, as one contract() with a
// semiring and an epilogue of the closed set, so that compiled kernels do all of it; of some metrics after a pass over the rows.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/integer_differences.hpp>
#include <rigel/detail/rows.hpp>

#include <cmath>
#include <limits>
#include <utility>

namespace rigel {

/// Options of cdist().
struct CdistOptions {
  bool skip_epilogue = false;  // leave out the metric's own last step: the sum of squares, not its root
  Batch batch = Batch::first;
  Promise require = Promise::none;             // only kernels that promise this are considered
  Precision precision = Precision::automatic;  // the least that terms are rounded to
  bool may_cancel = false;                     // Euclidean: errors may be relative to the rows' norms, see cdist()
  std::string_view kernel = {};                // a kernel's name or the leading part of it
  Workspace workspace = {};                    // cdist_workspace_size() bytes; else from Rigel's pool
};

/// What cdist() makes of every row x of X and Z before a metric sees it, in copies that live in the workspace: x, or x less its
/// mean, times what gives it this Σ_k x_k²; or x / Σ_k x_k; or Lᵀ·x; or its truth values, packed; or √x; or x itself.
struct Preparation {
  bool centred = false;
  double squared_length = 1;
  bool sums_to_one = false;  // x / Σ_k x_k: −∞ throughout if the sum is not positive
  bool transformed = false;  // Lᵀ·x, with the K × R view that the metric has as `factor`
  bool packed = false;       // whether x_k ≠ 0, as bits of words of 32
  bool roots = false;        // √x_k
  bool widened = false;      // x_k in double
};

/// The type of prepared rows: float for numbers of 16 bits or fewer and for float itself, double for all others.
template <class Element>
using prepared_row = std::conditional_t<sizeof(Element) <= 2 || std::is_same_v<Element, float>, float, double>;

namespace detail {

/// The epilogue v^(1/p) with the p of each batch's semiring, or that of one for all.
template <class S>
struct Root {
  const S* semirings;
  bool is_shared;
  template <class Value>
  RIGEL_MEMBER Value operator()(Value v, std::int64_t, std::int64_t, std::int64_t l) const {
    const Value p = semirings[is_shared ? 0 : l].p;
    return p == 1 ? v : p == 2 ? __builtin_elementwise_sqrt(v) : math::power(v, 1 / p);
  }
};

/// How many terms up to `largest` the accumulator of Element holds the sum of: integers without wrapping, of floating-point numbers exact
/// counts. None of 32-bit and 64-bit integers, unless the terms are counts: their differences already may not fit.
template <class Element>
constexpr std::int64_t terms_that_fit(std::int64_t largest, bool counts = false) {
  using Accumulator = accumulator_for<Element>;
  if constexpr (std::is_floating_point_v<Accumulator>)
    return counts ? std::int64_t{1} << std::numeric_limits<Accumulator>::digits : std::numeric_limits<std::int64_t>::max();
  else
    return sizeof(Element) > 1 && !counts ? 0 : std::numeric_limits<Accumulator>::max() / largest;
}

/// Throws Error(unsupported) if K words have more bits than int32 counts.
template <class Word>
void require_countable_bits(const char* metric, std::int64_t k) {
  constexpr std::int64_t bits = 8 * sizeof(Word), most = std::numeric_limits<std::int32_t>::max() / bits;
  if (k > most)
    throw Error(Code::unsupported, std::string(metric) + ": X has " + std::to_string(k) + " words of " +
                                       std::to_string(bits) + " bits in a row, expected at most " + std::to_string(most) +
                                       ": bits are counted in int32");
}

/// Throws Error(invalid_argument) unless p is a finite number above 0.
inline void require_power(const char* metric, double p) {
  if (!(p > 0 && p < std::numeric_limits<double>::infinity()))
    throw Error(Code::invalid_argument, std::string(metric) + "'s p is " + std::to_string(p) + ", expected a finite p > 0");
}

}  // namespace detail

/// Metrics. One is a struct with `with<Element>(K, use)`, which returns use(semiring, own): what is accumulated over the K coordinates, and
/// the epilogue that then makes a distance of it, a Program or a functor. The semiring may be a view of them, as contract() takes it; then
/// the metric has check_batches(function, L), which throws if it does not fit the batches of D. Others of the same form are as good.
/// One whose rows are prepared has a member `static constexpr Preparation preparation`, and says by `row<Element>` as what: float or
/// double, packed ones uint32, which with<>() then gets as its element; K stays X's. One with views has `memory_space`, theirs.
/// One whose sums have limits says by `most_columns<Element>` for how large a K they are right whatever X and Z hold, and, if that depends
/// on its members, by `columns_that_fit<Element>()`, at least so many; beyond, cdist() computes them in double, of rows that a pass widens.
/// One that says `of_differences` has semirings whose ⊗ depends on |x_k − z_k| alone: of int64 cdist() takes differences first. One that
/// derives from such a metric and has another ⊗ says `of_differences = false`.
namespace metric {

/// Σ_k |x_k − z_k|.
struct manhattan {
  static constexpr bool of_differences = true;
  template <class Element>
  static constexpr std::int64_t most_columns = rigel::detail::terms_that_fit<Element>(255);
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l1<Element>{}, epilogue::Program{});
  }
};

/// Σ_k (x_k − z_k)².
struct squared_euclidean {
  static constexpr bool of_differences = true;
  template <class Element>
  static constexpr std::int64_t most_columns = rigel::detail::terms_that_fit<Element>(255 * 255);
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l2_squared<Element>{}, epilogue::Program{});
  }
};

/// (Σ_k (x_k − z_k)²)^½. Squares are in the accumulator's type: of floats 0 for differences below 1e-22, inexact below 1.1e-19, and ∞
/// above 1.8e19 (docs/numerics.md).
struct euclidean {
  static constexpr bool of_differences = true;
  template <class Element>
  static constexpr std::int64_t most_columns = rigel::detail::terms_that_fit<Element>(255 * 255);
  template <class Element, class Use>
  auto with(std::int64_t, const Use& use) const {
    return use(l2_squared<Element>{}, epilogue::pow(0.5));
  }
};

/// max_k |x_k − z_k|.
struct chebyshev {
  static constexpr bool of_differences = true;
  template <class Element>
  static constexpr std::int64_t most_columns = rigel::detail::terms_that_fit<Element>(1);
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

/// #{k : x_k ≠ z_k} / K; the count alone with skip_epilogue. It is exact for any K.
struct hamming {
  template <class Element>
  static constexpr std::int64_t most_columns = rigel::detail::terms_that_fit<Element>(1, true);
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return use(rigel::hamming<Element>{}, epilogue::scale(1 / static_cast<double>(k)));
  }
};

/// Σ_k |x_k ⊻ z_k| / (bits of K words), |·| the number of set bits: the part of the bits in which two codes differ. The count
/// alone with skip_epilogue, which D may then hold as integers. X and Z hold words of 8, 32 or 64 bits, and rows of up to 2^31 − 1.
struct bit_hamming {
  static constexpr bool takes_words = true;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    rigel::detail::require_countable_bits<Element>("bit_hamming", k);
    return use(rigel::bit_hamming<Element>{}, epilogue::scale(1 / (8.0 * sizeof(Element) * static_cast<double>(k))));
  }
};

/// 1 − Σ_k |x_k ∧ z_k| / Σ_k |x_k ∨ z_k|, 0 of two empty sets: bits are members of sets (P. Jaccard, The distribution of the
/// flora in the alpine zone, 1912). In float; X and Z as for bit_hamming.
struct bit_jaccard {
  static constexpr bool takes_words = true;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    rigel::detail::require_countable_bits<Element>("bit_jaccard", k);
    return use(rigel::bit_jaccard<Element>{}, epilogue::Program{});
  }
};

/// (Σ_k |x_k − z_k|^p)^(1/p) for any p > 0 (a metric from p = 1 on), the largest |x_k − z_k| for p = ∞ (H. Minkowski,
/// Geometrie der Zahlen, 1896). p = 1, 2 and ∞ are manhattan, euclidean and chebyshev; of integers any other p is computed in double.
/// Powers are in the accumulator's type: a difference t counts 0 or ∞ if |t|^p leaves its range, with p = 16 of floats from 256 on. Use
/// doubles, scaled points, or p = ∞ there (docs/numerics.md).
/// p may be a view, which is read when the kernel runs, of rank 0, or contiguous of rank 1 with one number, or with one for each batch of
/// D: floats, doubles where X holds doubles. They are finite and positive; it is not checked, and all of them are powers. Of floating-point
/// numbers. Your file instantiates the kernels, since the root depends on p. A view of semirings with a member p, such as lp or
/// lp_with_epsilon, does as well.
template <class P = double>
struct minkowski {
  static constexpr bool of_differences = true;
  template <class Element>
  static constexpr std::int64_t most_columns =
      std::is_floating_point_v<accumulator_for<Element>> ? std::numeric_limits<std::int64_t>::max() : 0;
  P p = 2;
  template <class Element, class Use>
  auto with(std::int64_t k, const Use& use) const {
    if constexpr (Kokkos::is_view_v<P>)
      return with_view<Element>(use);
    else
      return with_number<Element>(static_cast<double>(p), k, use);
  }
  /// None of integers, unless p is that of another metric.
  template <class Element>
  std::int64_t columns_that_fit() const {
    if constexpr (!Kokkos::is_view_v<P>) {
      const auto number = static_cast<double>(p);
      if (number == 1) return manhattan::most_columns<Element>;
      if (number == 2) return euclidean::most_columns<Element>;
      if (number == std::numeric_limits<double>::infinity()) return chebyshev::most_columns<Element>;
    }
    return most_columns<Element>;
  }
  /// Throws Error(invalid_argument) if a view of p does not fit so many batches of D.
  void check_batches(const char* function, std::int64_t batches) const {
    if constexpr (Kokkos::is_view_v<P>) {
      const auto numbers = static_cast<std::int64_t>(P::rank() == 0 ? 1 : p.extent(0));  // size() is 0 without data
      if ((numbers != 1 && numbers != batches) || !p.span_is_contiguous())
        throw Error(Code::invalid_argument, std::string(function) + ": the view of p '" + p.label() + "' has " +
                                                std::to_string(numbers) + " numbers, expected " + std::to_string(batches) +
                                                " contiguous ones, one for each batch of D, or one for all");
      if (!p.data() && batches > 0)
        throw Error(Code::invalid_argument, std::string(function) + ": the view of p '" + p.label() + "' has no data");
    }
  }

 private:
  template <class Element, class Use>
  static auto with_number(double number, std::int64_t k, const Use& use) {
    if (!(number > 0))
      throw Error(Code::invalid_argument, "minkowski's p is " + std::to_string(number) + ", expected p > 0");
    if (number == 1) return manhattan{}.template with<Element>(k, use);
    if (number == 2) return euclidean{}.template with<Element>(k, use);
    if (number == std::numeric_limits<double>::infinity()) return chebyshev{}.template with<Element>(k, use);
    using Accumulator = accumulator_for<Element>;
    if constexpr (std::is_floating_point_v<Accumulator>) {
      lp<Element> s;
      s.p = static_cast<Accumulator>(number);
      return use(s, epilogue::pow(1 / number));
    } else {
      throw Error(Code::unsupported,
                  "minkowski's p is " + std::to_string(number) +
                      ", expected 1, 2 or infinity for a D of integers; one of floating-point numbers takes any p > 0");
    }
  }
  template <class Element, class Use>
  auto with_view(const Use& use) const {
    using Accumulator = accumulator_for<Element>;
    using Value = typename P::non_const_value_type;
    static_assert(P::rank() <= 1, "cdist: a view of p has rank 0 or 1");
    static_assert(std::is_floating_point_v<Accumulator>, "cdist: integers take a p that is a number");
    static_assert(std::is_same_v<Value, Accumulator> || Semiring<Value>,
                  "cdist: a view of p holds floats, doubles where X holds doubles; or semirings with a member p");
    // A number is the object of its semiring, which holds nothing else.
    using S = std::conditional_t<std::is_same_v<Value, Accumulator>, lp<Element>, Value>;
    static_assert(sizeof(S) == sizeof(Value));
    using Objects = Kokkos::View<const S*, typename P::memory_space, Kokkos::MemoryUnmanaged>;
    const auto* const objects = reinterpret_cast<const S*>(p.data());
    return use(Objects(objects, p.size()), rigel::detail::Root<S>{objects, p.size() == 1});
  }
};

/// 1 − x·z / (|x||z|), computed as Σ_k (x_k − z_k)² of rows of the length √½: since those are prepared and then subtracted, nothing
/// cancels between rows that are nearly parallel. The result is from 0 to 2; a clamp cuts off what roundings leave beyond. skip_epilogue
/// leaves the sum (of K = 0: 0). A row of zeros, as SciPy has it, is NaN from all. Integers beyond 2^53 are rounded to doubles first.
/// With D the exact distance, u the unit roundoff of row<Element> and (c + t·K)·u the bound of the kernel's sum
///     |error| ≤ (c + t·K + K/32 + 10)·u·D + 2.9·u·√D + 2.1·u²      (docs/numerics.md; of double the last term is larger)
/// since prepared rows are rounded: small angles, √(2D), are off by 2u. Where that is too much for floats:
///     struct cosine_in_double : rigel::metric::cosine { template <class> using row = double; };
struct cosine {
  static constexpr Preparation preparation = {.squared_length = 0.5};
  template <class Element>
  using row = prepared_row<Element>;
  template <class Row, class Use>
  auto with(std::int64_t k, const Use& use) const {
    return use(l2_squared<Row>{}, k > 0 ? epilogue::clamp(0, 2) : epilogue::scale(std::numeric_limits<double>::quiet_NaN()));
  }
};

/// cosine of rows less their own means: 1 less Pearson's correlation. Its bound is cosine's, in double with 6√2·u·√D. A row of one
/// value, hence K = 1, is NaN from all.
struct correlation : cosine {
  static constexpr Preparation preparation = {.centred = true, .squared_length = 0.5};
};

/// ((x − z)ᵀ·L·Lᵀ·(x − z))^½, the Mahalanobis distance for the inverse covariance matrix VI = L·Lᵀ (P. C. Mahalanobis, On the
/// generalised distance in statistics, 1936). `factor` is L: a view of K × R numbers of row<Element>, for instance cholesky_factor() of VI,
/// where R = K. Any R will do: VI may be singular, and a small R makes distances cheaper.
/// It is computed as euclidean of the rows Lᵀ·x, which are prepared in double and rounded once; skip_epilogue leaves the square.
/// With D the exact distance, u the unit roundoff of row<Element> and e the relative error of euclidean
///     |error| ≤ e·D + u·(|Lᵀ·x| + |Lᵀ·z|) + 2(K + 1)·2^-53·(| |L|ᵀ·|x| | + | |L|ᵀ·|z| |)
/// so near points far from the origin lose digits: subtract the mean of all rows from X and Z first.
template <class View>
struct mahalanobis {
  static constexpr Preparation preparation = {.transformed = true};
  using memory_space = typename View::memory_space;
  template <class Element>
  using row = prepared_row<Element>;
  View factor;
  template <class Row, class Use>
  auto with(std::int64_t k, const Use& use) const {
    static_assert(View::rank() == 2 && std::is_same_v<typename View::non_const_value_type, Row>,
                  "mahalanobis: the factor is a view of K x R floats, of doubles where X holds doubles or 32-bit integers");
    return euclidean{}.template with<Row>(k, use);
  }
};

}  // namespace metric

namespace detail {

// Whether a metric has cdist() prepare rows.
template <class M>
concept PreparesRows = requires { M::preparation; };

// Whether a metric is one of codes, packed in words.
template <class M>
inline constexpr bool takes_words = false;
template <class M>
  requires requires { M::takes_words; }
inline constexpr bool takes_words<M> = M::takes_words;

// Up to which K a metric's sums are right for all rows of Element.
template <class M, class Element>
inline constexpr std::int64_t most_columns = std::numeric_limits<std::int64_t>::max();
template <class M, class Element>
  requires requires { M::template most_columns<Element>; }
inline constexpr std::int64_t most_columns<M, Element> = M::template most_columns<Element>;
template <class M, class Element>
inline constexpr bool may_need_double =
    most_columns<M, Element> < std::numeric_limits<std::int64_t>::max() && !PreparesRows<M>;

// A metric in double, of rows that a pass widens.
template <class M>
struct Widened : M {
  static constexpr Preparation preparation = {.widened = true};
  template <class>
  using row = double;
};

// A metric in double, of differences of int64, which double need not hold the numbers of.
template <class M>
struct OfDifferences : M {
  template <class>
  static constexpr std::int64_t most_columns = std::numeric_limits<std::int64_t>::max();
  template <class, class Use>
  auto with(std::int64_t k, const Use& use) const {
    if constexpr (requires { this->p; })
      static_assert(!Kokkos::is_view_v<decltype(M::p)>, "minkowski of int64 takes p as a number, not as a view");
    return M::template with<double>(
        k, [&]<class S>(const S& semiring, const auto& own) { return use(integer_differences<S>{semiring}, own); });
  }
};
template <class M, class Element>
inline constexpr bool takes_differences = false;
template <class M>
  requires requires { M::of_differences; }
inline constexpr bool takes_differences<M, std::int64_t> = M::of_differences;

// A metric of Element in double.
template <class Element, class M>
using in_double = std::conditional_t<takes_differences<M, Element>, OfDifferences<M>, Widened<M>>;

// Whether a call is computed in double. Not for a D of integers, which asks for sums in integers: of 32 and 64 bits they wrap. Throws
// Error(unsupported) where sums of bytes, or counts, may not fit.
template <class Element, class M>
bool needs_double(const M& metric, const char* function, const Operand& x, const Operand& d, bool into_integers) {
  std::int64_t most = most_columns<M, Element>;
  if constexpr (requires { metric.template columns_that_fit<Element>(); })
    most = metric.template columns_that_fit<Element>();
  if (most > 0 && x.columns <= most) return false;
  if (!into_integers) return true;
  if (most > 0)
    throw Error(Code::unsupported, std::string(function) + ": X '" + x.label + "' has " + std::to_string(x.columns) +
                                       " columns, expected at most " + std::to_string(most) + " for the integers of D '" +
                                       d.label + "': sums of more may not fit");
  return false;
}

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

// Rigel's type for what X and Z hold, where cdist() takes them for this metric.
template <class X, class Z, class M>
constexpr auto cdist_element() {
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
  return std::type_identity<Element>{};
}

// The type that the metric's semiring reads: that of prepared rows, or X's own.
template <class Element, class M>
struct rows_of {
  using type = Element;
};
template <class Element, PreparesRows M>
struct rows_of<Element, M> {
  using type = typename M::template row<Element>;
  static_assert(M::preparation.packed ? std::is_same_v<type, std::uint32_t>
                                      : std::is_same_v<type, float> || std::is_same_v<type, double>,
                "cdist: prepared rows are of float or double, packed ones of words of 32 bits");
};

// What cdist() takes if it prepares rows, checked when it is compiled. Returns the pass, X and Z left to the driver.
template <class Exec, class X, class Z, class Element, class Row, class M>
RowPass pass_of(const M& metric) {
  static_assert(Kokkos::is_execution_space_v<Exec>, "cdist: the first argument is a Kokkos execution space instance");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<X>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename view_t<Z>::memory_space>::accessible,
                "cdist: the execution space cannot access X or Z");
  RowPass pass{.centred = M::preparation.centred,
               .squared_length = M::preparation.squared_length,
               .sums_to_one = M::preparation.sums_to_one,
               .transformed = M::preparation.transformed,
               .packed = M::preparation.packed,
               .roots = M::preparation.roots,
               .widened = M::preparation.widened};
  if constexpr (M::preparation.transformed) pass.factor = operand_of(metric.factor, Batch::first, "the factor");
  if constexpr (space_of<Exec> == Space::other) pass.launch = launch_rows<type_list<Exec>, Element, Row>;
  return pass;
}

// The epilogue as it is.
struct Unwrapped {
  template <class SemiringOrView, class Functor>
  const Functor& operator()(const SemiringOrView&, const Functor& functor) const {
    return functor;
  }
};

// The metric's steps, then those of the call.
template <class First, class E>
auto steps_of(const First& first, const E& last) {
  if constexpr (std::is_same_v<First, epilogue::Program> && std::is_same_v<E, epilogue::Program>)
    return epilogue::Program::joined(first, last);
  else
    return epilogue::Composed<First, E>{first, last};
}

// What a call has in addition to the metric and the steps.
struct CdistCall {
  Operand x, z, d;  // z: transposed Z
  const CdistOptions& options;
  const char* function;
};

// The call with a semiring and an epilogue, which outlive it.
template <class Value, class Element, class Row, class Exec, class X, class Z, class D, class M, class SemiringOrView,
          class Functor>
Cdist cdist_of(const Exec& exec, const M& metric, const SemiringOrView& semiring, const Functor& functor, CdistCall given) {
  std::optional<RowPass> pass;
  if constexpr (PreparesRows<M>) {
    using Rows = Kokkos::View<Row**, typename Exec::memory_space>;
    pass = pass_of<Exec, X, Z, Element, Row>(metric);
    check_types<Exec, SemiringOrView, Rows, Rows, D, Functor>();
  } else {
    check_types<Exec, SemiringOrView, X, Z, D, Functor>();
  }
  const ContractOptions options{.require = given.options.require,
                                .precision = given.options.precision,
                                .may_cancel = given.options.may_cancel,
                                .kernel = given.options.kernel,
                                .workspace = given.options.workspace};
  return {contraction_on<Value>(exec, semiring, std::move(given.x), std::move(given.z), std::move(given.d), functor, {},
                                options, given.function),
          std::move(pass)};
}

// Throws for steps on a D of integers.
template <class First>
void require_no_steps(const First& first, const CdistCall& given) {
  if constexpr (std::is_same_v<First, epilogue::Program>)
    if (first.empty()) return;
  throw Error(Code::unsupported, std::string(given.function) + ": D '" + given.d.label +
                                     "' holds integers, expected floating-point numbers for this metric, or "
                                     "options.skip_epilogue");
}

// Hands `use` the Cdist of a call, whose semiring and epilogue live as long. Its epilogue is wrap(semiring, epilogue).
template <class Exec, class X, class Z, class D, class M, class E, class Use, class Wrap = Unwrapped>
auto with_cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last,
                const CdistOptions& options, const Use& use, const char* function = "cdist", const Wrap& wrap = {}) {
  using Element = typename decltype(cdist_element<X, Z, M>())::type;
  using Row = typename rows_of<Element, M>::type;
  using Value = typename view_t<D>::non_const_value_type;
  if constexpr (requires { typename M::memory_space; })
    static_assert(Kokkos::SpaceAccessibility<Exec, typename M::memory_space>::accessible,
                  "cdist: the execution space cannot access a view of the metric");
  CdistCall given{operand_of(x, options.batch, "X"), operand_of(transposed(z), options.batch, "transposed Z"),
                  operand_of(d, options.batch, "D"), options, function};
  constexpr bool into_integers = std::is_integral_v<Value> && !std::is_same_v<Value, bool>;
  if constexpr (may_need_double<M, Element>) {
    [[maybe_unused]] const bool doubles = needs_double<Element>(metric, function, given.x, given.d, into_integers);
    if constexpr (!into_integers)
      if (doubles) return with_cdist(exec, x, z, d, in_double<Element, M>{metric}, last, options, use, function, wrap);
  }
  if constexpr (requires { metric.check_batches(function, given.d.batches); })
    metric.check_batches(function, given.d.batches);
  return metric.template with<Row>(given.x.columns, [&](const auto& semiring, const auto& own) {
    const auto after = [&](const auto& first) {
      if constexpr (into_integers) require_no_steps(first, given);
      const auto steps = steps_of(first, last);
      return use(
          cdist_of<Value, Element, Row, Exec, X, Z, D>(exec, metric, semiring, wrap(semiring, steps), std::move(given)));
    };
    return options.skip_epilogue ? after(epilogue::Program{}) : after(own);
  });
}

}  // namespace detail

/// D(l,m,n) = epilogue( metric(X(l,m,:), Z(l,n,:)) ), asynchronously on `exec`.
///
/// exec      any execution space instance; every view must be accessible from it
/// x, z, d   views of rank 2, or 3 with a batch index, of any layout, or transposed() ones: x is M × K, z is N × K, d is
///           M × N. A batch extent of 1, or a missing one, broadcasts x or z. x and z may be the same; d overlaps neither.
///           A d of bool gets whether the distance is not 0.
/// metric    one of rigel::metric: manhattan, euclidean, squared_euclidean, chebyshev, minkowski{p}, inner_product, cosine,
///           correlation, mahalanobis{L}, hamming; of packed codes bit_hamming, bit_jaccard; or one of rigel/dissimilarities.hpp.
///           Its views are read when the kernel runs: their memory lives until the call's work is complete. d overlaps none.
/// last      an epilogue after the metric's own, for instance epilogue::laplace(bandwidth)
/// Near points keep their relative accuracy: if |x|² + |z|² − 2x·z would lose more digits than stated here, differences are taken
/// before they are squared. On a GPU, Euclidean distances of f32 come from tensor cores by default: from products of halves, within
/// 1.01e-5 of the distance in addition to the error of one chain, or from products of f64, within 2 units of the last place.
/// Precision::exact_products admits the latter only, Precision::accumulator neither. Precision::promoted admits both, and for f64
/// products of f64, within (8.25·K + 100)·2^-53.
/// x against itself, one view twice, is exactly 0 on the diagonal if its rows are finite, and symmetric in every bit unless steps of
/// `last` are not. Where that is predicted to be faster, only the lower triangle is computed, in block rows, and mirrored; not so if
/// options.kernel names a kernel, options.require asks for batch_invariant, or `last` is a functor; nor if D holds bool. Under
/// batch_invariant a row's bits may not come from a column, so that nothing is mirrored: products on tensor cores are then not
/// symmetric in every bit.
/// With options.may_cancel what loses more digits in these products stays as it is, 0 where it is negative. With c the median of
/// eight rows (of x, of z for a column-major D, or of the other where only that is the same for all batches), s = |x − c|² + |z − c|² and D the squared distance,
///     |error of D| ≤ (K/16 + 66)·2^-24·s for products of halves, (33·K/32 + 15)·2^-53·s for those of f64,
/// besides the rounding of D and of its root, and 2^-126 (f64: 2^-1000). Only what is infinite or NaN is then computed by differences.
/// x and z hold f32 or f64 numbers (sums in their type), f16 or bf16 (sums in f32), or integers; codes are words of u8, u32 or u64,
/// whose bits are counted. Distances of integers do not wrap: bytes are summed in int32 for up to 33025 columns (manhattan: 8421504), and all
/// else in f64: int32 always, bytes with more columns or another p, and hamming of floats beyond 2^24 columns, of rows that a pass widens into
/// the workspace; int64 of differences that are taken as integers and rounded once (docs/numerics.md). Only a d of integers, and inner_product,
/// get sums that wrap, and of bytes with more columns an Error.
/// cosine, correlation and mahalanobis take a pass over x and z first, once where both are one view, which leaves their rows in the
/// workspace, f32 or (of f64 and integers of 32 and 64 bits) f64. All else is as with squared_euclidean of those: kernels, options.precision, a row
/// against itself. So does hellinger. jensenshannon and measures of Boolean numbers take such a pass, too, the latter into words of bits. A
/// call that has little memory left should bring its workspace, or one that is captured and has no presize().
/// K = 0 gives 0 (hamming, bit_hamming, cosine and correlation: NaN, as 0/0); M = 0 or N = 0 is a no-op.
/// Throws Error(invalid_argument) for extents that do not fit, those of a metric's views included, p ≤ 0 or a d that overlaps;
/// Error(unsupported) for integers that would need a root, or sums or counts that may not fit, and as contract() does.
template <class Exec, class X, class Z, class D, class M, class E>
  requires Epilogue<E, double>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last,
           const CdistOptions& options = {}) {
  detail::with_cdist(exec, x, z, d, metric, last, options, [](detail::Cdist call) { detail::run_cdist(std::move(call)); });
}
template <class Exec, class X, class Z, class D, class M>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const CdistOptions& options = {}) {
  cdist(exec, x, z, d, metric, epilogue::Program{}, options);
}

/// Every kernel that the same call of cdist() could use: predicted time, or the reason why not; '*' marks the choice.
template <class Exec, class X, class Z, class D, class M, class E = epilogue::Program>
std::string explain_cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last = {},
                          const CdistOptions& options = {}) {
  return detail::with_cdist(exec, x, z, d, metric, last, options,
                            [](detail::Cdist call) { return detail::explain_cdist(std::move(call)); });
}

/// Bytes of workspace that the same call of cdist() needs.
template <class Exec, class X, class Z, class D, class M, class E = epilogue::Program>
std::size_t cdist_workspace_size(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last = {},
                                 const CdistOptions& options = {}) {
  return detail::with_cdist(exec, x, z, d, metric, last, options,
                            [](detail::Cdist call) { return detail::cdist_bytes(std::move(call)); });
}

}  // namespace rigel
