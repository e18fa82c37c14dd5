// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The linear layer on operands. Each call is one or more contractions whose promises the tier sets; activations that are not part of a
// contraction's epilogue, derivatives, and the row of ones that sums columns are passes of their own.
#include "../engine/registry.hpp"
#include "chosen.hpp"
#include "driver.hpp"

#include <rigel/detail/column_sums.hpp>
#include <rigel/detail/elementwise.hpp>
#include <rigel/detail/linear.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rigel::detail {
namespace {

constexpr std::uintptr_t nominal_address = workspace_alignment;  // stands in for memory that is aligned as workspaces are
constexpr std::string_view tensor_families = "cuda.hopper|cuda.mma";

constexpr LinearPasses compiled_passes = linear_passes<compiled_spaces>();

/// Makes the engine choose among the kernels of a tier.
void set_tier(Contraction& p, Tier tier) {
  if (tier == Tier::scalar) {
    if (p.precision > Precision::accumulator)
      refuse(p, std::string("options.precision is ") + name(p.precision) +
                    ", expected automatic or accumulator, since Tier::scalar rounds no terms");
    p.precision = Precision::accumulator;
    p.require = Promise::reference_bits;
    return;
  }
  if (p.execution.space != Space::cuda)
    throw Error(Code::unsupported, std::string(p.function) +
                                       ": Tier::tensor runs on tensor cores, expected the execution space cuda, got " +
                                       name(p.execution.space) + "; Tier::scalar runs everywhere");
  const auto is_of_tensor_cores = [](std::string_view part) { return engine::name_matches(part, tensor_families); };
  if (!p.kernel.empty() && !engine::all_parts(p.kernel, is_of_tensor_cores))
    throw Error(Code::unsupported, std::string(p.function) + ": options.kernel is '" + std::string(p.kernel) +
                                       "', expected kernels of cuda.hopper or cuda.mma for Tier::tensor");
  p.require = Promise::repeatable | Promise::batch_invariant;
  if (p.kernel.empty()) p.kernel = tensor_families;
}

const Operand* pointer_to(const std::optional<Operand>& o) { return o ? &*o : nullptr; }

void set_program(Contraction& p, const epilogue::Program& program) {
  p.program = &program;
  p.epilogue_object = &program;
}

/// The program that multiplies each output by an element of `factors`, or adds one.
epilogue::Program with_source(epilogue::Kind kind, const Operand& o, const Execution& execution) {
  const auto stride = [](std::int64_t extent, std::int64_t s) { return extent == 1 ? 0 : s; };
  return {epilogue::Step{kind},
          {.data = o.data,
           .batch_stride = stride(o.batches, o.batch_stride),
           .row_stride = stride(o.rows, o.row_stride),
           .column_stride = stride(o.columns, o.column_stride),
           .batches = o.batches,
           .rows = o.rows,
           .columns = o.columns,
           .argument = o.argument,
           .spaces = bit(execution.space),
           .type = o.type}};
}

/// Places a matrix of floats with the extents of `like` at `base`, in its order of rows and columns. Returns where the next array begins.
std::uintptr_t place_floats(Operand& o, std::uintptr_t base, const Operand& like, const char* argument) {
  const bool by_rows = like.column_stride <= like.row_stride;
  o.argument = argument;
  const Operand floats{.type = Scalar::f32, .size = sizeof(float), .batches = like.batches};
  return place_matrices(o, base, floats, like.rows, like.columns, by_rows ? like.columns : like.rows, by_rows);
}

void require_extents(const Contraction& p, const Operand& o, const Operand& like) {
  require_extent(p, o, "rows", o.rows, like.rows, like);
  require_extent(p, o, "columns", o.columns, like.columns, like);
  if (o.batches != like.batches)
    refuse(p, describe_argument(o, " is ") + ", expected " + std::to_string(like.batches) + " batches to match " +
                  describe_argument(like));
}

void require_bias(const Contraction& p, const Operand& bias, const Operand& of, const Operand& batches) {
  require_extent(p, bias, "elements", bias.columns, of.columns, of, "the columns of ");
  require_batches(p, bias, batches);
}

std::string list_product(const char* what, const Contraction& p) { return std::string(what) + ": " + listing(p); }

std::string explain_bytes(const Linear& call, std::size_t bytes) {
  return std::string(call.product.function) + ", Tier::" + name(call.tier) + ", " + std::to_string(bytes) +
         " bytes of workspace\n";
}

/// Runs a call that is one contraction, to which all workspace goes. So its kernel is chosen once.
void run_alone(Contraction& p, const Workspace& given, const std::optional<Operand>& read = {}) {
  if (given.data && read) require_workspace_apart(p, given.data, given.bytes, {&*read});
  p.workspace = given;
  rigel::run(p);
}

/// Y = epilogue(X W + bias): one contraction; or one into sums of f32, then a pass that applies the epilogue.
class Forward {
 public:
  explicit Forward(const LinearForward& call) : call_(call), passes_(call.passes ? *call.passes : compiled_passes) {
    Contraction& p = call_.product;
    bias_ = bias_of(call_);
    const bool in_pass = has_pass();
    direct_ = epilogue::Program::joined(bias_, in_pass ? call_.steps : own_steps());
    if (p.program) set_program(p, direct_);
    given_ = std::exchange(p.workspace, {});
    check();
    set_tier(p, call_.tier);
    if (!in_pass || p.is_empty()) return;
    sums_ = p;
    set_program(sums_, bias_);
    sums_.instantiated = call_.instantiated;
    place(nominal_address);
  }
  Forward(const Forward&) = delete;

