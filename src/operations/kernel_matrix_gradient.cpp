// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kernel_matrix_gradient() on operands. For each block of rows of X: distances or products S into the workspace, a pass that
// makes weights W of them in place, then dZ and dX from W, by two sums of differences or two products. Of a sum over rows of X
// (dZ, hyperparameters) each block adds its part in turn.
#include "driver.hpp"
#include "symmetric.hpp"

#include <rigel/detail/kernel.hpp>
#include <rigel/detail/kernel_derivatives.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rigel::detail {
namespace {

constexpr std::uintptr_t nominal_address = workspace_alignment;  // stands in for memory that is aligned as workspaces are
constexpr std::int64_t multiple = 128;  // so many rows, of any pitch, begin as aligned as the first one, for every kernel

class Driver {
 public:
  explicit Driver(const KernelMatrixGradient& call)
      : call_(call), given_(std::exchange(call_.distances.workspace, {})), n_(call_.z.rows) {
    const Operand* const inputs[] = {&call_.x, &call_.z, &call_.left, &call_.right};
    for (const Operand* o : inputs)
      if (batches_ == 1) batches_ = o->batches;
    check();
    pitch_ = (n_ + 31) / 32 * 32;
    height_ = std::min(call_.block_rows > 0 ? call_.block_rows : height_of(call_.x.size), call_.x.rows);
    if (!call_.launch) call_.launch = compiled_kernel_weights(call_.formula, call_.x.type);
    place(nominal_address);
  }

  std::size_t bytes() {
    if (is_empty()) return 0;
    std::size_t most = 0;
    for_each_block([&](Range rows) {
      // After the first two, of which the second adds to dZ, only one of another height differs, if all are aligned alike.
      if (rows.first > height_ && rows.count == height_ && height_ % multiple == 0) return;
      most = std::max(most, bytes_symmetric(distances(rows)));
      for_each_result(rows, [&](const auto& problem) {
        if (!problem.is_empty()) most = std::max(most, workspace_of(problem));
      });
    });
    inner_.bytes = most;
    return own_bytes_ + most;
  }

  std::string explanation() {
    const KernelMatrixGradientParts all = parts();
    std::string text = "kernel_matrix_gradient, " + std::to_string(all.bytes) + " bytes of workspace, blocks of " +
                       std::to_string(all.block_rows) + " rows\n";
    if (is_empty()) return text + "nothing to compute\n";
    const auto explained = [](const auto& problem) {
      if constexpr (std::is_same_v<std::decay_t<decltype(problem)>, Contraction>)
        return listing_symmetric(problem);
      else
        return listing(problem);
    };
    for (const auto& part : all.parts) text += part.name + ": " + std::visit(explained, part.problem);
    return text + legend(distances({0, height_}));
  }

  KernelMatrixGradientParts parts() {
    KernelMatrixGradientParts all{.bytes = bytes(), .block_rows = height_, .parts = {}};
    if (is_empty()) return all;
    const Range first{0, height_};
    const auto add = [&](const char* name, const auto& problem) {
      if (!problem.is_empty()) all.parts.push_back({name, problem});
    };
    add(call_.p > 0 ? "distances" : "products", distances(first));
    for_each_result(first, [&](const auto& problem) { add(written(problem).argument, problem); });
    return all;
  }

  void run() {
    const std::size_t needed = bytes();  // before anything is enqueued: throws if a part has no kernel
    if (is_empty()) return;
    const Contraction& p = call_.distances;
    const Kokkos::Profiling::ScopedRegion region("rigel::kernel_matrix_gradient");
    const auto pointer = [](const std::optional<Operand>& o) { return o ? &*o : nullptr; };
    const CallMemory memory(
        p.function, p.execution, given_, needed,
        {&call_.x, &call_.z, &call_.left, &call_.right, pointer(call_.dx), pointer(call_.dz), pointer(call_.results[0]),
         pointer(call_.results[1]), pointer(call_.results[2]), pointer(call_.value_operands[0]),
         pointer(call_.value_operands[1]), pointer(call_.value_operands[2])});
    place(memory.address());
    for_each_block([&](Range rows) {
      run_symmetric(distances(rows));
      call_.launch(p.execution, pass(rows));
      for_each_result(rows, [](const auto& problem) { rigel::run(problem); });
    });
  }

 private:
  static const Operand& written(const Gradient& p) { return p.out; }
  static const Operand& written(const Contraction& p) { return p.c; }

  // A sum of differences or a product.
  struct Result {
    Operand weights, others, points, out;  // out(i,:) of points(i,:) and others(j,:), weighted by weights(i,j)
    bool accumulate;
  };

