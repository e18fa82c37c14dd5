// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify() of a gradient kernel: random problems, held to the reference's bits or to the kernel's a-priori bound against a sum in
// double. Points coincide now and then, and weights of these are NaN.
#include "verify.hpp"

#include <rigel/detail/execution.hpp>
#include <rigel/detail/gradient.hpp>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

namespace rigel {
namespace {

struct Case {
  std::int64_t batch, outputs, n, m, k;
  int layout;  // 0: by rows, 1: by columns, 2: with gaps
  bool broadcasts, accumulate;
  std::string text() const {
    return "batch " + std::to_string(batch) + ", outputs " + std::to_string(outputs) + ", n " + std::to_string(n) + ", m " +
           std::to_string(m) + ", k " + std::to_string(k) + ", layout " + std::to_string(layout) +
           (broadcasts ? ", A and C broadcast" : "") + (accumulate ? ", accumulates" : "");
  }
};

/// A batch of matrices in memory of an execution space, in one of three layouts; gaps hold NaN.
template <class T, class Exec>
class Placed {
 public:
  Placed(const char* argument, int layout, std::int64_t batches, std::int64_t rows, std::int64_t columns)
      : batches_(batches), rows_(rows), columns_(columns) {
    const std::int64_t gap = layout == 2 ? 3 : 1;
    operand_.argument = argument;
    operand_.type = scalar_of<T>;
    operand_.size = sizeof(T);
    operand_.batches = batches;
    operand_.rows = rows;
    operand_.columns = columns;
    operand_.row_stride = layout == 1 ? 1 : gap * columns + gap - 1;
    operand_.column_stride = layout == 1 ? rows + 1 : gap;
    matrix_ = layout == 1 ? (rows + 1) * columns : operand_.row_stride * rows + 1;
    if (batches != 1) operand_.batch_stride = matrix_;
    host_.assign(static_cast<std::size_t>(matrix_ * batches + 1), std::numeric_limits<T>::quiet_NaN());
    memory_ = Memory("rigel::verify", host_.size());
    operand_.data = memory_.data() + 1;
  }
  const Operand& operand() const { return operand_; }
  std::int64_t matrix() const { return matrix_; }
  T& at(std::int64_t l, std::int64_t i, std::int64_t j) {
    return host_[static_cast<std::size_t>(1 + (batches_ == 1 ? 0 : l) * matrix_ + i * operand_.row_stride +
                                          j * operand_.column_stride)];
  }
  template <class Make>
  void fill(const Make& make) {
    for (std::int64_t l = 0; l < batches_; ++l)
      for (std::int64_t i = 0; i < rows_; ++i)
        for (std::int64_t j = 0; j < columns_; ++j) at(l, i, j) = static_cast<T>(make(l, i, j));
  }
  void put() { Kokkos::deep_copy(memory_, Host(host_.data(), host_.size())); }
  void get() { Kokkos::deep_copy(Host(host_.data(), host_.size()), memory_); }
  std::vector<T>& all() { return host_; }

 private:
  using Memory = Kokkos::View<T*, typename Exec::memory_space>;
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  std::int64_t batches_, rows_, columns_, matrix_ = 0;
  Operand operand_;
  std::vector<T> host_;
  Memory memory_;
};

template <class T>
bool same_bits(T x, T y) {
  return x == y || (x != x && y != y);
}

/// The problem of a case without a functor, on `exec`, which outlives it.
template <class Exec, class T, class A>
Gradient problem_of(const Case& c, const Exec& exec, const Placed<T, Exec>& a, const Placed<T, Exec>& b,
                    const Placed<T, Exec>& of_c, const Placed<T, Exec>& d, const Placed<A, Exec>& out) {
  Gradient p;
  p.function = "verify";
  p.execution = detail::execution_of(exec);
  p.batch = c.batch;
  p.outputs = c.outputs;
  p.n = c.n;
  p.m = c.m;
  p.k = c.k;
  p.a = a.operand();
  p.b = b.operand();
  p.c = of_c.operand();
  p.d = d.operand();
  p.out = out.operand();
  p.out.batches = c.batch;
  p.out.batch_stride = c.batch == 1 ? 0 : out.matrix() * c.outputs;
  p.out_stride = out.matrix();
  p.accumulate = c.accumulate;
  return p;
}

/// Adds a result to the digest.
template <class T>
void add_to_digest(Verification& result, T value) {
  std::uint64_t bits = 0;
  if constexpr (sizeof(T) == 4)
    bits = std::bit_cast<std::uint32_t>(value + T(0));
  else
    bits = std::bit_cast<std::uint64_t>(value + T(0));
  result.digest = (result.digest ^ bits) * 0x100000001b3;
}

template <class G, class Exec>
class Verifier {
  using T = typename G::element;
  static constexpr double u = std::numeric_limits<T>::epsilon() / 2;