  void run() {
    Contraction& p = call_.product;
    if (p.is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::linear_forward");
    if (!has_pass()) return run_alone(p, given_, call_.bias);
    const CallMemory memory(p.function, p.execution, given_, bytes(),
                            {&p.a, &p.b, &p.c, pointer_to(call_.bias), pointer_to(call_.preactivation)});
    place(memory.address());
    detail::run(chosen_, sums_);
    ElementwisePass pass{.from = sums_.c, .to = p.c};
    if (call_.preactivation && call_.preactivation->data != sums_.c.data) pass.kept = *call_.preactivation;
    LaunchElementwise launch = call_.pass;
    if (call_.functor) {
      pass.functor = call_.functor;
    } else if (applies_same_bits()) {
      pass.functor = &call_.activation;
      launch = passes_.value;
    } else {
      steps_ = own_steps();
      pass.functor = &steps_;
      launch = passes_.program;
    }
    launch(p.execution, pass);
  }
  std::size_t bytes() {
    Contraction& p = product();
    if (p.is_empty()) return 0;
    chosen_ = choose(p);
    p.workspace.bytes = chosen_.bytes;
    return sum_bytes_ + p.workspace.bytes;
  }
  std::string explanation() {
    std::string text = explain_bytes(call_, bytes());
    if (has_pass()) text += "a pass applies the epilogue to sums of f32\n";
    return product().is_empty() ? text : text + list_product("Y", product()) + legend(product());
  }

 private:
  /// Whether the epilogue is an activation whose bits are the same everywhere, so that no kernel has it as a step.
  bool applies_same_bits() const { return call_.tier == Tier::scalar && call_.activation > Activation::relu; }
  bool has_pass() const { return call_.preactivation.has_value() || applies_same_bits(); }
  epilogue::Program own_steps() const {
    const epilogue::Program of_activation = activation::with(call_.activation, []<class A>() { return A::program(); });
    return of_activation | call_.steps;
  }
  Contraction& product() { return has_pass() ? sums_ : call_.product; }

  void check() const {
    const Contraction& p = call_.product;
    p.check();
    if (!p.program) p.check_sources(direct_);
    if (!call_.preactivation) return;
    const Operand& z = *call_.preactivation;
    require_extents(p, z, p.c);
    if (p.is_empty()) return;
    require_data(p, z);
    require_distinct(p, z);
    for (const Operand* o : {&p.a, &p.b, &p.c}) require_disjoint(p, z, *o);
    Contraction q = p;
    q.indices = &z;  // what the epilogue reads does not overlap Z either
    q.check_sources(direct_);
  }

  // Sums are in Z or in Y, if these are f32 and nothing reads Y, else in the workspace.
  void place(std::uintptr_t base) {
    Contraction& p = call_.product;
    if (!has_pass()) {
      p.workspace.data = reinterpret_cast<void*>(base);
      return;
    }
    std::uintptr_t next = base;
    if (call_.preactivation && call_.preactivation->type == Scalar::f32)
      sums_.c = *call_.preactivation;
    else if (p.c.type == Scalar::f32 && applies_same_bits())
      sums_.c = p.c;
    else
      next = place_floats(sums_.c, base, p.c, "the workspace");
    sum_bytes_ = next - base;
    sums_.workspace.data = reinterpret_cast<void*>(next);
  }

  LinearForward call_;
  const LinearPasses& passes_;
  Contraction sums_;
  Chosen chosen_;
  epilogue::Program bias_, direct_, steps_;  // the bias; all steps of one contraction; those of a pass
  Workspace given_;
  std::size_t sum_bytes_ = 0;
};

/// dW += Xᵀ dY and db += ones · dY, or without the +: two contractions; one for each batch of those that dW or db sums, unless their rows
/// are rows of one matrix. Of Tier::tensor db are sums of columns.
class Weight {
 public:
  explicit Weight(const LinearWeight& call) : call_(call), passes_(call.passes ? *call.passes : compiled_passes) {
    Contraction& p = call_.product;
    given_ = std::exchange(p.workspace, {});
    check_extents();
    require_sums(p.c);
    if (call_.bias) require_sums(*call_.bias);
    x_ = p.a;
    dy_ = p.b;
    set_tier(p, call_.tier);
    p.a = transpose(x_, "transposed X");
    p.k = x_.rows;
    add_products(p, p.c.batches);
    products_of_weight_ = products_.size();
    sums_columns_ = call_.bias && call_.tier == Tier::tensor;
    if (sums_columns_)
      columns_ = {.x = dy_, .to = *call_.bias, .accumulate = p.accumulate};
    else if (call_.bias)
      add_bias(*call_.bias);
    for (const Contraction& one : products_) one.check();
    if (call_.bias)
      for (const Operand* o : {&x_, &call_.product.c})
        if (o->data && call_.bias->data) require_disjoint(p, *call_.bias, *o);
    if (has_columns()) {
      require_data(p, columns_.to);
      require_distinct(p, columns_.to);
      if (columns_.rows() > 0) require_data(p, dy_);
      if (columns_.rows() > 0) require_disjoint(p, columns_.to, dy_);
    }
    place(nominal_address);
  }
  Weight(const Weight&) = delete;

