// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "operands.hpp"
#include "semirings.hpp"

#include <rigel/detail/checks.hpp>
#include <rigel/detail/linear.hpp>

#include <optional>

namespace rigel::c {
namespace {

using detail::LinearForward, detail::LinearInput, detail::LinearWeight;

static_assert(RIGEL_TIER_SCALAR == int(Tier::scalar) && RIGEL_TIER_TENSOR == int(Tier::tensor));
static_assert(RIGEL_ACTIVATION_NONE == int(Activation::none) && RIGEL_ACTIVATION_RELU == int(Activation::relu) &&
              RIGEL_ACTIVATION_GELU == int(Activation::gelu) && RIGEL_ACTIVATION_GELU_TANH == int(Activation::gelu_tanh) &&
              RIGEL_ACTIVATION_SILU == int(Activation::silu));

// A matrix of the layer: f32, f16 or bf16.
Operand numbers_of(const rigel_matrix* matrix, const char* argument) {
  Operand o = operand_of(matrix, argument);
  if (o.type > Scalar::f32) refuse(std::string(argument) + ".type is " + name(o.type) + ", expected f16, bf16 or f32");
  return o;
}

// A bias or its gradient, which may be absent: one row for each batch, or for all.
std::optional<Operand> bias_of(const rigel_matrix* matrix, const char* argument) {
  if (!matrix) return {};
  Operand o = numbers_of(matrix, argument);
  if (o.rows != 1) refuse(detail::describe_argument(o, " is ") + ", expected one row");
  return o;
}

std::optional<Operand> preactivation_of(const rigel_matrix* matrix) {
  if (!matrix) return {};
  return numbers_of(matrix, "Z");
}

Tier tier_of(std::int32_t tier) {
  if (tier != RIGEL_TIER_SCALAR && tier != RIGEL_TIER_TENSOR)
    refuse("args.tier is " + std::to_string(tier) + ", expected 0 (RIGEL_TIER_SCALAR) or 1 (RIGEL_TIER_TENSOR)");
  return static_cast<Tier>(tier);
}

Activation activation_of(std::int32_t activation) {
  if (activation < RIGEL_ACTIVATION_NONE || activation > RIGEL_ACTIVATION_SILU)
    refuse("args.activation is " + std::to_string(activation) +
           ", expected 0 (RIGEL_ACTIVATION_NONE) to 4 (RIGEL_ACTIVATION_SILU)");
  return static_cast<Activation>(activation);
}

// The three matrices of a product as the caller gives them, A times B into C, and their names.
struct Factors {
  const rigel_matrix *a, *b, *c;
  const char *a_name, *b_name, *c_name;
};

// What the driver takes, handed to `use` after `complete` has added what the three products do not have in common.
template <class Call, class Complete, class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_linear_args* given, const Factors& factors,
                        const Complete& complete, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_linear_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    if (args.options.require != 0)
      refuse("args.options.require is " + std::to_string(args.options.require) +
             ", expected 0: the tier makes the promises");
    Call call;
    call.tier = tier_of(args.tier);
    Contraction& p = call.product = problem_of(h, args.options, function);
    p.a = numbers_of(factors.a, factors.a_name);
    p.b = numbers_of(factors.b, factors.b_name);
    p.c = numbers_of(factors.c, factors.c_name);
    require_same_type(p.b, p.a);
    const Semiring semiring = semiring_of("plus_times", p.a.type, 0, {});
    const epilogue::Program none;
    semiring.set_in(p);
    p.program = &none;
    p.epilogue_object = &none;
    p.batch = p.c.batches;
    p.m = p.c.rows;
    p.n = p.c.columns;
    p.k = p.a.columns;
    complete(args, call);
    use(call);
  });
}

// A gradient's epilogue is its own.
void require_no_epilogue(const rigel_linear_args& args) {
  require_zero(args.epilogue.steps_count, "args.epilogue.steps_count");
  require_zero(args.epilogue.sources_count, "args.epilogue.sources_count");
}