 public:
  Verifier(const Kernel<Gradient>& kernel, Verification& result, unsigned seed)
      : kernel_(kernel), result_(result), seed_(seed) {}

  void check(const Case& c) {
    std::mt19937_64 random(seed_ + static_cast<unsigned>(result_.problems));
    const auto number = [&](auto...) { return std::uniform_real_distribution<double>(-1, 1)(random); };
    const std::int64_t shared = c.broadcasts ? 1 : c.batch;
    Placed<T, Exec> a("A", c.layout, shared, c.k, c.m), b("B", (c.layout + 1) % 3, c.batch, c.n, c.k),
        of_c("C", (c.layout + 2) % 3, shared, c.outputs, c.k), d("D", c.layout, c.batch, c.n, c.m),
        out("Out", (c.layout + 1) % 3, c.batch * c.outputs, c.n, c.m),
        expected("Out", (c.layout + 1) % 3, c.batch * c.outputs, c.n, c.m);
    a.fill(number);
    b.fill(number);
    of_c.fill(number);
    d.fill(number);
    // Point m = 0 is the k-th one, and nothing comes of their weight.
    if (c.m > 0 && c.k > 0) {
      for (std::int64_t l = 0; l < c.batch; ++l)
        for (std::int64_t n = 0; n < c.n; ++n) d.at(l, n, 0) = b.at(l, n, c.k - 1);
      for (std::int64_t l = 0; l < shared; ++l) a.at(l, c.k - 1, 0) = std::numeric_limits<T>::quiet_NaN();
    }
    out.fill(number);
    const std::vector<T> before = out.all();
    for (auto* placed : {&a, &b, &of_c, &d, &out}) placed->put();

    const Exec exec{};
    const G functor = make();
    Gradient p = problem_of(c, exec, a, b, of_c, d, out);
    p.precision = kernel_.info.precision;
    p.functor = {gradient_name<G>(), gradient_type<G>()};
    p.element = p.accumulator = scalar_of<T>;
    p.functor_object = &functor;
    p.may_cancel = true;
    if (!supports(kernel_, p)) return;
    run(kernel_, p);
    exec.fence("rigel::verify");
    ++result_.problems;
    out.get();
    const bool exact = covers(kernel_.info.promises, Promise::reference_bits);
    if (exact) reference(p, before, expected);
    double worst = 0;
    std::vector<T> untouched = before;
    for (std::int64_t l = 0; l < c.batch; ++l)
      for (std::int64_t o = 0; o < c.outputs; ++o)
        for (std::int64_t n = 0; n < c.n; ++n)
          for (std::int64_t m = 0; m < c.m; ++m) {
            const std::int64_t lo = l * c.outputs + o;
            const T actual = out.at(lo, n, m);
            add_to_digest(result_, actual);
            if (exact && !same_bits(actual, expected.at(lo, n, m))) return fail(c, "a result has not the reference's bits");
            const std::size_t place = static_cast<std::size_t>(&out.at(lo, n, m) - out.all().data());
            untouched[place] = actual;
            double sum = c.accumulate ? static_cast<double>(before[place]) : 0, size = std::abs(sum);
            // Products of points are off by a share of their distances from the mean point, in each coordinate.
            const bool of_points = detail::is_of_points(kernel_.info);
            double mean = 0;
            for (std::int64_t k = 0; of_points && k < c.k; ++k)
              mean += static_cast<double>(b.at(l, n, k)) / static_cast<double>(c.k);
            for (std::int64_t k = 0; k < c.k; ++k) {
              const double t = static_cast<double>(d.at(l, n, m)) - static_cast<double>(b.at(l, n, k));
              const double weight = static_cast<double>(of_c.at(l, o, k)) * static_cast<double>(a.at(l, k, m));
              if (of_points && std::isfinite(weight))
                size += std::abs(weight) * (std::abs(static_cast<double>(d.at(l, n, m)) - mean) +
                                            std::abs(static_cast<double>(b.at(l, n, k)) - mean));
              if (t == 0) continue;
              const double term = weight * std::copysign(std::pow(std::abs(t), power() - 1), t);
              sum += term;
              if (!of_points) size += std::abs(term);
            }
            // The sum in double has an error of its own, of K + 4 roundings.
            const double bound = kernel_.info.accuracy.of(c.k + 1) * u + static_cast<double>(c.k + 4) * 0x1p-53;
            const double error = std::abs(static_cast<double>(actual) - sum);
            const double ratio = error == 0 ? 0 : error / (bound * size);
            if (!(ratio <= worst)) worst = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
          }
    if (!(worst <= 1)) fail(c, "a result is out of bound, " + std::to_string(worst) + " times");
    for (std::size_t i = 0; i < before.size(); ++i)
      if (!same_bits(untouched[i], out.all()[i])) return fail(c, "memory between the results was written");
  }