  void run() {
    if (is_empty()) return;
    const Contraction& p = call_.product;
    const Kokkos::Profiling::ScopedRegion region("rigel::linear_backward_weight");
    if (products_.size() == 1 && !call_.bias) return run_alone(products_.front(), given_);
    const std::size_t needed = bytes();  // before anything is enqueued: throws if a product has no kernel
    const CallMemory memory(p.function, p.execution, given_, needed, {&x_, &dy_, &p.c, pointer_to(call_.bias)});
    place(memory.address());
    if (ones_.columns > 0) {
      const One one;
      passes_.ones(p.execution, {.to = ones_, .functor = &one});
    }
    for (std::size_t i = 0; i < products_.size(); ++i) detail::run(chosen_[i], products_[i]);
    if (has_columns()) with_instance(compiled_spaces{}, p.execution, [&](const auto& exec) { sum_columns(exec, columns_); });
  }
  std::size_t bytes() {
    std::size_t most = 0;
    chosen_.clear();
    for (Contraction& one : products_) {
      chosen_.push_back(choose(one));
      one.workspace.bytes = chosen_.back().bytes;
      most = std::max(most, one.workspace.bytes);
    }
    return is_empty() ? 0 : own_bytes_ + most;
  }
  std::string explanation() {
    std::string text = explain_bytes(call_, bytes());
    for (std::size_t i = 0; i < products_.size(); ++i)
      text += list_product(i < products_of_weight_ ? "dW" : "db", products_[i]);
    if (has_columns())
      text += "db: sums of columns, " + std::to_string(columns_.count()) + " parts of " +
              std::to_string(columns_.rows_of_part()) + " rows\n";
    return text + legend(call_.product);
  }

 private:
  bool is_empty() const {
    return !has_columns() &&
           std::all_of(products_.begin(), products_.end(), [](const Contraction& p) { return p.is_empty(); });
  }
  bool has_columns() const { return sums_columns_ && columns_.to.batches > 0 && columns_.to.columns > 0; }

  void check_extents() const {
    const Contraction& p = call_.product;
    const Operand &x = p.a, &dy = p.b, &dw = p.c;
    require_extent(p, dy, "rows", dy.rows, x.rows, x);
    require_batches(p, x, dy);
    require_extent(p, dw, "rows", dw.rows, x.columns, x, "the columns of ");
    require_extent(p, dw, "columns", dw.columns, dy.columns, dy);
    require_batches(p, dw, dy);
    if (call_.bias) require_bias(p, *call_.bias, dy, dy);
  }

