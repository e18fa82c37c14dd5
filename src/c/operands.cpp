// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "operands.hpp"

#include <rigel/detail/checks.hpp>

namespace rigel::c {
namespace {

static_assert(RIGEL_F16 == int(Scalar::f16) + 1 && RIGEL_BF16 == int(Scalar::bf16) + 1 &&
              RIGEL_F32 == int(Scalar::f32) + 1 && RIGEL_F64 == int(Scalar::f64) + 1 && RIGEL_I8 == int(Scalar::i8) + 1 &&
              RIGEL_U8 == int(Scalar::u8) + 1 && RIGEL_I16 == int(Scalar::i16) + 1 && RIGEL_I32 == int(Scalar::i32) + 1 &&
              RIGEL_I64 == int(Scalar::i64) + 1 && RIGEL_U32 == int(Scalar::u32) + 1 && RIGEL_U64 == int(Scalar::u64) + 1);
static_assert(RIGEL_I32_INFINITY == infinity<std::int32_t>() && RIGEL_I64_INFINITY == infinity<std::int64_t>());
static_assert(RIGEL_REFERENCE_BITS == int(Promise::reference_bits) && RIGEL_REPEATABLE == int(Promise::repeatable) &&
              RIGEL_BATCH_INVARIANT == int(Promise::batch_invariant));
static_assert(RIGEL_PRECISION_AUTOMATIC == int(Precision::automatic) && RIGEL_PRECISION_ROUNDED == int(Precision::rounded) &&
              RIGEL_PRECISION_ACCUMULATOR == int(Precision::accumulator) &&
              RIGEL_PRECISION_EXACT_PRODUCTS == int(Precision::exact_products) &&
              RIGEL_PRECISION_PROMOTED == int(Precision::promoted) && RIGEL_PRECISION_SPLIT == int(Precision::split) &&
              RIGEL_PRECISION_BF16X3 == int(Precision::bf16x3) && RIGEL_PRECISION_TF32 == int(Precision::tf32) &&
              RIGEL_PRECISION_OPERANDS == int(Precision::operands));
static_assert(RIGEL_MOST_STEPS == epilogue::Program::capacity && RIGEL_MOST_SOURCES == epilogue::Program::most_sources);

struct Dimension {
  const char *extent_name, *stride_name;
  std::int64_t extent, stride, least;
};

// Throws unless the dimensions are in range and the bytes from the first element to the end of the last one can be counted.
void check_dimensions(const rigel_matrix& m, std::size_t element, const char* argument) {
  std::int64_t last = 0;
  bool fits = true;
  for (const Dimension& d : {Dimension{"batches", "batch_stride", m.batches, m.batch_stride, 1},
                             Dimension{"rows", "row_stride", m.rows, m.row_stride, 0},
                             Dimension{"columns", "column_stride", m.columns, m.column_stride, 0}}) {
    const auto out_of_range = [&](const char* name, std::int64_t value, std::int64_t least) {
      refuse(std::string(argument) + '.' + name + " is " + std::to_string(value) + ", expected at least " +
             std::to_string(least));
    };
    if (d.extent < d.least) out_of_range(d.extent_name, d.extent, d.least);
    if (d.stride < 0) out_of_range(d.stride_name, d.stride, 0);
    std::int64_t reach = 0;
    if (d.extent > 1)
      fits = fits && !__builtin_mul_overflow(d.extent - 1, d.stride, &reach) && !__builtin_add_overflow(last, reach, &last);
  }
  std::int64_t bytes = 0;
  if (!fits || __builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, static_cast<std::int64_t>(element), &bytes))
    refuse(std::string(argument) + " of " + std::to_string(m.batches) + " x " + std::to_string(m.rows) + " x " +
           std::to_string(m.columns) + " elements spans more than 2^63 bytes, expected smaller extents or strides");
}

epilogue::Kind kind_of(std::int32_t kind, const std::string& name) {
  using epilogue::Kind;
  switch (kind) {
    case RIGEL_SCALE: return Kind::scale;
    case RIGEL_ADD: return Kind::add;
    case RIGEL_POWER: return Kind::power;
    case RIGEL_EXPONENTIAL: return Kind::exponential;
    case RIGEL_LAPLACE: return Kind::laplace;
    case RIGEL_GAUSSIAN: return Kind::gaussian;
    case RIGEL_RECIPROCAL: return Kind::reciprocal;
    case RIGEL_CLAMP: return Kind::clamp;
    case RIGEL_THRESHOLD: return Kind::threshold;
    case RIGEL_ADD_DIAGONAL: return Kind::diagonal;
    case RIGEL_RELU: return Kind::relu;
    case RIGEL_SIGMOID: return Kind::sigmoid;
    case RIGEL_TANH: return Kind::tanh;
    case RIGEL_SILU: return Kind::silu;
    case RIGEL_GELU: return Kind::gelu;
    case RIGEL_GELU_TANH: return Kind::gelu_tanh;
    case RIGEL_ANY_BIT: return Kind::any_bit;
    case RIGEL_PARITY: return Kind::parity;
    case RIGEL_MATERN32: return Kind::matern32;
    case RIGEL_MATERN52: return Kind::matern52;
    case RIGEL_RATIONAL_QUADRATIC: return Kind::rational_quadratic;
    default: refuse(name + ".kind is " + std::to_string(kind) + ", expected 1 to 21, the kinds of steps");
  }
}

epilogue::Source source_of(const rigel_matrix& given, const char* name, Space space) {
  const Operand o = operand_of(&given, name);
  if (o.type > Scalar::f64 && o.type != Scalar::i32)
    refuse(std::string(name) + ".type is " + rigel::name(o.type) + ", expected f16, bf16, f32, f64 or i32");
  const auto step = [](std::int64_t extent, std::int64_t stride) { return extent == 1 ? 0 : stride; };
  return {.data = o.data,
          .batch_stride = o.batch_stride,
          .row_stride = step(o.rows, o.row_stride),
          .column_stride = step(o.columns, o.column_stride),
          .batches = o.batches,
          .rows = o.rows,
          .columns = o.columns,
          .argument = name,
          .spaces = bit(space),
          .type = o.type};
}

// A step. Its numbers are as the functions of rigel/epilogue.hpp take them, which turn some into others.
epilogue::Step step_of(const rigel_step& given, int sources_count, const std::string& name) {
  require_zero(given.reserved, name + ".reserved");
  epilogue::Step step(kind_of(given.kind, name), given.x, given.y);
  step.offset = given.offset;
  const auto from = [&](std::int32_t source, const char* member) {
    if (source < 0 || source > sources_count)
      refuse(name + '.' + member + " is " + std::to_string(source) + ", expected 0, or 1 to " +
             std::to_string(sources_count) + ", the number of sources");
    return static_cast<std::int16_t>(source - 1);
  };
  step.x_from = from(given.x_source, "x_source");
  step.y_from = from(given.y_source, "y_source");
  if (given.offset != 0 && given.kind != RIGEL_ADD_DIAGONAL)
    refuse(name + ".offset is not 0, which only RIGEL_ADD_DIAGONAL takes");
  if (given.x_source != 0) return step;
  if (given.y_source != 0) refuse(name + ".y_source is not 0, expected x in memory, too");
  if (given.kind == RIGEL_LAPLACE) return epilogue::laplace(given.x)[0];
  if (given.kind == RIGEL_GAUSSIAN) return epilogue::gaussian(given.x)[0];
  return step;
}

}  // namespace