  bool sums() const {
    return std::ranges::any_of(call_.results, [](const std::optional<Operand>& o) { return o.has_value(); });
  }
  bool is_empty() const {
    const auto has_elements = [](const std::optional<Operand>& o) { return o && o->rows > 0 && o->columns > 0; };
    return batches_ == 0 || !(sums() || has_elements(call_.dx) || has_elements(call_.dz));
  }

  void require_shape(const Operand& o, std::int64_t rows, std::int64_t columns, const char* names) const {
    if (o.rows != rows || o.columns != columns)
      refuse(call_.distances, describe_argument(o, " is ") + ", expected " + std::to_string(rows) + 'x' +
                                  std::to_string(columns) + " (" + names + ") to match " + describe_argument(call_.x) +
                                  " and " + describe_argument(call_.z));
  }
  void require_batches_of(const Operand& o, bool broadcasts, const char* what = "") const {
    if (o.batches == batches_ || (broadcasts && o.batches == 1)) return;
    const std::string expected = batches_ == 1 ? "one batch" : std::to_string(batches_) + " batches";
    refuse(call_.distances, what + describe_argument(o, " is ") + ", expected " + expected +
                                (broadcasts && batches_ != 1 ? " or one" : "") +
                                ", as many as X, Z and the upstream gradient have");
  }

  void check() const {
    const Contraction& p = call_.distances;
    const std::int64_t m = call_.x.rows, k = call_.x.columns;
    require_extent(p, call_.z, "columns", call_.z.columns, k, call_.x);
    std::vector<const Operand*> inputs = {&call_.x, &call_.z, &call_.left}, results;
    require_shape(call_.left, m, call_.is_outer ? 1 : n_, call_.is_outer ? "M numbers" : "M x N");
    if (call_.is_outer) {
      require_shape(call_.right, 1, n_, "N numbers");
      inputs.push_back(&call_.right);
    }
    for (const auto& value : call_.value_operands)
      if (value) inputs.push_back(&*value);
    for (const Operand* o : inputs) require_batches_of(*o, true);
    if (call_.dx) {
      require_shape(*call_.dx, m, k, "M x K");
      results.push_back(&*call_.dx);
    }
    if (call_.dz && !call_.is_self) {
      require_shape(*call_.dz, n_, k, "N x K");
      results.push_back(&*call_.dz);
    }
    for (const Operand* o : results) require_batches_of(*o, false);
    for (const auto& result : call_.results) {
      if (!result) continue;
      require_batches_of(*result, false, "the gradient by ");
      results.push_back(&*result);
    }
    if (call_.block_rows < 0)
      refuse(p, "options.block_rows is " + std::to_string(call_.block_rows) + ", expected 0 or more");
    if (batches_ == 0) return;
    const auto has_elements = [](const Operand& o) { return o.rows > 0 && o.columns > 0; };
    for (const Operand* o : inputs)
      if (has_elements(*o)) require_data(p, *o);
    for (const Operand* o : results) {
      if (!has_elements(*o)) continue;
      require_data(p, *o);
      require_distinct(p, *o);
      for (const Operand* input : inputs)
        if (has_elements(*input)) require_disjoint(p, *o, *input);
      for (const Operand* other : results) {
        if (other == o) break;
        if (has_elements(*other)) require_disjoint(p, *o, *other);
      }
    }
  }

  // Rows whose weights take 256 MiB: enough of them for the results' kernels, few enough to leave memory.
  std::int64_t height_of(std::size_t size) const {
    constexpr std::int64_t budget = std::int64_t{256} << 20;
    const std::int64_t row = std::max<std::int64_t>(1, batches_ * pitch_ * static_cast<std::int64_t>(size));
    return std::max<std::int64_t>(1, budget / row / multiple) * multiple;
  }

  // use(rows) for each block; once, without rows, if X has none.
  template <class Use>
  void for_each_block(const Use& use) const {
    std::int64_t first = 0;
    do {
      use(Range{first, std::min(height_, call_.x.rows - first)});
      first += height_;
    } while (first < call_.x.rows);
  }

