// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of kernel_matvec(), softmax_matvec() and logsumexp() on operands, by rows of X in strips that fit the workspace. For each strip:
// distances or products S; what comes from V, U = g·Vᵀ; a pass that makes kernels K, or shares P of a softmax, and weights W in place of S; then
// dV from K or P, and dZ and dX from W. Of a sum over rows of X (dV, dZ, hyperparameters) each strip adds its part in turn.
#include "driver.hpp"
#include "symmetric.hpp"

#include <rigel/detail/kernel.hpp>
#include <rigel/detail/matvec_gradient_passes.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rigel::detail {
namespace {

constexpr std::uintptr_t nominal_address = workspace_alignment;  // stands in for memory that is aligned as workspaces are
constexpr std::size_t default_limit = std::size_t{64} << 20;
constexpr std::int64_t multiple = 128;  // so many rows, of any pitch, begin as aligned as the first one, for every kernel

bool has_elements(const std::optional<Operand>& o) { return o && o->batches > 0 && o->rows > 0 && o->columns > 0; }

class Driver {
 public:
  explicit Driver(const MatvecGradient& call)
      : call_(call), given_(std::exchange(call_.of.distances.workspace, {})), n_(call_.of.z.rows), d_(call_.g.columns) {
    for (const Operand* o : inputs())
      if (batches_ == 1) batches_ = o->batches;
    check();
    pitch_ = (n_ + 31) / 32 * 32;
    height_ = std::min(call_.of.block_rows > 0 ? call_.of.block_rows : height_of(), call_.of.x.rows);
    if (!call_.of.launch && !call_.is_softmax) call_.of.launch = compiled_kernel_weights(call_.of.formula, call_.of.x.type);
    if (!call_.passes.copy) call_.passes = matvec_gradient_passes<compiled_spaces>();
    place(nominal_address);
  }

  std::size_t bytes() {
    if (is_empty()) return 0;
    std::size_t most = 0;
    for_each_strip([&](Range rows) {
      // After the first two, of which the second adds to sums, only one of another height differs, if all are aligned alike.
      if (rows.first > height_ && rows.count == height_ && height_ % multiple == 0) return;
      walk(
          rows, [&](const Contraction& p) { most = std::max(most, bytes_symmetric(p)); },
          [&](const auto& p) {
            if (!p.is_empty()) most = std::max(most, workspace_of(p));
          },
          [](const auto&) {});
    });
    inner_.bytes = most;
    return own_bytes_ + most;
  }

  void run() {
    const std::size_t needed = bytes();  // before anything is enqueued: throws if a part has no kernel
    if (is_empty()) return;
    const Contraction& p = call_.of.distances;
    const Kokkos::Profiling::ScopedRegion region("rigel::matvec_gradient");
    const auto pointer = [](const std::optional<Operand>& o) { return o ? &*o : nullptr; };
    const KernelMatrixGradient& of = call_.of;
    const CallMemory memory(
        p.function, p.execution, given_, needed,
        {&of.x, &of.z, &call_.v, &call_.g, pointer(of.dx), pointer(of.dz), pointer(of.results[0]), pointer(of.results[1]),
         pointer(of.results[2]), pointer(of.value_operands[0]), pointer(of.value_operands[1]), pointer(of.value_operands[2]),
         pointer(call_.scale_operand), pointer(call_.of_rows), pointer(call_.of_columns), pointer(call_.dv),
         pointer(call_.drows), pointer(call_.dcolumns), pointer(call_.dscale)});
    place(memory.address());
    if (has_elements(ones_)) call_.passes.copy(p.execution, {.to = ones_, .from = {}, .value = 1});
    for_each_strip([&](Range rows) {
      walk(
          rows, [](const Contraction& scores) { run_symmetric(scores); }, [](const auto& problem) { rigel::run(problem); },
          [](const auto& launch) { launch(); });
    });
  }

 private:
  // ---- checks --------------------------------------------------------------------------------------------------------