Scalar scalar_of(rigel_type type, const std::string& name) {
  if (type < RIGEL_F16 || type > RIGEL_U64)
    refuse(name + " is " + std::to_string(type) + ", expected 1 (RIGEL_F16) to 11 (RIGEL_U64)");
  return static_cast<Scalar>(type - 1);
}

Operand operand_of(const rigel_matrix* matrix, const char* argument) {
  const rigel_matrix& m = checked(matrix, argument);
  if (m.reserved != 0) refuse(std::string(argument) + ".reserved is " + std::to_string(m.reserved) + ", expected 0");
  if (m.type < RIGEL_F16 || m.type > RIGEL_U64) scalar_of(m.type, std::string(argument) + ".type");
  Operand o;
  o.data = m.data;
  o.type = static_cast<Scalar>(m.type - 1);
  o.size = size_of(o.type);
  check_dimensions(m, o.size, argument);
  if (reinterpret_cast<std::uintptr_t>(m.data) % o.size != 0)
    refuse(std::string(argument) + ".data is not aligned to its elements of " + std::to_string(o.size) + " bytes");
  o.batches = m.batches;
  o.rows = m.rows;
  o.columns = m.columns;
  o.batch_stride = m.batches == 1 ? 0 : m.batch_stride;
  o.row_stride = m.row_stride;
  o.column_stride = m.column_stride;
  o.argument = argument;
  return o;
}

