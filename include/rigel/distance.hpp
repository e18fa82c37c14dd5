// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cdist(): D(l,m,n) = metric(X(l,m,:), Z(l,n,:)), the distances between the rows of two matrices, as one contract() with a
// semiring and an epilogue of the closed set, so that compiled kernels do all of it; of some metrics after a pass over the rows.
#pragma once

#include <rigel/contract.hpp>
#include <rigel/detail/rows.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

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
  Workspace workspace = {};                      // cdist_workspace_size() bytes; else from Rigel's pool
};

/// What cdist() makes of every row x of X and Z before a metric sees it, in copies that live in the workspace: x, or x less its
/// mean, times what gives it this Σ_k x_k².
struct Preparation {
  bool centred = false;
  double squared_length = 1;
};

/// The type of prepared rows: float for numbers of 16 bits or fewer and for float itself, double for all others.
template <class Element>
using prepared_row = std::conditional_t<sizeof(Element) <= 2 || std::is_same_v<Element, float>, float, double>;

/// Metrics. One is a struct with `with<Element>(K, use)`, which returns use(semiring, program): what is accumulated over
/// the K coordinates, and what then makes a distance of it. Others of the same form are as good.
/// One whose rows are prepared has a member `static constexpr Preparation preparation`, and says by `row<Element>` as what: float
/// or double, which with<>() then gets as its element.
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

/// 1 − x·z / (|x||z|), computed as Σ_k (x_k − z_k)² of rows of the length √½: since those are prepared and then subtracted, nothing
/// cancels between rows that are nearly parallel. There is no step for skip_epilogue to skip (but for K = 0, which then gives 0). A row
/// of zeros, as SciPy has it, is NaN from all. Integers beyond 2^53 are rounded to doubles first.
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
    return use(l2_squared<Row>{}, k > 0 ? epilogue::Program{} : epilogue::scale(std::numeric_limits<double>::quiet_NaN()));
  }
};

/// cosine of rows less their own means: 1 less Pearson's correlation. Its bound is cosine's, in double with 6√2·u·√D. A row of one
/// value, hence K = 1, is NaN from all.
struct correlation : cosine {
  static constexpr Preparation preparation = {.centred = true, .squared_length = 0.5};
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

// Hands `use` the arguments of the contract() that a cdist() of these rows is.
template <class Element, class Exec, class X, class Z, class D, class M, class E, class Use>
auto with_contraction(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last,
                      const CdistOptions& options, const Use& use) {
  const ContractOptions contraction{.batch = options.batch,
                                    .require = options.require,
                                    .precision = options.precision,
                                    .may_cancel = options.may_cancel,
                                    .kernel = options.kernel,
                                    .workspace = options.workspace};
  const std::int64_t k = operand_of(x, options.batch).columns;
  return metric.template with<Element>(k, [&](const auto& semiring, epilogue::Program own) {
    if (options.skip_epilogue) own = {};
    using Value = typename view_t<D>::non_const_value_type;
    if (std::is_integral_v<Value> && !std::is_same_v<Value, bool> && !own.empty())
      throw Error(Code::unsupported, "cdist: D '" + operand_of(d, options.batch).label +
                                         "' holds integers, expected floating-point numbers for this metric, or "
                                         "options.skip_epilogue");
    if constexpr (std::is_same_v<E, epilogue::Program>)
      return use(exec, semiring, x, transposed(z), d, own | last, contraction);
    else
      return use(exec, semiring, x, transposed(z), d, epilogue::Composed<epilogue::Program, E>{own, last}, contraction);
  });
}

inline constexpr Names cdist_names = {"cdist", "X", "transposed Z", "D"};

// A call whose metric takes rows as they are: one contract().
template <class Exec, class X, class Z, class D, class M, class E>
class Cdist {
 public:
  Cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last, const CdistOptions& options)
      : exec_(exec), x_(x), z_(z), d_(d), metric_(metric), last_(last), options_(options) {
    validate_cdist(operand_of(x, options.batch), operand_of(z, options.batch), operand_of(d, options.batch));
  }
  void run() const {
    contraction([&](auto&&... arguments) {
      with_problem(arguments..., [&](const Problem& p) { rigel::run(p, options_.workspace); }, cdist_names);
    });
  }
  std::string explanation() const {
    return contraction([](auto&&... arguments) {
      return with_problem(arguments..., [](const Problem& p) { return explain(p); }, cdist_names);
    });
  }
  std::size_t bytes() const {
    return contraction([](auto&&... arguments) {
      return with_problem(arguments..., [](const Problem& p) { return workspace_size(p); }, cdist_names);
    });
  }