  /// What sums are added to holds sums.
  void require_sums(const Operand& o) const {
    const Contraction& p = call_.product;
    if (o.type != Scalar::f32 && p.accumulate)
      refuse(p, describe_argument(o, " is ") + " of " + name(o.type) +
                    ", expected f32, which sums are added to, or options.overwrite");
  }

  /// Appends the contractions of `p`, whose C has `batches`: one if these are those of B, or if rows of all batches are rows of one
  /// matrix; else one for each batch, in order.
  void add_products(const Contraction& p, std::int64_t batches) {
    if (batches == p.b.batches) {
      products_.push_back(p);
      products_.back().batch = batches;
      return;
    }
    Contraction joined = p;
    joined.batch = 1;
    joined.k = p.k * p.b.batches;
    const bool joins_a = join(joined.a, p.b.batches, false), joins_b = join(joined.b, p.b.batches, true);
    if ((joins_a && joins_b) || joined.k == 0) return products_.push_back(joined);
    if (call_.tier == Tier::tensor)
      throw Error(Code::unsupported, std::string(p.function) + ": " + describe_argument(x_) + " or " +
                                         describe_argument(dy_) +
                                         " has batches that do not follow each other at the distance of rows, and " +
                                         describe_argument(p.c) + " sums them: Tier::tensor sums rows of one matrix only");
    if (p.c.type != Scalar::f32)
      throw Error(Code::unsupported,
                  std::string(p.function) + ": " + describe_argument(p.c, " is ") + " of " + name(p.c.type) +
                      ", expected f32 for sums of batches that do not follow each other at the distance of rows");
    for (std::int64_t l = 0; l < p.b.batches; ++l) {
      Contraction one = p;
      one.batch = 1;
      one.accumulate = p.accumulate || l > 0;
      for (Operand* o : {&one.a, &one.b}) {
        o->data = static_cast<std::byte*>(o->data) + l * o->batch_stride * static_cast<std::int64_t>(o->size);
        o->batches = 1;
        o->batch_stride = 0;
      }
      products_.push_back(one);
    }
  }

  /// Makes one matrix of an operand's batches, along its rows or its columns, if they follow each other there.
  static bool join(Operand& o, std::int64_t batches, bool along_rows) {
    std::int64_t& extent = along_rows ? o.rows : o.columns;
    std::int64_t& stride = along_rows ? o.row_stride : o.column_stride;
    if (extent == 1) stride = o.batch_stride;
    const bool joins =
        extent == 0 || (o.batch_stride == extent * stride && (o.batches == batches || (extent == 1 && stride == 0)));
    extent *= batches;
    o.batches = 1;
    o.batch_stride = 0;
    return joins;
  }

  void add_bias(const Operand& bias) {
    Contraction p = call_.product;
    p.instantiated = call_.instantiated;
    p.c = bias;
    p.m = 1;
    // A row of ones for all rows that one sum has.
    const std::int64_t rows = dy_.rows * (p.c.batches == dy_.batches ? 1 : dy_.batches);
    ones_ = {.type = dy_.type,
             .size = dy_.size,
             .rows = 1,
             .columns = rows,
             .row_stride = rows,
             .column_stride = 1,
             .argument = "ones"};
    p.a = ones_;
    p.a.data = reinterpret_cast<void*>(nominal_address);
    p.a.columns = dy_.rows;
    if (p.c.batches != dy_.batches) {
      p.a.batches = dy_.batches;
      p.a.batch_stride = dy_.rows;
    }
    add_products(p, p.c.batches);
  }

  void place(std::uintptr_t base) {
    own_bytes_ =
        has_columns() ? aligned(columns_.part_bytes()) : aligned(ones_.size * static_cast<std::size_t>(ones_.columns));
    ones_.data = columns_.parts = reinterpret_cast<void*>(base);
    for (std::size_t i = 0; i < products_.size(); ++i) {
      if (i >= products_of_weight_) products_[i].a.data = ones_.data;
      products_[i].workspace.data = reinterpret_cast<void*>(base + own_bytes_);
    }
  }