epilogue::Program program_of(const rigel_program& given, Space space) {
  const auto check = [](std::int32_t count, const char* name, int most) {
    if (count < 0 || count > most)
      refuse(std::string("epilogue.") + name + " is " + std::to_string(count) + ", expected 0 to " + std::to_string(most));
  };
  check(given.steps_count, "steps_count", RIGEL_MOST_STEPS);
  check(given.sources_count, "sources_count", RIGEL_MOST_SOURCES);
  constexpr const char* names[] = {"epilogue.sources[0]", "epilogue.sources[1]", "epilogue.sources[2]",
                                   "epilogue.sources[3]"};
  epilogue::Step steps[RIGEL_MOST_STEPS];
  epilogue::Source sources[RIGEL_MOST_SOURCES];
  for (int i = 0; i < given.steps_count; ++i) {
    const epilogue::Step& step = steps[i] =
        step_of(given.steps[i], given.sources_count, "epilogue.steps[" + std::to_string(i) + ']');
    for (const int from : {int{step.x_from}, int{step.y_from}})
      if (from >= 0) sources[from] = source_of(given.sources[from], names[from], space);
  }
  return {steps, given.steps_count, sources, given.sources_count};
}

Call call_of(const rigel_handle& handle, const rigel_options& options, const char* function) {
  require_zero(options.reserved, "options");
  constexpr auto promises = static_cast<unsigned>(RIGEL_REFERENCE_BITS | RIGEL_REPEATABLE | RIGEL_BATCH_INVARIANT);
  if ((options.require & ~promises) != 0)
    refuse("options.require is " + std::to_string(options.require) +
           ", expected a sum of RIGEL_REFERENCE_BITS, "
           "RIGEL_REPEATABLE and RIGEL_BATCH_INVARIANT");
  if (options.precision < RIGEL_PRECISION_AUTOMATIC || options.precision > RIGEL_PRECISION_OPERANDS)
    refuse("options.precision is " + std::to_string(options.precision) + ", expected 0 (automatic) to 8 (operands)");
  if (!options.workspace && options.workspace_bytes != 0)
    refuse("options.workspace is NULL, and options.workspace_bytes is not 0");
  Call p;
  p.function = function;
  p.execution = handle.execution;
  p.require = static_cast<Promise>(options.require);
  p.precision = static_cast<Precision>(options.precision);
  if (options.kernel) p.kernel = options.kernel;
  p.workspace = {.data = options.workspace, .bytes = options.workspace_bytes};
  return p;
}

Contraction problem_of(const rigel_handle& handle, const rigel_options& options, const char* function) {
  Contraction p;
  static_cast<Call&>(p) = call_of(handle, options, function);
  return p;
}

void require_f32_or_f64(const Operand& o) {
  if (o.type != Scalar::f32 && o.type != Scalar::f64)
    refuse(std::string(o.argument) + ".type is " + name(o.type) + ", expected f32 or f64");
}

void require_same_type(const Operand& o, const Operand& as) {
  if (o.type != as.type)
    refuse(detail::describe_argument(o, " is ") + " of " + name(o.type) + ", expected " + name(as.type) + " as " +
           as.argument);
}

}  // namespace rigel::c