 private:
  template <class Use>
  auto contraction(const Use& use) const {
    using Element = typename decltype(cdist_element<X, Z, M>())::type;
    return with_contraction<Element>(exec_, x_, z_, d_, metric_, last_, options_, use);
  }

  const Exec& exec_;
  const X& x_;
  const Z& z_;
  const D& d_;
  const M& metric_;
  const E& last_;
  const CdistOptions& options_;
};

// A call whose metric has rows prepared: a pass over X and Z into the workspace, then a contract() of what it wrote.
template <class Exec, class X, class Z, class D, class M, class E>
  requires PreparesRows<M>
class Cdist<Exec, X, Z, D, M, E> {
  using Element = typename decltype(cdist_element<X, Z, M>())::type;
  using Row = typename M::template row<Element>;
  static_assert(std::is_same_v<Row, float> || std::is_same_v<Row, double>, "cdist: prepared rows are of float or double");
  static_assert(Kokkos::is_execution_space_v<Exec>, "cdist: the first argument is a Kokkos execution space instance");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename view_t<X>::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename view_t<Z>::memory_space>::accessible,
                "cdist: the execution space cannot access X or Z");

 public:
  Cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last, const CdistOptions& options)
      : exec_(exec), d_(d), metric_(metric), last_(last), options_(options) {
    const Operand of_x = operand_of(x, options.batch), of_z = operand_of(z, options.batch),
                  of_d = operand_of(d, options.batch);
    validate_cdist(of_x, of_z, of_d);
    // All that can be wrong with X, Z and D themselves; the contraction sees copies.
    Problem product;
    product.batch = of_d.batches;
    product.m = of_d.rows;
    product.n = of_d.columns;
    product.k = of_x.columns;
    product.a = of_x;
    product.b = operand_of(transposed(z), options.batch);
    product.c = of_d;
    product.names = cdist_names;
    validate(product);

    is_empty_ = product.batch == 0 || product.m == 0 || product.n == 0;
    is_self_ = of_x.data == of_z.data && of_x.batches == of_z.batches && of_x.rows == of_z.rows &&
               of_x.batch_stride == of_z.batch_stride && of_x.row_stride == of_z.row_stride &&
               of_x.column_stride == of_z.column_stride;
    pass_ = {{rows_of(of_x), rows_of(of_z)}, of_x.columns, M::preparation.centred, M::preparation.squared_length};
  }

  void run() {
    if (is_empty_) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::cdist");
    const CallMemory memory("cdist", execution_of(exec_), options_.workspace, bytes());
    place(memory.address());
    Pass pass = pass_;
    if (is_self_) pass.of[1] = {};
    if (pass.k > 0) prepare_rows(exec_, pass);
    contraction([](const Problem& p, Workspace inner) { rigel::run(p, inner); });
  }
  std::string explanation() {
    place(nominal_address);
    return std::string("rows prepared: ") + (M::preparation.centred ? "centred, " : "") + name(scalar_of<Row>) + ", " +
           std::to_string(row_bytes()) + " bytes of workspace\n" +
           contraction([](const Problem& p, Workspace) { return explain(p); });
  }
  std::size_t bytes() {
    if (is_empty_) return 0;
    place(nominal_address);
    inner_.bytes = contraction([](const Problem& p, Workspace) {
      const Kernel& kernel = select(p);
      return kernel.workspace ? kernel.workspace(kernel.info, p) : 0;
    });
    return row_bytes() + inner_.bytes;
  }

 private:
  using Pass = Preparing<Element, Row>;
  using Rows = RowsToPrepare<Element, Row>;
  static constexpr std::uintptr_t nominal_address = 256;  // stands in for memory that is aligned as workspaces are

  // Rows to be written contiguous along k, each aligned to 16 bytes.
  static Rows rows_of(const Operand& o) {
    constexpr std::int64_t vector = 16 / sizeof(Row);
    const std::int64_t pitch = (o.columns + vector - 1) / vector * vector;
    return {strided<Element>(o), {nullptr, o.batches == 1 ? 0 : o.rows * pitch, pitch, 1}, o.batches, o.rows};
  }
  std::size_t bytes_of(const Rows& g) const {
    return (sizeof(Row) * static_cast<std::size_t>(g.count() * g.to.row) + 255) / 256 * 256;
  }
  std::size_t row_bytes() const { return bytes_of(pass_.of[0]) + (is_self_ ? 0 : bytes_of(pass_.of[1])); }
  void place(std::uintptr_t base) {
    pass_.of[0].to.data = reinterpret_cast<Row*>(base);
    pass_.of[1].to.data = reinterpret_cast<Row*>(is_self_ ? base : base + bytes_of(pass_.of[0]));
    inner_.data = reinterpret_cast<void*>(base + row_bytes());
  }

  template <class Use>
  auto contraction(const Use& use) const {
    const auto prepared = [&](const Rows& g) { return batch_of<Exec>(g.to, g.batches, g.rows, pass_.k, options_.batch); };
    return with_contraction<Row>(
        exec_, prepared(pass_.of[0]), prepared(pass_.of[1]), d_, metric_, last_, options_, [&](const auto&... arguments) {
          return with_problem(arguments..., [&](const Problem& p) { return use(p, inner_); }, cdist_names);
        });
  }

  const Exec& exec_;
  const D& d_;
  const M& metric_;
  const E& last_;
  const CdistOptions& options_;
  bool is_empty_, is_self_;
  Pass pass_;
  Workspace inner_;
};

}  // namespace detail

