// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every operation on Kokkos's default execution space, with a user's functors and with the library's own semirings. It is compiled
// for spaces that no machine of ours has (scripts/check_hip), and never run. Rigel's library holds no kernels for such a space, so
// this file instantiates all of them.
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

namespace {

using Exec = Kokkos::DefaultExecutionSpace;
template <class T>
using Matrix = Kokkos::View<T**, Exec>;
using Bytes = Kokkos::View<std::byte*, Exec>;  // a workspace: Rigel's pool has no memory of a space that it does not know

// C(m,n) = Σ_k w·|a − b|, w a hyperparameter.
struct WeightedL1 {
  using element = float;
  using accumulator = float;
  float w;
  KOKKOS_FUNCTION static float identity() { return 0; }
  KOKKOS_FUNCTION float multiply(float a, float b) const { return w * Kokkos::abs(a - b); }
  KOKKOS_FUNCTION float add(float x, float y) const { return x + y; }
};

struct Doubled {
  KOKKOS_FUNCTION float operator()(float value, std::int64_t, std::int64_t, std::int64_t) const { return 2 * value; }
};

template <class T>
Matrix<T> matrix(int rows, int columns) {
  return {"matrix", static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
}

// contract() with a semiring of the library, in a type of its own.
template <class S>
void contract_with(const Exec& exec, const S& semiring) {
  using Element = typename S::element;
  rigel::contract(exec, semiring, matrix<Element>(37, 17), matrix<Element>(17, 29), matrix<Element>(37, 29));
}

void contract(const Exec& exec) {
  const auto a = matrix<float>(37, 17), b = matrix<float>(17, 29), c = matrix<float>(37, 29);
  rigel::contract(exec, WeightedL1{0.5f}, a, b, c);
  rigel::contract(exec, WeightedL1{0.5f}, a, b, c, Doubled{});
  rigel::contract(exec, rigel::min_plus<float>{}, a, b, c, rigel::epilogue::clamp(0, 10) | rigel::epilogue::laplace(2.0));
  rigel::contract(exec, rigel::with_argument<rigel::min_plus<float>>{}, a, b, c,
                  rigel::epilogue::arguments(matrix<std::int32_t>(37, 29)));
  contract_with(exec, rigel::plus_times<float>{});
  contract_with(exec, rigel::plus_times<double>{});
  contract_with(exec, rigel::plus_times<rigel::half>{});
  contract_with(exec, rigel::plus_times<rigel::bfloat16>{});
  contract_with(exec, rigel::plus_times<std::int64_t>{});
  contract_with(exec, rigel::log_plus<float>{});
  contract_with(exec, rigel::log_plus<double>{});
  contract_with(exec, rigel::max_min<std::int32_t>{});
  contract_with(exec, rigel::or_and<std::uint64_t>{});
}

void cdist(const Exec& exec) {
  const auto x = matrix<float>(37, 17), z = matrix<float>(29, 17), d = matrix<float>(37, 29);
  rigel::cdist(exec, x, z, d, rigel::metric::euclidean{});
  rigel::cdist(exec, x, z, d, rigel::metric::minkowski{1.3});
  const Bytes bytes("bytes", rigel::cdist_workspace_size(exec, x, z, d, rigel::metric::cosine{}));
  rigel::cdist(exec, x, z, d, rigel::metric::cosine{}, {.workspace = {bytes.data(), bytes.size()}});
  const auto codes = matrix<std::uint32_t>(37, 4);
  rigel::cdist(exec, codes, codes, matrix<float>(37, 37), rigel::metric::bit_jaccard{});
}

template <class T>
void gradients_with(const Exec& exec) {
  const auto x = matrix<T>(37, 17), z = matrix<T>(29, 17), g = matrix<T>(37, 29), dx = matrix<T>(37, 17),
             dz = matrix<T>(29, 17);
  const Kokkos::View<T, Exec> h("h");
  const auto call = [&](const auto& metric, const auto& kernel, const auto& dk) {
    rigel::KernelMatrixGradientOptions options;
    const Bytes bytes("bytes", rigel::kernel_matrix_gradient_workspace_size(exec, x, z, g, metric, kernel, dx, dz, dk));
    options.workspace = {bytes.data(), bytes.size()};
    rigel::kernel_matrix_gradient(exec, x, z, g, metric, kernel, dx, dz, dk, options);
    exec.fence();
  };
  call(rigel::metric::euclidean{}, rigel::kernel::matern52{1}, rigel::kernel::matern52{h});
  call(rigel::metric::minkowski{1.3}, rigel::kernel::gaussian{1}, rigel::kernel::gaussian{h});
  call(rigel::metric::inner_product{}, rigel::kernel::polynomial{2}, rigel::kernel::polynomial{0, h, 0});
}

void closures(const Exec& exec) {
  const rigel::min_plus<float> paths;
  const auto d = matrix<float>(37, 37);
  const auto p = matrix<std::int32_t>(37, 37);
  const auto reached = matrix<std::uint32_t>(37, 2);
  const Bytes of_closure("bytes", rigel::closure_workspace_size(exec, paths, d, p)),
      of_transitive_closure("bytes", rigel::transitive_closure_workspace_size(exec, reached));
  rigel::closure(exec, paths, d, {.workspace = {of_closure.data(), of_closure.size()}});
  rigel::closure(exec, paths, d, p, {.workspace = {of_closure.data(), of_closure.size()}});
  rigel::transitive_closure(exec, reached, {.workspace = {of_transitive_closure.data(), of_transitive_closure.size()}});
}

void linear(const Exec& exec) {
  const auto x = matrix<float>(37, 17), w = matrix<float>(17, 29), y = matrix<float>(37, 29), z = matrix<float>(37, 29);
  const Kokkos::View<float*, Exec> bias("bias", 29);
  rigel::linear_forward(exec, x, w, bias, y, rigel::LinearOptions{.epilogue = rigel::Activation::gelu});
  rigel::linear_forward(exec, x, w, bias, y, z, rigel::LinearOptions{.epilogue = rigel::Activation::gelu});
  rigel::linear_forward(exec, x, w, bias, y, rigel::LinearOptions{.epilogue = Doubled{}});
  rigel::linear_forward(exec, x, w, bias, y, z, rigel::LinearOptions{.epilogue = Doubled{}});
  const Bytes of_weight("bytes", rigel::linear_backward_weight_workspace_size(exec, x, y, w, bias)),
      of_input("bytes", rigel::linear_backward_input_workspace_size(exec, y, w, x, x, rigel::Activation::silu));
  rigel::linear_backward_weight(exec, x, y, w, bias, {.workspace = {of_weight.data(), of_weight.size()}});
  rigel::linear_backward_input(exec, y, w, x, x, rigel::Activation::silu, {.workspace = {of_input.data(), of_input.size()}});
}

void reductions(const Exec& exec) {
  const auto a = matrix<float>(37, 17), b = matrix<float>(17, 29), z = matrix<float>(29, 17), best = matrix<float>(37, 5);
  const auto places = matrix<std::int32_t>(37, 5);
  const auto with = [&](const auto& semiring, const auto& epilogue) {
    const rigel::reducer::smallest five{5};
    const Bytes bytes("bytes", rigel::reduce_workspace_size(exec, semiring, a, b, five, best, places, epilogue));
    rigel::reduce(exec, semiring, a, b, five, best, places, epilogue, {.workspace = {bytes.data(), bytes.size()}});
  };
  with(rigel::max_plus<float>{}, rigel::epilogue::scale(2));
  with(WeightedL1{0.5f}, Doubled{});
  const Bytes bytes("bytes", rigel::reduce_distances_workspace_size(exec, a, z, rigel::metric::cosine{},
                                                                    rigel::reducer::smallest{5}, best, places));
  rigel::nearest(exec, a, z, rigel::metric::cosine{}, 5, places, best, {.workspace = {bytes.data(), bytes.size()}});
}

struct SumOfSquares {
  KOKKOS_FUNCTION double identity() const { return 0; }
  KOKKOS_FUNCTION double of(double score, std::int64_t) const { return score * score; }
  KOKKOS_FUNCTION double join(double x, double y) const { return x + y; }
  KOKKOS_FUNCTION double result(double x) const { return x; }
};

void weighted_reductions(const Exec& exec) {
  const auto x = matrix<double>(37, 3), y = matrix<double>(37, 2), alpha = matrix<double>(37, 2),
             centres = matrix<double>(5, 3);
  const auto bins = matrix<std::int32_t>(37, 4);
  const Kokkos::View<double*, Exec> f("f", 37), g("g", 37), weights("weights", 37), edges("edges", 5);
  const Kokkos::View<std::int32_t*, Exec> labels("labels", 37);
  const rigel::metric::squared_euclidean squares;
  const rigel::kernel::gaussian<> kernel{0.5};
  const auto with = [&](const auto& reducer, const auto& values) {
    const Bytes bytes("bytes", rigel::reduce_distances_workspace_size(exec, x, x, squares, reducer, values));
    rigel::reduce_distances(exec, x, x, squares, reducer, values, rigel::no_output, rigel::epilogue::Program{},
                            {.workspace = {bytes.data(), bytes.size()}});
  };
  with(rigel::reducer::weighted_sum{y}, alpha);
  with(rigel::reducer::softmax_weighted{y}, alpha);
  with(rigel::reducer::histogram{edges}, bins);
  with(rigel::reducer::monoid{SumOfSquares{}}, f);
  rigel::SinkhornOptions of_sinkhorn{.epsilon = 0.1};
  const Bytes plan("bytes", rigel::sinkhorn_workspace_size(exec, x, x, weights, weights, squares, f, g, of_sinkhorn));
  of_sinkhorn.workspace = {plan.data(), plan.size()};
  rigel::sinkhorn(exec, x, x, weights, weights, squares, f, g, of_sinkhorn);
  rigel::KMeansOptions of_kmeans;
  const Bytes clusters("bytes", rigel::kmeans_workspace_size(exec, x, centres, labels));
  of_kmeans.workspace = {clusters.data(), clusters.size()};
  rigel::kmeans(exec, x, 5, centres, labels, of_kmeans);
  rigel::KernelSolveOptions of_solve;
  const Bytes system("bytes",
                     rigel::kernel_solve_workspace_size(exec, x, y, rigel::metric::euclidean{}, kernel, 0.1, alpha));
  of_solve.workspace = {system.data(), system.size()};
  rigel::kernel_solve(exec, x, y, rigel::metric::euclidean{}, kernel, 0.1, alpha, of_solve);
}

void solves(const Exec& exec) {
  const auto a = matrix<double>(37, 37), b = matrix<double>(37, 3), x = matrix<double>(37, 3), v = matrix<double>(37, 37);
  const Kokkos::View<double*, Exec> w("w", 37);
  const auto with_bytes = [](const rigel::Solve& problem) { return Bytes("bytes", rigel::workspace_size(problem).bytes); };
  const Bytes definite = with_bytes(rigel::cholesky_solve_problem(exec, a, b, x)),
              general = with_bytes(rigel::lu_solve_problem(exec, a, b, x)),
              symmetric = with_bytes(rigel::eigh_problem(exec, a, w, v));
  rigel::cholesky_solve(exec, a, b, x, {.workspace = {definite.data(), definite.size()}});
  rigel::lu_solve(exec, a, b, x, {.workspace = {general.data(), general.size()}});
  rigel::eigh(exec, a, w, v, {.workspace = {symmetric.data(), symmetric.size()}});
  rigel::cholesky_factor(exec, a, v);
  rigel::log_determinant(exec, v, Kokkos::View<double, Exec>("d"));
  rigel::cholesky_solve_factored(exec, v, b, x);
  const auto single = matrix<float>(37, 37), side = matrix<float>(37, 3), solution = matrix<float>(37, 3);
  const Bytes refined = with_bytes(rigel::cholesky_solve_problem(exec, single, side, solution, {}, {.refine = 2}));
  rigel::cholesky_solve(exec, single, side, solution, {.refine = 2, .workspace = {refined.data(), refined.size()}});
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Exec exec;
  contract(exec);
  cdist(exec);
  gradients_with<float>(exec);
  gradients_with<double>(exec);
  closures(exec);
  linear(exec);
  reductions(exec);
  weighted_reductions(exec);
  solves(exec);
  exec.fence();
}