  // Weights, ones, sums of parts, totals; then what the parts of the call need.
  void place(std::uintptr_t base) {
    const Operand element{.type = call_.x.type, .size = call_.x.size, .batches = batches_},
        number{.type = Scalar::f64, .size = sizeof(double), .batches = batches_};
    std::uintptr_t next = place_matrices(weights_, base, element, height_, n_, pitch_, true);
    weights_.argument = "the workspace";
    if (call_.of_distance) {
      Operand single = element;
      single.batches = 1;
      const std::int64_t count = std::max(height_, n_);
      next = place_matrices(ones_, next, single, 1, count, count, true);
      ones_.argument = "ones";
    }
    if (sums()) {
      const std::int64_t parts = height_ * ((n_ + kernel_weights_width - 1) / kernel_weights_width);
      next = place_matrices(parts_, next, number, parts, most_hyperparameters, most_hyperparameters, true);
      next = place_matrices(totals_, next, number, 1, most_hyperparameters, most_hyperparameters, true);
    }
    own_bytes_ = next - base;
    inner_.data = reinterpret_cast<void*>(next);
  }

  Contraction distances(Range rows) const {
    Contraction p = call_.distances;
    p.a = rows_of(call_.x, rows);
    p.c = rows_of(weights_, {0, rows.count});
    p.batch = batches_;
    p.m = rows.count;
    p.n = n_;
    p.k = call_.x.columns;
    p.workspace = inner_;
    return p;
  }

  KernelWeightsPass pass(Range rows) const {
    KernelWeightsPass pass{.values = rows_of(weights_, {0, rows.count}),
                           .left = rows_of(call_.left, rows),
                           .right = call_.right,
                           .p = call_.p,
                           .parts = parts_,
                           .totals = totals_,
                           .ones = ones_,
                           .first = rows.first == 0,
                           .last = rows.first + rows.count == call_.x.rows,
                           .accumulate = call_.accumulate};
    for (int j = 0; j < most_hyperparameters; ++j) {
      pass.hyperparameters[j] = call_.values[j];
      if (const auto& result = call_.results[j]) pass.results[j] = *result;
    }
    return pass;
  }

  // use(problem) for dZ and dX of a block, where they are wanted: in this order, since dX of X with itself is dZ, too.
  template <class Use>
  void for_each_result(Range rows, const Use& use) const {
    const auto with = [&](const Result& r) {
      if (call_.of_distance)
        use(sum_of_differences(*call_.of_distance, r.weights, r.others, r.points, r.out, ones_, r.accumulate, inner_));
      else if (call_.of_product)
        use(weighted_product(*call_.of_product, r.weights, r.others, r.out, r.accumulate, inner_));
    };
    const Operand weights = rows_of(weights_, {0, rows.count}), x = rows_of(call_.x, rows);
    if (const auto& dz = call_.dz) with({transpose(weights), x, call_.z, *dz, call_.accumulate || rows.first > 0});
    if (const auto& dx = call_.dx) with({weights, call_.z, x, rows_of(*dx, rows), call_.accumulate || call_.is_self});
  }

  KernelMatrixGradient call_;
  Workspace given_, inner_;
  std::int64_t n_, batches_ = 1, height_ = 0, pitch_ = 0;
  Operand weights_, ones_, parts_, totals_;
  std::size_t own_bytes_ = 0;
};

}  // namespace

LaunchKernelWeights compiled_kernel_weights(KernelFormula formula, Scalar element) {
  const auto of = [&]<KernelFormula f>() -> LaunchKernelWeights {
    return element == Scalar::f32 ? launch_kernel_weights<compiled_spaces, float, f>
                                  : launch_kernel_weights<compiled_spaces, double, f>;
  };
  switch (formula) {
    case KernelFormula::laplace: return of.template operator()<KernelFormula::laplace>();
    case KernelFormula::gaussian: return of.template operator()<KernelFormula::gaussian>();
    case KernelFormula::matern32: return of.template operator()<KernelFormula::matern32>();
    case KernelFormula::matern52: return of.template operator()<KernelFormula::matern52>();
    case KernelFormula::rational_quadratic: return of.template operator()<KernelFormula::rational_quadratic>();
    case KernelFormula::polynomial: return of.template operator()<KernelFormula::polynomial>();
    case KernelFormula::sigmoid: return of.template operator()<KernelFormula::sigmoid>();
  }
  return nullptr;
}

void run_kernel_matrix_gradient(const KernelMatrixGradient& call) { Driver(call).run(); }

std::size_t kernel_matrix_gradient_bytes(const KernelMatrixGradient& call) { return Driver(call).bytes(); }

std::string explain_kernel_matrix_gradient(const KernelMatrixGradient& call) { return Driver(call).explanation(); }

KernelMatrixGradientParts kernel_matrix_gradient_parts(const KernelMatrixGradient& call) { return Driver(call).parts(); }

}  // namespace rigel::detail