  bool has_v() const { return call_.v.size > 0; }
  bool sums_hyperparameters() const {
    return std::ranges::any_of(call_.of.results, [](const auto& o) { return o.has_value(); });
  }
  std::vector<const Operand*> inputs() const {
    std::vector<const Operand*> all = {&call_.of.x, &call_.of.z, &call_.g};
    if (has_v()) all.push_back(&call_.v);
    for (const auto* o : {&call_.scale_operand, &call_.of_rows, &call_.of_columns, &call_.of.value_operands[0],
                          &call_.of.value_operands[1], &call_.of.value_operands[2]})
      if (*o) all.push_back(&**o);
    return all;
  }
  bool is_empty() const {
    if (batches_ == 0) return true;
    for (const auto* o : {&call_.of.dx, &call_.of.dz, &call_.dv, &call_.drows, &call_.dcolumns, &call_.dscale,
                          &call_.of.results[0], &call_.of.results[1], &call_.of.results[2]})
      if (has_elements(*o)) return false;
    return true;
  }

  void require_shape(const Operand& o, std::int64_t rows, std::int64_t columns, const char* names) const {
    if (o.rows != rows || o.columns != columns)
      refuse(call_.of.distances, describe_argument(o, " is ") + ", expected " + std::to_string(rows) + 'x' +
                                     std::to_string(columns) + " (" + names + ") to match " + describe_argument(call_.of.x) +
                                     " and " + describe_argument(call_.of.z));
  }
  void check() const {
    const Contraction& p = call_.of.distances;
    const std::int64_t m = call_.of.x.rows, k = call_.of.x.columns;
    require_extent(p, call_.of.z, "columns", call_.of.z.columns, k, call_.of.x);
    require_shape(call_.g, m, d_, has_v() ? "M x D" : "M numbers");
    if (has_v()) require_shape(call_.v, n_, d_, "N x D");
    if (call_.of_rows) require_shape(*call_.of_rows, m, 1, "M numbers");
    if (call_.of_columns) require_shape(*call_.of_columns, n_, 1, "N numbers");
    if (call_.of.block_rows < 0)
      refuse(p, "options.block_rows is " + std::to_string(call_.of.block_rows) + ", expected 0 or more");
    std::vector<const Operand*> results;
    const auto add = [&](const std::optional<Operand>& o, std::int64_t rows, std::int64_t columns, const char* names) {
      if (!o) return;
      require_shape(*o, rows, columns, names);
      if (o->batches != batches_)
        refuse(p, describe_argument(*o, " is ") + ", expected " +
                      (batches_ == 1 ? "one batch" : std::to_string(batches_) + " batches") +
                      ", as many as the inputs have");
      results.push_back(&*o);
    };
    add(call_.of.dx, m, k, "M x K");
    add(call_.of.dz, n_, k, "N x K");
    add(call_.dv, n_, d_, "N x D");
    add(call_.drows, m, 1, "M numbers");
    add(call_.dcolumns, n_, 1, "N numbers");
    add(call_.dscale, 1, 1, "a number");
    for (const auto& o : call_.of.results) add(o, 1, 1, "a number");
    const std::vector<const Operand*> all = inputs();
    for (const Operand* o : all)
      if (o->batches != batches_ && o->batches != 1)
        refuse(p, describe_argument(*o, " is ") + ", expected " + std::to_string(batches_) + " batches or one");
    const auto exists = [](const Operand& o) { return o.batches > 0 && o.rows > 0 && o.columns > 0; };
    for (const Operand* o : all)
      if (exists(*o)) require_data(p, *o);
    for (const Operand* o : results) {
      if (!exists(*o)) continue;
      require_data(p, *o);
      require_distinct(p, *o);
      for (const Operand* input : all)
        if (exists(*input)) require_disjoint(p, *o, *input);
      for (const Operand* other : results) {
        if (other == o) break;
        if (exists(*other)) require_disjoint(p, *o, *other);
      }
    }
  }

  // ---- memory --------------------------------------------------------------------------------------------------------

  // U, and then K or P, if there is one; vectors of a kernel's products need none but for dV.
  bool has_upstream() const { return has_v() && (call_.is_softmax || d_ != 1 || call_.dv); }