 private:
  static double power() {
    if constexpr (detail::takes_powers<G>)
      return 1.3125;
    else
      return std::is_same_v<G, gradient_of::manhattan<T>> ? 1 : 2;
  }
  static G make() {
    if constexpr (detail::takes_powers<G>)
      return G(power());
    else
      return {};
  }

  // The same problem by the reference, on the same execution space.
  void reference(Gradient p, const std::vector<T>& before, Placed<T, Exec>& expected) {
    expected.all() = before;
    expected.put();
    p.out.data = expected.operand().data;
    p.kernel = "reference";
    run(p);
    Kokkos::fence("rigel::verify");
    expected.get();
  }

  void fail(const Case& c, const std::string& what) {
    engine::fail(result_, kernel_.info, detail::space_of<Exec>, seed_, c.text(), what);
  }

  const Kernel<Gradient>& kernel_;
  Verification& result_;
  unsigned seed_;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  constexpr std::int64_t extents[][4] = {// outputs, n, m, k
                                         {1, 1, 1, 1},     {1, 1, 1, 0},    {3, 2, 5, 7},    {4, 17, 33, 31},
                                         {5, 31, 64, 32},  {8, 33, 65, 33}, {9, 32, 31, 65}, {16, 34, 37, 1},
                                         {17, 5, 129, 64}, {33, 1, 3, 100}, {16, 3, 2, 600}, {2, 40, 1, 1030},
                                         {0, 3, 3, 3},     {3, 0, 3, 3},    {3, 3, 0, 3}};
  int count = 0;
  for (const auto& e : extents)
    for (const std::int64_t batch : {1, 3}) {
      list.push_back({batch, e[0], e[1], e[2], e[3], count % 3, count % 4 == 3, count % 5 > 2});
      ++count;
    }
  return list;
}

template <class G, class... Exec>
void verify_on(type_list<Exec...>, const Kernel<Gradient>& kernel, unsigned seed, Verification& result) {
  const auto on = [&]<class E>(type_list<E>) {
    if ((kernel.info.spaces & bit(detail::space_of<E>)) == 0) return;
    Verifier<G, E> verifier(kernel, result, seed);
    for (const Case& c : cases()) verifier.check(c);
  };
  (on(type_list<Exec>{}), ...);
}

/// A kernel of a functor from text, of elements T and accumulators A, held to the bits of the same text output by output on the host.
template <class T, class A, class Exec>
class TextVerifier {
  using Host = Kokkos::DefaultHostExecutionSpace;

 public:
  TextVerifier(const Kernel<Gradient>& kernel, const Kernel<Gradient>& reference, const Gradient& of, Verification& result,
               unsigned seed)
      : kernel_(kernel), reference_(reference), of_(of), result_(result), seed_(seed) {}

  void check(const Case& c) {
    Inputs<Host> expected(c, seed_ + static_cast<unsigned>(result_.problems));
    Inputs<Exec> found(c, expected);
    if (!run(kernel_, c, found)) return;
    run(reference_, c, expected);
    ++result_.problems;
    for (std::int64_t lo = 0; lo < c.batch * c.outputs; ++lo)
      for (std::int64_t n = 0; n < c.n; ++n)
        for (std::int64_t m = 0; m < c.m; ++m) add_to_digest(result_, found.out.at(lo, n, m));
    for (std::size_t i = 0; i < found.out.all().size(); ++i)
      if (!same_bits(found.out.all()[i], expected.out.all()[i]))
        return engine::fail(result_, kernel_.info, detail::space_of<Exec>, seed_, c.text(),
                            "a result has not the bits of the text output by output");
  }