/// D(l,m,n) = epilogue( metric(X(l,m,:), Z(l,n,:)) ), asynchronously on `exec`.
///
/// exec      any execution space instance; every view must be accessible from it
/// x, z, d   views of rank 2, or 3 with a batch index, of any layout, or transposed() ones: x is M × K, z is N × K, d is
///           M × N. A batch extent of 1, or a missing one, broadcasts x or z. x and z may be the same; d overlaps neither.
///           A d of bool gets whether the distance is not 0.
/// metric    one of rigel::metric: manhattan, euclidean, squared_euclidean, chebyshev, minkowski{p}, inner_product, cosine,
///           correlation, hamming; of packed codes bit_hamming, bit_jaccard
/// last      an epilogue after the metric's own, for instance epilogue::laplace(bandwidth)
/// Near points keep their relative accuracy: differences are taken before they are squared, wherever |x|² + |z|² − 2x·z would lose
/// more digits than stated here. With options.precision = Precision::exact_products Euclidean distances of f32 may come from
/// products of f64: within 2 units of the last place, nearer than sums of f32; with Precision::promoted from products of halves,
/// within 1e-5 of themselves, and those of f64 from products of f64, within (8.25·K + 100)·2^-53. x against itself is exactly 0 on
/// the diagonal and symmetric then.
/// With options.may_cancel what loses more digits in these products stays as it is, 0 where it is negative. With c the median of
/// eight rows (of x, or of z where only that is the same for all batches), s = |x − c|² + |z − c|² and D the squared distance,
///     |error of D| ≤ (K/16 + 66)·2^-24·s for products of halves, (33·K/32 + 15)·2^-53·s for those of f64,
/// besides the rounding of D and of its root, and 2^-126 (f64: 2^-1000). Only what is infinite or NaN is then computed by differences.
/// x and z hold f32 or f64 numbers (sums in their type), f16 or bf16 (sums in f32), or integers (sums in integers, which
/// wrap); codes are words of u8, u32 or u64, whose bits are counted.
/// cosine and correlation take a pass over x and z first, once where both are one view, which leaves their rows in the workspace,
/// f32 or (of f64 and integers of 32 and 64 bits) f64. All else is as with squared_euclidean of those: kernels, options.precision, a
/// row against itself. A call that is captured in a CUDA graph, or has little memory left, should bring its workspace.
/// K = 0 gives 0 (hamming, bit_hamming, cosine and correlation: NaN, as 0/0); M = 0 or N = 0 is a no-op.
/// Throws Error(invalid_argument) for extents that do not fit, p ≤ 0 or a d that overlaps; Error(unsupported) for
/// integers that would need a root, and as contract() does.
template <class Exec, class X, class Z, class D, class M, class E>
  requires Epilogue<E, double>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last,
           const CdistOptions& options = {}) {
  detail::Cdist(exec, x, z, d, metric, last, options).run();
}
template <class Exec, class X, class Z, class D, class M>
void cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const CdistOptions& options = {}) {
  cdist(exec, x, z, d, metric, epilogue::Program{}, options);
}

/// Every kernel that the same call of cdist() could use: predicted time, or the reason why not; '*' marks the choice.
template <class Exec, class X, class Z, class D, class M, class E = epilogue::Program>
std::string explain_cdist(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last = {},
                          const CdistOptions& options = {}) {
  return detail::Cdist(exec, x, z, d, metric, last, options).explanation();
}

/// Bytes of workspace that the same call of cdist() needs.
template <class Exec, class X, class Z, class D, class M, class E = epilogue::Program>
std::size_t cdist_workspace_size(const Exec& exec, const X& x, const Z& z, const D& d, const M& metric, const E& last = {},
                                 const CdistOptions& options = {}) {
  return detail::Cdist(exec, x, z, d, metric, last, options).bytes();
}

}  // namespace rigel
