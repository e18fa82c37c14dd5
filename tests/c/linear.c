/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The linear layer: its scalar tier against the chains of docs/numerics.md as loops, bit for bit, and its tensor tier on numbers whose
 * sums are exact. */
#include "support.h"

#include <math.h>
#include <string.h>

enum { batches = 2, m = 23, k = 37, n = 19 };

static rigel_linear_args linear_args(int tier) {
  rigel_linear_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.tier = tier;
  return args;
}

/* ---- matrices of f32 or bf16, read and written as floats --------------------------------------------------------------- */

/* A float rounded to the nearest bf16, ties to even, as the upper half of its bits. */
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_bf16(uint16_t upper) {
  const uint32_t bits = (uint32_t)upper << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static float rounded(rigel_type type, float value) { return type == RIGEL_F32 ? value : of_bf16(to_bf16(value)); }

static int64_t place(const rigel_matrix* a, int l, int i, int j) {
  return (a->batches == 1 ? 0 : l * a->batch_stride) + i * a->row_stride + j * a->column_stride;
}

static float get(const rigel_matrix* a, int l, int i, int j) {
  const int64_t at = place(a, l, i, j);
  return a->type == RIGEL_F32 ? ((const float*)a->data)[at] : of_bf16(((const uint16_t*)a->data)[at]);
}

static void set(const rigel_matrix* a, int l, int i, int j, float value) {
  const int64_t at = place(a, l, i, j);
  if (a->type == RIGEL_F32)
    ((float*)a->data)[at] = value;
  else
    ((uint16_t*)a->data)[at] = to_bf16(value);
}

/* Zeros, with three elements between rows. */
static rigel_matrix matrix(rigel_type type, int count, int rows, int columns) {
  rigel_matrix a = RIGEL_ROW_MAJOR(NULL, type, rows, columns);
  a.batches = count;
  a.row_stride = columns + 3;
  a.batch_stride = rows * a.row_stride;
  a.data = allocate((size_t)(count * a.batch_stride) * (type == RIGEL_F32 ? sizeof(float) : sizeof(uint16_t)));
  return a;
}

static rigel_matrix filled(rigel_type type, int count, int rows, int columns, float (*number)(void)) {
  const rigel_matrix a = matrix(type, count, rows, columns);
  int l, i, j;
  for (l = 0; l < count; ++l)
    for (i = 0; i < rows; ++i)
      for (j = 0; j < columns; ++j) set(&a, l, i, j, number());
  return a;
}

static rigel_matrix transposed(rigel_matrix a) {
  const rigel_matrix given = a;
  a.rows = given.columns;
  a.columns = given.rows;
  a.row_stride = given.column_stride;
  a.column_stride = given.row_stride;
  return a;
}

/* The batch l alone. */
static rigel_matrix batch_of(rigel_matrix a, int l) {
  a.data = (char*)a.data + l * a.batch_stride * (a.type == RIGEL_F32 ? 4 : 2);
  a.batches = 1;
  return a;
}

static float from_minus_one_to_one(void) { return (float)(2 * next_random() - 1); }
static float small_integer(void) { return (float)((int)(next_random() * 9) - 4); }

/* The number of elements of `actual` that differ from value(l, i, j, of). */
typedef struct {
  rigel_matrix x, w, bias, dy, z, start;
} operands;
static int differences(const rigel_matrix* actual, float (*value)(const operands*, int, int, int), const operands* of) {
  int l, i, j, count = 0;
  for (l = 0; l < actual->batches; ++l)
    for (i = 0; i < actual->rows; ++i)
      for (j = 0; j < actual->columns; ++j) count += get(actual, l, i, j) != rounded(actual->type, value(of, l, i, j));
  return count;
}

/* ---- the chains -------------------------------------------------------------------------------------------------------- */

static float sum_of(const operands* o, int l, int i, int j) {
  float sum = 0;
  int z;
  for (z = 0; z < o->x.columns; ++z) sum = fmaf(get(&o->x, l, i, z), get(&o->w, l, z, j), sum);
  return sum;
}
static float biased(const operands* o, int l, int i, int j) { return sum_of(o, l, i, j) + get(&o->bias, l, 0, j); }
static float half_of_biased(const operands* o, int l, int i, int j) { return biased(o, l, i, j) / 2; }
static float relu_of_biased(const operands* o, int l, int i, int j) {
  const float value = biased(o, l, i, j);
  return value < 0 ? 0 : value;
}
/* One matrix for all batches. */
static float weight_of(const operands* o, int unused, int i, int j) {
  float sum = get(&o->start, 0, i, j);
  int l, z;
  (void)unused;
  for (l = 0; l < o->dy.batches; ++l)
    for (z = 0; z < o->dy.rows; ++z) sum = fmaf(get(&o->x, l, z, i), get(&o->dy, l, z, j), sum);
  return sum;
}
static float bias_gradient_of(const operands* o, int unused, int i, int j) {
  float sum = get(&o->start, 0, i, j);
  int l, z;
  (void)unused;
  for (l = 0; l < o->dy.batches; ++l)
    for (z = 0; z < o->dy.rows; ++z) sum += get(&o->dy, l, z, j);
  return sum;
}
static float input_of(const operands* o, int l, int i, int j) {
  float sum = 0;
  int z;
  for (z = 0; z < o->dy.columns; ++z) sum = fmaf(get(&o->dy, l, i, z), get(&o->w, l, j, z), sum);
  return sum;
}
static float relu_input_of(const operands* o, int l, int i, int j) {
  return input_of(o, l, i, j) * (get(&o->z, l, i, j) > 0 ? 1.f : 0.f);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------- */

/* One W of N x K, as PyTorch stores it, and a bias for each batch. */
static void forward(rigel_handle* handle, rigel_type type) {
  rigel_linear_args args = linear_args(RIGEL_TIER_SCALAR);
  const rigel_matrix y = matrix(type, batches, m, n), z = matrix(type, batches, m, n);
  operands o;
  /* docs/numerics.md: 10 u of the value; then Y's rounding to the 8 bits of bf16. 2^-50: the double that it is compared with. */
  const double bound = (1 + 10 * 0x1p-24) * (type == RIGEL_F32 ? 1 : 1 + 0x1p-8) - 1 + 0x1p-50;
  int l, i, j, wrong = 0;
  memset(&o, 0, sizeof o);
  o.x = filled(type, batches, m, k, from_minus_one_to_one);
  o.w = transposed(filled(type, 1, n, k, from_minus_one_to_one));
  o.bias = filled(RIGEL_F32, batches, 1, n, from_minus_one_to_one);

  OK(rigel_linear_forward(handle, &args, &o.x, &o.w, NULL, &y, NULL));
  OK(rigel_synchronize(handle));
  CHECK(differences(&y, sum_of, &o) == 0);

  args.activation = RIGEL_ACTIVATION_RELU;
  OK(rigel_linear_forward(handle, &args, &o.x, &o.w, &o.bias, &y, &z));
  OK(rigel_synchronize(handle));
  CHECK(differences(&y, relu_of_biased, &o) == 0);
  CHECK(differences(&z, biased, &o) == 0);

  args.activation = RIGEL_ACTIVATION_NONE;
  args.epilogue.steps_count = 1;
  args.epilogue.steps[0].kind = RIGEL_SCALE;
  args.epilogue.steps[0].x = 0.5;
  OK(rigel_linear_forward(handle, &args, &o.x, &o.w, &o.bias, &y, NULL));
  OK(rigel_synchronize(handle));
  CHECK(differences(&y, half_of_biased, &o) == 0);

  args.epilogue.steps_count = 0;
  args.activation = RIGEL_ACTIVATION_SILU;
  OK(rigel_linear_forward(handle, &args, &o.x, &o.w, &o.bias, &y, &z));
  OK(rigel_synchronize(handle));
  CHECK(differences(&z, biased, &o) == 0);
  for (l = 0; l < batches; ++l)
    for (i = 0; i < m; ++i)
      for (j = 0; j < n; ++j) {
        const double v = biased(&o, l, i, j), silu = v / (1 + exp(-v));
        wrong += !(fabs(get(&y, l, i, j) - silu) <= bound * fabs(silu));
      }
  CHECK(wrong == 0);
}

/* y/(x + s + bias), with y from a row, a column or a matrix, with Z and without, on numbers whose sums are exact. */
static void second_parameters(rigel_handle* handle) {
  rigel_linear_args args = linear_args(RIGEL_TIER_SCALAR);
  const rigel_matrix y = matrix(RIGEL_F32, batches, m, n), z = matrix(RIGEL_F32, batches, m, n),
                     x = filled(RIGEL_F32, 1, 1, 1, small_integer);
  const int rows[] = {1, m, m, m}, columns[] = {n, 1, n, n};
  operands o;
  int shape, keeps, l, i, j;
  memset(&o, 0, sizeof o);
  o.x = filled(RIGEL_F32, batches, m, k, small_integer);
  o.w = transposed(filled(RIGEL_F32, 1, n, k, small_integer));
  o.bias = filled(RIGEL_F32, batches, 1, n, small_integer);
  set(&x, 0, 0, 0, 4096);
  args.epilogue.steps_count = 1;
  args.epilogue.sources_count = 2;
  args.epilogue.steps[0].kind = RIGEL_RECIPROCAL;
  args.epilogue.steps[0].x_source = 1;
  args.epilogue.steps[0].y_source = 2;
  args.epilogue.sources[0] = x;
  for (shape = 0; shape < 4; ++shape) {
    const int of_batches = shape < 3 ? 1 : batches;
    const rigel_matrix numerators = filled(RIGEL_F32, of_batches, rows[shape], columns[shape], from_minus_one_to_one);
    args.epilogue.sources[1] = numerators;
    for (keeps = 0; keeps < 2; ++keeps) {
      int wrong = 0;
      OK(rigel_linear_forward(handle, &args, &o.x, &o.w, &o.bias, &y, keeps ? &z : NULL));
      OK(rigel_synchronize(handle));
      for (l = 0; l < batches; ++l)
        for (i = 0; i < m; ++i)
          for (j = 0; j < n; ++j)
            wrong += get(&y, l, i, j) != get(&numerators, l, numerators.rows == 1 ? 0 : i, numerators.columns == 1 ? 0 : j) /
                                             (4096 + biased(&o, l, i, j));
      CHECK(wrong == 0);
    }
  }
}

/* One dW and one db for both batches: in one call, and in a call for each. */
static void backward_weight(rigel_handle* handle, rigel_type type) {
  rigel_linear_args args = linear_args(RIGEL_TIER_SCALAR);
  const rigel_matrix dw = filled(RIGEL_F32, 1, k, n, from_minus_one_to_one),
                     db = filled(RIGEL_F32, 1, 1, n, from_minus_one_to_one);
  const rigel_matrix parts = matrix(RIGEL_F32, 1, k, n), part = matrix(RIGEL_F32, 1, 1, n);
  operands weight, bias;
  int l;
  memset(&weight, 0, sizeof weight);
  weight.x = filled(type, batches, m, k, from_minus_one_to_one);
  weight.dy = filled(type, batches, m, n, from_minus_one_to_one);
  bias = weight;
  weight.start = matrix(RIGEL_F32, 1, k, n);
  bias.start = matrix(RIGEL_F32, 1, 1, n);
  memcpy(weight.start.data, dw.data, (size_t)dw.batch_stride * sizeof(float));
  memcpy(parts.data, dw.data, (size_t)dw.batch_stride * sizeof(float));
  memcpy(bias.start.data, db.data, (size_t)db.batch_stride * sizeof(float));
  memcpy(part.data, db.data, (size_t)db.batch_stride * sizeof(float));

  OK(rigel_linear_backward_weight(handle, &args, &weight.x, &weight.dy, &dw, &db));
  for (l = 0; l < batches; ++l) {
    const rigel_matrix x = batch_of(weight.x, l), dy = batch_of(weight.dy, l);
    OK(rigel_linear_backward_weight(handle, &args, &x, &dy, &parts, &part));
  }
  OK(rigel_synchronize(handle));
  CHECK(differences(&dw, weight_of, &weight) == 0);
  CHECK(differences(&db, bias_gradient_of, &bias) == 0);
  CHECK(differences(&parts, weight_of, &weight) == 0);
  CHECK(differences(&part, bias_gradient_of, &bias) == 0);

  /* In place of what they hold. */
  args.overwrite = 1;
  memset(weight.start.data, 0, (size_t)dw.batch_stride * sizeof(float));
  memset(bias.start.data, 0, (size_t)db.batch_stride * sizeof(float));
  OK(rigel_linear_backward_weight(handle, &args, &weight.x, &weight.dy, &dw, &db));
  OK(rigel_synchronize(handle));
  CHECK(differences(&dw, weight_of, &weight) == 0);
  CHECK(differences(&db, bias_gradient_of, &bias) == 0);
}

static void backward_input(rigel_handle* handle, rigel_type type) {
  rigel_linear_args args = linear_args(RIGEL_TIER_SCALAR);
  const rigel_matrix dx = matrix(type, batches, m, k);
  operands o;
  memset(&o, 0, sizeof o);
  o.dy = filled(type, batches, m, n, from_minus_one_to_one);
  o.w = filled(type, batches, k, n, from_minus_one_to_one);
  o.z = filled(type, batches, m, k, from_minus_one_to_one);
  OK(rigel_linear_backward_input(handle, &args, &o.dy, &o.w, &dx, NULL));
  OK(rigel_synchronize(handle));
  CHECK(differences(&dx, input_of, &o) == 0);
  args.activation = RIGEL_ACTIVATION_RELU;
  OK(rigel_linear_backward_input(handle, &args, &o.dy, &o.w, &dx, &o.z));
  OK(rigel_synchronize(handle));
  CHECK(differences(&dx, relu_input_of, &o) == 0);
}

/* Sums of f32 that become bf16 afterwards, a row of ones, and the derivative of an activation lie in the workspace. */
static void workspaces(rigel_handle* handle) {
  rigel_linear_args args = linear_args(RIGEL_TIER_SCALAR);
  const rigel_matrix x = filled(RIGEL_BF16, 1, m, k, from_minus_one_to_one),
                     w = filled(RIGEL_BF16, 1, k, n, from_minus_one_to_one);
  const rigel_matrix y = matrix(RIGEL_BF16, 1, m, n), again = matrix(RIGEL_BF16, 1, m, n);
  const rigel_matrix dw = matrix(RIGEL_F32, 1, k, n), db = matrix(RIGEL_F32, 1, 1, n), dx = matrix(RIGEL_BF16, 1, m, k);
  size_t bytes = 0, of_weight = 0, of_input = 0;
  args.activation = RIGEL_ACTIVATION_GELU;
  OK(rigel_linear_forward_workspace_size(handle, &args, &x, &w, NULL, &y, NULL, &bytes));
  CHECK(bytes >= m * n * sizeof(float));
  OK(rigel_linear_backward_input_workspace_size(handle, &args, &y, &w, &dx, &x, &of_input));
  CHECK(of_input >= m * k * sizeof(float));
  OK(rigel_linear_forward(handle, &args, &x, &w, NULL, &y, NULL));
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes - 1;
  FAILS(rigel_linear_forward(handle, &args, &x, &w, NULL, &again, NULL), RIGEL_INVALID_ARGUMENT,
        "rigel_linear_forward: ", "workspace", NULL);
  args.options.workspace_bytes = bytes;
  OK(rigel_linear_forward(handle, &args, &x, &w, NULL, &again, NULL));
  OK(rigel_synchronize(handle));
  CHECK(memcmp(y.data, again.data, (size_t)y.batch_stride * sizeof(uint16_t)) == 0);
  args = linear_args(RIGEL_TIER_SCALAR);
  OK(rigel_linear_backward_weight_workspace_size(handle, &args, &x, &y, &dw, &db, &of_weight));
  CHECK(of_weight >= m * sizeof(uint16_t));
}

/* Integers whose sums are below 2^24. */
static void tensor(rigel_handle* handle) {
  rigel_linear_args args = linear_args(RIGEL_TIER_TENSOR);
  const rigel_matrix y = matrix(RIGEL_F32, 1, m, n), dw = matrix(RIGEL_F32, 1, k, n), db = matrix(RIGEL_F32, 1, 1, n),
                     dx = matrix(RIGEL_F32, 1, m, k);
  operands o, bias;
  if (tests_host()) return; /* refused there: errors.c */
  memset(&o, 0, sizeof o);
  o.x = filled(RIGEL_BF16, 1, m, k, small_integer);
  o.w = filled(RIGEL_BF16, 1, k, n, small_integer);
  o.dy = filled(RIGEL_BF16, 1, m, n, small_integer);
  o.bias = filled(RIGEL_F32, 1, 1, n, small_integer);
  o.start = matrix(RIGEL_F32, 1, k, n);
  bias = o;
  bias.start = matrix(RIGEL_F32, 1, 1, n);
  OK(rigel_linear_backward_weight(handle, &args, &o.x, &o.dy, &dw, &db));
  OK(rigel_linear_backward_input(handle, &args, &o.dy, &o.w, &dx, NULL));
  args.activation = RIGEL_ACTIVATION_RELU;
  OK(rigel_linear_forward(handle, &args, &o.x, &o.w, &o.bias, &y, NULL));
  OK(rigel_synchronize(handle));
  CHECK(differences(&y, relu_of_biased, &o) == 0);
  CHECK(differences(&dw, weight_of, &o) == 0);
  CHECK(differences(&db, bias_gradient_of, &bias) == 0);
  CHECK(differences(&dx, input_of, &o) == 0);
}

void test_linear(rigel_handle* handle) {
  static const rigel_type types[] = {RIGEL_F32, RIGEL_BF16};
  int i;
  for (i = 0; i < 2; ++i) {
    forward(handle, types[i]);
    backward_weight(handle, types[i]);
    backward_input(handle, types[i]);
  }
  second_parameters(handle);
  workspaces(handle);
  tensor(handle);
}
