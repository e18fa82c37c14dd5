// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// epilogue::arguments() through every family: values and winning k compared with a plain loop, in every layout, and in batches
// whose index is first or last.
#include <rigel/contract.hpp>

#include <tests/support/kernels.hpp>
#include <tests/support/memory.hpp>
#include <tests/support/random.hpp>
#include <tests/support/spaces.hpp>

#include <limits>
#include <string>
#include <vector>

namespace {

constexpr int batches = 3, m = 19, n = 37, depth = 23;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// All elements of a view, through its memory.
template <class View>
class Elements {
 public:
  using T = typename View::non_const_value_type;
  Elements(const View& view, rigel::Batch order) : view_(view), order_(order), host_(view.span()) { download(); }
  T& at(int l, int i, int j) {
    const auto s = [&](int r) { return static_cast<int>(view_.stride(r)); };
    if constexpr (View::rank() == 2)
      return host_[i * s(0) + j * s(1)];
    else
      return order_ == rigel::Batch::first ? host_[l * s(0) + i * s(1) + j * s(2)] : host_[i * s(0) + j * s(1) + l * s(2)];
  }
  void upload() { support::copy_in<typename View::execution_space>(view_.data(), host_.data(), host_.size() * sizeof(T)); }
  void download() {
    support::copy_out<typename View::execution_space>(host_.data(), view_.data(), host_.size() * sizeof(T));
  }

 private:
  View view_;
  rigel::Batch order_;
  std::vector<T> host_;
};

template <class T, class Layout, class Exec>
auto three(rigel::Batch order, int rows, int columns) {
  const auto label = Kokkos::view_alloc("batch", Kokkos::WithoutInitializing);
  using View = Kokkos::View<T***, Layout, typename Exec::memory_space>;
  return order == rigel::Batch::first ? View(label, batches, rows, columns) : View(label, rows, columns, batches);
}

// The winning k of one output and its value: the first of the best, or the first NaN.
template <class S, class A, class B>
rigel::argument<double> winner(const S& s, A& a, B& b, int l, int i, int j) {
  rigel::argument<double> best = {nan, -1};
  for (int k = 0; k < depth; ++k) {
    const auto x = s.multiply(a.at(l, i, k), b.at(l, k, j));
    const auto old = static_cast<decltype(x)>(best.value);
    if (best.index >= 0 && (old != old || s.add(old, x) == old)) continue;
    best = {static_cast<double>(x), k};
  }
  return best;
}

template <class S, class View>
void fill(Elements<View>& x, support::Random& random, int rows, int columns, int count) {
  for (int l = 0; l < count; ++l)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        x.at(l, i, j) = static_cast<typename S::element>(random.integer(-4, 4));  // few values, so most outputs have ties
  if constexpr (std::is_floating_point_v<typename S::element>)
    for (int e = 0; e < 7 * count; ++e)
      x.at(e % count, static_cast<int>(random.integer(0, rows - 1)), static_cast<int>(random.integer(0, columns - 1))) = nan;
  x.upload();
}

bool same(double x, double y) { return x == y || (x != x && y != y); }

// One call by every family of this build. `epilogue` stores indices in `indices`, and C must hold last(value).
template <class S, class Exec, class A, class B, class C, class I, class E, class Last>
void check(const A& a, const B& b, const C& c, const I& indices, rigel::Batch order, const E& epilogue, const Last& last) {
  using Indices = typename rigel::detail::view_t<I>;
  const int count = C::rank() == 3 ? batches : 1;
  support::Random random(7);
  Elements<A> in_a(a, order);
  Elements<B> in_b(b, order);
  fill<S>(in_a, random, m, depth, count);
  fill<S>(in_b, random, depth, n, count);
  for (const std::string& family : support::families_on(Exec{})) {
    CAPTURE(family);
    Indices view;
    constexpr bool turned = !std::is_same_v<I, Indices>;
    if constexpr (turned)
      view = indices.view;
    else
      view = indices;
    Elements<C> out(c, order);
    Elements<Indices> found(view, order);
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          out.at(l, i, j) = 77;
          (turned ? found.at(l, j, i) : found.at(l, i, j)) = -5;
        }
    out.upload();
    found.upload();
    rigel::contract(Exec{}, rigel::with_argument<S>{}, a, b, c, epilogue, {.batch = order, .kernel = family});
    out.download();
    found.download();
    int wrong = 0;
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          const auto best = winner(S{}, in_a, in_b, l, i, j);
          wrong += (turned ? found.at(l, j, i) : found.at(l, i, j)) != best.index;
          wrong += !same(static_cast<double>(out.at(l, i, j)), last(best.value));
        }
    CHECK(wrong == 0);
  }
}

template <class S, class Exec>
void check_all() {
  using T = typename S::element;
  using Space = typename Exec::memory_space;
  using Right = Kokkos::LayoutRight;
  using Left = Kokkos::LayoutLeft;
  using rigel::Batch;
  const auto as_it_is = [](double v) { return v; };
  {
    const Kokkos::View<T**, Right, Space> a("a", m, depth), b("b", depth, n), c("c", m, n);
    const Kokkos::View<int**, Right, Space> i("i", m, n);
    check<S, Exec>(a, b, c, i, Batch::first, rigel::epilogue::arguments(i), as_it_is);
    // Bytes hold 22, the largest k.
    const Kokkos::View<std::int8_t**, Left, Space> bytes("i", m, n);
    check<S, Exec>(a, b, c, bytes, Batch::first, rigel::epilogue::arguments(bytes), as_it_is);
    const Kokkos::View<std::int64_t**, Right, Space> t("i", n, m);
    const auto turned = rigel::transposed(t);
    check<S, Exec>(a, b, c, turned, Batch::first, rigel::epilogue::arguments(turned), as_it_is);
    const Kokkos::View<double**, Right, Space> halves("c", m, n);
    check<S, Exec>(a, b, halves, i, Batch::first, rigel::epilogue::arguments(i) | rigel::epilogue::scale(0.5),
                   [](double v) { return v / 2; });
  }
  for (const Batch order : {Batch::first, Batch::last}) {
    CAPTURE(int(order));
    const auto a = three<T, Right, Exec>(order, m, depth);
    const auto b = three<T, Left, Exec>(order, depth, n);
    const auto c = three<T, Right, Exec>(order, m, n);
    const auto i = three<int, Left, Exec>(order, m, n);
    check<S, Exec>(a, b, c, i, order, rigel::epilogue::arguments(i), as_it_is);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("epilogue::arguments: values and winners against a loop", Exec, RIGEL_TEST_SPACES) {
  check_all<rigel::min_plus<float>, Exec>();
  check_all<rigel::max_min<std::int32_t>, Exec>();
}