  std::int64_t height_of() const {
    const std::size_t limit = call_.limit > 0 ? call_.limit : default_limit;
    const std::int64_t matrices = 1 + (has_upstream() ? 1 : 0) + (call_.dcolumns ? 1 : 0),
                       row =
                           std::max<std::int64_t>(1, matrices * batches_ * pitch_ * static_cast<std::int64_t>(call_.g.size)),
                       rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(limit) / row);
    return rows < multiple ? rows : rows / multiple * multiple;
  }

  void place(std::uintptr_t base) {
    const Operand element{.type = call_.of.x.type, .size = call_.of.x.size, .batches = batches_},
        number{.type = Scalar::f64, .size = sizeof(double), .batches = batches_};
    std::uintptr_t next = place_matrices(weights_, base, element, height_, n_, pitch_, true);
    weights_.argument = "the workspace";
    if (has_upstream()) next = place_matrices(upstream_, next, element, height_, n_, pitch_, true);
    upstream_.argument = "g·Vᵀ";
    if (call_.dcolumns) next = place_matrices(scores_, next, element, height_, n_, pitch_, true);
    Operand single = element;
    single.batches = 1;
    const std::int64_t count = std::max(height_, n_);
    next = place_matrices(ones_, next, single, 1, count, count, true);
    ones_.argument = "ones";
    if (sums_hyperparameters() || call_.dscale) {
      const std::int64_t parts =
          call_.is_softmax ? height_ : height_ * ((n_ + kernel_weights_width - 1) / kernel_weights_width);
      next = place_matrices(parts_, next, number, parts, most_hyperparameters, most_hyperparameters, true);
      next = place_matrices(totals_, next, number, 1, most_hyperparameters, most_hyperparameters, true);
    }
    own_bytes_ = next - base;
    inner_.data = reinterpret_cast<void*>(next);
  }

  // ---- steps ---------------------------------------------------------------------------------------------------------

  // use(rows) for each strip; once, without rows, if X has none.
  template <class Use>
  void for_each_strip(const Use& use) const {
    std::int64_t first = 0;
    do {
      use(Range{first, std::min(height_, call_.of.x.rows - first)});
      first += height_;
    } while (first < call_.of.x.rows);
  }

  // What is done with a strip: distances(p) of the scores, problem(p) of the others, pass(launch).
  template <class Distances, class Problem, class Pass>
  void walk(Range rows, const Distances& distances, const Problem& problem, const Pass& pass) const {
    const Operand values = rows_of(weights_, {0, rows.count}), g = rows_of(call_.g, rows);
    const bool adds = call_.of.accumulate || rows.first > 0;
    const bool wants_weights = call_.of.dx || call_.of.dz || sums_hyperparameters();
    distances(distances_of(rows));
    const Operand upstream = has_upstream() ? rows_of(upstream_, {0, rows.count}) : Operand{};
    const auto add_to_v = [&] { problem(product(transpose(upstream), g, *call_.dv, adds)); };
    const auto multiply = [&] { problem(product(g, transpose(call_.v), upstream, false)); };
    if (call_.is_softmax) {
      if (has_v()) multiply();
      pass([&] { call_.passes.softmax(call_.of.distances.execution, values.type, softmax(rows)); });
      if (call_.dv) add_to_v();
      if (call_.dcolumns) {
        Operand ones = transpose(ones_);
        ones.rows = rows.count;
        problem(product(transpose(rows_of(scores_, {0, rows.count})), ones, *call_.dcolumns, adds));
      }
    } else {
      if (call_.dv) {
        pass([&] { call_.passes.kernels(call_.of.distances.execution, values.type, kernels(values, upstream)); });
        add_to_v();
      }
      if (wants_weights) {
        if (d_ != 1) multiply();
        pass([&] { call_.of.launch(call_.of.distances.execution, kernel_weights(rows)); });
      }
    }
    const Operand x = rows_of(call_.of.x, rows);
    if (call_.of.dz) add_result(transpose(values), x, call_.of.z, *call_.of.dz, adds, problem);
    if (call_.of.dx) add_result(values, call_.of.z, x, rows_of(*call_.of.dx, rows), call_.of.accumulate, problem);
  }
  template <class Problem>
  void add_result(const Operand& weights, const Operand& others, const Operand& points, const Operand& out, bool accumulate,
                  const Problem& problem) const {
    if (call_.of.of_distance)
      problem(sum_of_differences(*call_.of.of_distance, weights, others, points, out, ones_, accumulate, inner_));
    else if (call_.of.of_product)
      problem(weighted_product(*call_.of.of_product, weights, others, out, accumulate, inner_));
  }