 private:
  // Operands of a case, and Out before the call. Differences are 0 now and then, with a weight that is NaN, and a coefficient is infinite.
  template <class Space>
  struct Inputs {
    Placed<T, Space> a, b, c, d;
    Placed<A, Space> out;
    explicit Inputs(const Case& of)
        : a("A", of.layout, shared(of), of.k, of.m),
          b("B", (of.layout + 1) % 3, of.batch, of.n, of.k),
          c("C", (of.layout + 2) % 3, shared(of), of.outputs, of.k),
          d("D", of.layout, of.batch, of.n, of.m),
          out("Out", (of.layout + 1) % 3, of.batch * of.outputs, of.n, of.m) {}
    Inputs(const Case& of, unsigned seed) : Inputs(of) {
      std::mt19937_64 random(seed);
      const auto number = [&](auto...) {
        const double x = std::uniform_real_distribution<double>(-1, 1)(random);
        return std::is_integral_v<T> ? std::round(8 * x) : x;
      };
      a.fill(number);
      b.fill(number);
      c.fill(number);
      d.fill(number);
      out.fill(number);
      if (std::is_integral_v<T> || of.m == 0 || of.k == 0) return;
      for (std::int64_t l = 0; l < of.batch; ++l)
        for (std::int64_t n = 0; n < of.n; ++n) d.at(l, n, 0) = b.at(l, n, of.k - 1);
      for (std::int64_t l = 0; l < shared(of); ++l) {
        a.at(l, of.k - 1, 0) = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
        if (of.outputs > 1) c.at(l, 1, of.k - 1) = static_cast<T>(std::numeric_limits<float>::infinity());
      }
    }
    template <class Other>
    Inputs(const Case& of, Other& other) : Inputs(of) {
      a.all() = other.a.all();
      b.all() = other.b.all();
      c.all() = other.c.all();
      d.all() = other.d.all();
      out.all() = other.out.all();
    }
    static std::int64_t shared(const Case& of) { return of.broadcasts ? 1 : of.batch; }
  };

  // Whether a kernel covers a case. It has then computed Out.
  template <class Space>
  bool run(const Kernel<Gradient>& kernel, const Case& c, Inputs<Space>& in) const {
    for (auto* placed : {&in.a, &in.b, &in.c, &in.d}) placed->put();
    in.out.put();
    const Space exec{};
    Gradient p = problem_of(c, exec, in.a, in.b, in.c, in.d, in.out);
    p.functor = of_.functor;
    p.element = of_.element;
    p.accumulator = of_.accumulator;
    p.functor_object = of_.functor_object;
    if (!supports(kernel, p)) return false;
    rigel::run(kernel, p);
    exec.fence("rigel::verify");
    in.out.get();
    return true;
  }

  const Kernel<Gradient>&kernel_, &reference_;
  const Gradient& of_;
  Verification& result_;
  unsigned seed_;
};

template <class T, class A, class... Exec>
void verify_text_on(type_list<Exec...>, const Kernel<Gradient>& kernel, const Kernel<Gradient>& reference,
                    const Gradient& of, unsigned seed, Verification& result) {
  const auto on = [&]<class E>(type_list<E>) {
    if ((kernel.info.spaces & bit(detail::space_of<E>)) == 0) return;
    TextVerifier<T, A, E> verifier(kernel, reference, of, result, seed);
    for (const Case& c : cases()) verifier.check(c);
  };
  (on(type_list<Exec>{}), ...);
}

}  // namespace

Verification engine::verify(const Kernel<Gradient>& kernel, unsigned seed) {
  Verification result;
  const auto with = [&]<class... G>(type_list<G...>) {
    const auto one = [&]<class F>(type_list<F>) {
      Gradient p;
      p.functor = {gradient_name<F>(), gradient_type<F>()};
      p.element = scalar_of<typename F::element>;
      p.accumulator = scalar_of<typename F::accumulator>;
      if (p.key() == Gradient::key_of(kernel.info)) verify_on<F>(detail::compiled_spaces{}, kernel, seed, result);
    };
    (one(type_list<G>{}), ...);
  };
  with(detail::gradient_functors{});
  return result;
}

void engine::verify_text(const Kernel<Gradient>& kernel, const Kernel<Gradient>& reference, const Gradient& of,
                         unsigned seed, Verification& result) {
  const auto with = [&]<class T, class A>() {
    verify_text_on<T, A>(detail::compiled_spaces{}, kernel, reference, of, seed, result);
  };
  switch (of.element) {
    case Scalar::f64: return with.template operator()<double, double>();
    case Scalar::f16: return with.template operator()<half, float>();
    case Scalar::bf16: return with.template operator()<bfloat16, float>();
    case Scalar::i32: return with.template operator()<std::int32_t, std::int32_t>();
    case Scalar::i64: return with.template operator()<std::int64_t, std::int64_t>();
    default: return with.template operator()<float, float>();
  }
}

}  // namespace rigel