template <class Use>
rigel_code with_forward(const char* function, rigel_handle* handle, const rigel_linear_args* given, const rigel_matrix* x,
                        const rigel_matrix* w, const rigel_matrix* bias, const rigel_matrix* y, const rigel_matrix* z,
                        const Use& use) {
  const auto complete = [&](const rigel_linear_args& args, LinearForward& call) {
    require_zero(args.overwrite, "args.overwrite");
    call.activation = activation_of(args.activation);
    call.steps = program_of(args.epilogue, call.product.execution.space);
    if (call.activation != Activation::none && !call.steps.empty())
      refuse(std::string("args.activation is ") + name(call.activation) + " and args.epilogue has " +
             std::to_string(args.epilogue.steps_count) + " steps, expected one of the two");
    call.bias = bias_of(bias, "bias");
    call.preactivation = preactivation_of(z);
  };
  return with_problem<LinearForward>(function, handle, given, {x, w, y, "X", "W", "Y"}, complete, use);
}

template <class Use>
rigel_code with_weight(const char* function, rigel_handle* handle, const rigel_linear_args* given, const rigel_matrix* x,
                       const rigel_matrix* dy, const rigel_matrix* dw, const rigel_matrix* db, const Use& use) {
  const auto complete = [&](const rigel_linear_args& args, LinearWeight& call) {
    require_zero(args.activation, "args.activation");
    require_no_epilogue(args);
    call.product.accumulate = !flag(args.overwrite, "args.overwrite");
    call.bias = bias_of(db, "db");
  };
  return with_problem<LinearWeight>(function, handle, given, {x, dy, dw, "X", "dY", "dW"}, complete, use);
}

template <class Use>
rigel_code with_input(const char* function, rigel_handle* handle, const rigel_linear_args* given, const rigel_matrix* dy,
                      const rigel_matrix* w, const rigel_matrix* dx, const rigel_matrix* z, const Use& use) {
  const auto complete = [&](const rigel_linear_args& args, LinearInput& call) {
    require_zero(args.overwrite, "args.overwrite");
    call.activation = activation_of(args.activation);
    require_no_epilogue(args);
    if (call.activation != Activation::none && !z)
      refuse(std::string("Z is NULL, expected what ") + name(call.activation) + " was applied to");
    call.preactivation = preactivation_of(z);
  };
  return with_problem<LinearInput>(function, handle, given, {dy, w, dx, "dY", "W", "dX"}, complete, use);
}

constexpr auto run = [](const auto& call) { detail::run_linear(call); };

// Stores the bytes of workspace that a call needs.
auto store_bytes(std::size_t* bytes) {
  return [=](const auto& call) { result(bytes, "bytes") = detail::linear_bytes(call); };
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_linear_forward(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x,
                                const rigel_matrix* w, const rigel_matrix* bias, const rigel_matrix* y,
                                const rigel_matrix* z) {
  return with_forward("rigel_linear_forward", handle, args, x, w, bias, y, z, run);
}

rigel_code rigel_linear_forward_workspace_size(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x,
                                               const rigel_matrix* w, const rigel_matrix* bias, const rigel_matrix* y,
                                               const rigel_matrix* z, std::size_t* bytes) {
  return with_forward("rigel_linear_forward_workspace_size", handle, args, x, w, bias, y, z, store_bytes(bytes));
}

rigel_code rigel_linear_backward_weight(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x,
                                        const rigel_matrix* dy, const rigel_matrix* dw, const rigel_matrix* db) {
  return with_weight("rigel_linear_backward_weight", handle, args, x, dy, dw, db, run);
}

rigel_code rigel_linear_backward_weight_workspace_size(rigel_handle* handle, const rigel_linear_args* args,
                                                       const rigel_matrix* x, const rigel_matrix* dy, const rigel_matrix* dw,
                                                       const rigel_matrix* db, std::size_t* bytes) {
  return with_weight("rigel_linear_backward_weight_workspace_size", handle, args, x, dy, dw, db, store_bytes(bytes));
}

rigel_code rigel_linear_backward_input(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* dy,
                                       const rigel_matrix* w, const rigel_matrix* dx, const rigel_matrix* z) {
  return with_input("rigel_linear_backward_input", handle, args, dy, w, dx, z, run);
}

rigel_code rigel_linear_backward_input_workspace_size(rigel_handle* handle, const rigel_linear_args* args,
                                                      const rigel_matrix* dy, const rigel_matrix* w, const rigel_matrix* dx,
                                                      const rigel_matrix* z, std::size_t* bytes) {
  return with_input("rigel_linear_backward_input_workspace_size", handle, args, dy, w, dx, z, store_bytes(bytes));
}