  Contraction distances_of(Range rows) const {
    Contraction p = call_.of.distances;
    p.a = rows_of(call_.of.x, rows);
    p.c = rows_of(weights_, {0, rows.count});
    p.batch = batches_;
    p.m = rows.count;
    p.n = n_;
    p.k = call_.of.x.columns;
    p.workspace = inner_;
    return p;
  }
  Contraction product(const Operand& a, const Operand& b, const Operand& c, bool accumulate) const {
    return weighted_product(call_.products, a, b, c, accumulate, inner_);
  }

  KernelValuesPass kernels(const Operand& values, const Operand& to) const {
    KernelValuesPass pass{.values = values, .to = to, .formula = call_.of.formula, .p = call_.of.p};
    std::copy_n(call_.of.values, most_hyperparameters, pass.hyperparameters);
    return pass;
  }
  KernelWeightsPass kernel_weights(Range rows) const {
    KernelWeightsPass pass{.values = rows_of(weights_, {0, rows.count}),
                           .left = rows_of(upstream_, {0, rows.count}),
                           .right = {},
                           .p = call_.of.p,
                           .parts = parts_,
                           .totals = totals_,
                           .ones = {},
                           .first = rows.first == 0,
                           .last = rows.first + rows.count == call_.of.x.rows,
                           .accumulate = call_.of.accumulate};
    if (d_ == 1) {
      pass.left = rows_of(call_.g, rows);
      pass.left.column_stride = 0;
      pass.right = transpose(call_.v);
      pass.right.row_stride = 0;
    }
    for (int j = 0; j < most_hyperparameters; ++j) {
      pass.hyperparameters[j] = call_.of.values[j];
      if (const auto& result = call_.of.results[j]) pass.results[j] = *result;
    }
    return pass;
  }
  SoftmaxPass softmax(Range rows) const {
    SoftmaxPass pass{.values = rows_of(weights_, {0, rows.count}),
                     .upstream = rows_of(upstream_, {0, rows.count}),
                     .scores = rows_of(scores_, {0, rows.count}),
                     .g = rows_of(call_.g, rows),
                     .of_rows = {},
                     .of_columns = {},
                     .scale = call_.scale,
                     .p = call_.of.p,
                     .is_squared = call_.is_squared,
                     .rows = {},
                     .parts = parts_,
                     .totals = totals_,
                     .result = {},
                     .first = rows.first == 0,
                     .last = rows.first + rows.count == call_.of.x.rows,
                     .accumulate = call_.of.accumulate};
    if (call_.of_rows) pass.of_rows = rows_of(*call_.of_rows, rows);
    if (call_.of_columns) pass.of_columns = *call_.of_columns;
    if (call_.drows) pass.rows = rows_of(*call_.drows, rows);
    if (call_.dscale) pass.result = *call_.dscale;
    return pass;
  }

  MatvecGradient call_;
  Workspace given_, inner_;
  std::int64_t n_, d_, batches_ = 1, height_ = 0, pitch_ = 0;
  Operand weights_, upstream_, scores_, ones_, parts_, totals_;
  std::size_t own_bytes_ = 0;
};

}  // namespace

void run_matvec_gradient(const MatvecGradient& call) { Driver(call).run(); }

std::size_t matvec_gradient_bytes(const MatvecGradient& call) { return Driver(call).bytes(); }

}  // namespace rigel::detail