  LinearWeight call_;
  const LinearPasses& passes_;
  Operand x_, dy_, ones_;
  std::vector<Contraction> products_;  // those of dW, then those of db
  std::vector<Chosen> chosen_;
  std::size_t products_of_weight_ = 0;
  ColumnSums columns_;
  bool sums_columns_ = false;
  Workspace given_;
  std::size_t own_bytes_ = 0;
};

/// dX = (dY Wᵀ) ⊙ act'(Z): one contraction, whose epilogue multiplies by factors that a pass wrote before.
class Input {
 public:
  explicit Input(const LinearInput& call) : call_(call), passes_(call.passes ? *call.passes : compiled_passes) {
    Contraction& p = call_.product;
    given_ = std::exchange(p.workspace, {});
    check_extents();
    set_tier(p, call_.tier);
    p.b = transpose(p.b, "transposed W");
    set_program(p, factor_);
    p.check();
    place(nominal_address);
  }
  Input(const Input&) = delete;

  void run() {
    Contraction& p = call_.product;
    if (p.is_empty()) return;
    const Kokkos::Profiling::ScopedRegion region("rigel::linear_backward_input");
    if (!has_pass()) return run_alone(p, given_);
    const std::size_t needed = bytes();
    const CallMemory memory(p.function, p.execution, given_, needed, {&p.a, &p.b, &p.c, pointer_to(call_.preactivation)});
    place(memory.address());
    if (const auto& z = call_.preactivation)
      passes_.derivative(p.execution, {.from = *z, .to = factors_, .functor = &call_.activation});
    detail::run(chosen_, p);
  }
  std::size_t bytes() {
    Contraction& p = call_.product;
    if (p.is_empty()) return 0;
    chosen_ = choose(p);
    p.workspace.bytes = chosen_.bytes;
    return factor_bytes_ + p.workspace.bytes;
  }
  std::string explanation() {
    std::string text = explain_bytes(call_, bytes());
    if (has_pass()) text += std::string("a pass writes the derivative of ") + name(call_.activation) + " as f32\n";
    return text + list_product("dX", call_.product) + legend(call_.product);
  }

 private:
  bool has_pass() const { return call_.preactivation && call_.activation != Activation::none; }

  void check_extents() const {
    const Contraction& p = call_.product;
    const Operand &dy = p.a, &w = p.b, &dx = p.c;
    require_extent(p, w, "columns", w.columns, dy.columns, dy);
    require_extent(p, dx, "rows", dx.rows, dy.rows, dy);
    require_extent(p, dx, "columns", dx.columns, w.rows, w, "the rows of ");
    require_batches(p, dy, dx);
    require_batches(p, w, dx);
    if (!call_.preactivation) return;
    require_extents(p, *call_.preactivation, dx);
    if (!p.is_empty()) require_data(p, *call_.preactivation);
  }

  void place(std::uintptr_t base) {
    Contraction& p = call_.product;
    std::uintptr_t next = base;
    if (has_pass()) {
      next = place_floats(factors_, base, p.c, "the derivative");
      factor_ = with_source(epilogue::Kind::scale, factors_, p.execution);
    }
    factor_bytes_ = next - base;
    p.workspace.data = reinterpret_cast<void*>(next);
  }

  LinearInput call_;
  const LinearPasses& passes_;
  Chosen chosen_;
  Operand factors_;
  epilogue::Program factor_;
  Workspace given_;
  std::size_t factor_bytes_ = 0;
};

}  // namespace

epilogue::Program bias_of(const LinearForward& call) {
  const Contraction& p = call.product;
  const Operand &x = p.a, &w = p.b, &y = p.c;
  require_extent(p, w, "rows", w.rows, x.columns, x, "the columns of ");
  require_extent(p, y, "rows", y.rows, x.rows, x);
  require_extent(p, y, "columns", y.columns, w.columns, w);
  require_batches(p, x, y);
  require_batches(p, w, y);
  if (!call.bias) return {};
  require_bias(p, *call.bias, w, y);
  return with_source(epilogue::Kind::add, *call.bias, p.execution);
}

void run_linear(const LinearForward& call) { Forward(call).run(); }
void run_linear(const LinearWeight& call) { Weight(call).run(); }
void run_linear(const LinearInput& call) { Input(call).run(); }
std::string explain_linear(const LinearForward& call) { return Forward(call).explanation(); }
std::string explain_linear(const LinearWeight& call) { return Weight(call).explanation(); }
std::string explain_linear(const LinearInput& call) { return Input(call).explanation(); }
std::size_t linear_bytes(const LinearForward& call) { return Forward(call).bytes(); }
std::size_t linear_bytes(const LinearWeight& call) { return Weight(call).bytes(); }
std::size_t linear_bytes(const LinearInput& call) { return Input(call).bytes(); }

}  // namespace rigel::detail
