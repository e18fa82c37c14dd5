/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * contract() and cdist(): against products worked out by hand, and loops. */
#include "support.h"

#include <math.h>
#include <string.h>

static rigel_contract_args contract_args(const char* semiring) {
  rigel_contract_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.semiring = semiring;
  return args;
}

static rigel_cdist_args cdist_args(const char* metric) {
  rigel_cdist_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.metric = metric;
  return args;
}

static float* floats(size_t count, const float* values) {
  float* const memory = allocate(count * sizeof(float));
  if (values) memcpy(memory, values, count * sizeof(float));
  return memory;
}

static void check_floats(const float* actual, const float* expected, int count, int line) {
  int i;
  for (i = 0; i < count; ++i) check(actual[i] == expected[i], "an element of a result", "", __FILE__, line);
}
#define CHECK_FLOATS(actual, expected, count) check_floats(actual, expected, count, __LINE__)

/* (1 2; 3 4) (5 6; 7 8) = (19 22; 43 50), and what epilogues, accumulation, layouts and batches make of it. */
static void by_hand(rigel_handle* handle) {
  static const float a_values[] = {1, 2, 3, 4}, b_values[] = {5, 6, 7, 8}, product[] = {19, 22, 43, 50};
  static const float bias_values[] = {-20, 1}, biased[] = {0, 23, 23, 51}, twice[] = {38, 44, 86, 100};
  static const float of_transposes[] = {23, 31, 34, 46}; /* (1 3; 2 4) (5 7; 6 8) */
  static const float least[] = {6, 7, 8, 9};             /* min_k a + b: min(1 + 5, 2 + 7) = 6, … */
  float* const a_data = floats(4, a_values);
  float* const b_data = floats(4, b_values);
  float* const c_data = floats(8, NULL);
  float* const bias = floats(2, bias_values);
  rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F32, 2, 2),
               c = RIGEL_ROW_MAJOR(c_data, RIGEL_F32, 2, 2);
  const rigel_matrix row = RIGEL_ROW_MAJOR(bias, RIGEL_F32, 1, 2);
  const rigel_matrix at = RIGEL_COLUMN_MAJOR(a_data, RIGEL_F32, 2, 2), bt = RIGEL_COLUMN_MAJOR(b_data, RIGEL_F32, 2, 2);
  rigel_contract_args args = contract_args("plus_times");

  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, product, 4);

  args.accumulate = 1;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, twice, 4);
  args.accumulate = 0;

  OK(rigel_contract(handle, &args, &at, &bt, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, of_transposes, 4);

  /* relu(C + bias): (19 - 20, 22 + 1; 43 - 20, 50 + 1) */
  args.epilogue.steps_count = 2;
  args.epilogue.sources_count = 1;
  args.epilogue.sources[0] = row;
  args.epilogue.steps[0].kind = RIGEL_ADD;
  args.epilogue.steps[0].x_source = 1;
  args.epilogue.steps[1].kind = RIGEL_RELU;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, biased, 4);

  args = contract_args("min_plus");
  args.options.require = RIGEL_REFERENCE_BITS | RIGEL_REPEATABLE | RIGEL_BATCH_INVARIANT;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, least, 4);

  /* Two batches of C, one A for both, and B's batches one row of two numbers apart: (5 6; 7 8) and itself, reached by stride 0. */
  args = contract_args("plus_times");
  b.batches = 2;
  b.batch_stride = 0;
  c.batches = 2;
  c.batch_stride = 4;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, product, 4);
  CHECK_FLOATS(c_data + 4, product, 4);

  /* K = 0: the identity. M = 0: nothing. */
  a.columns = 0;
  b = c;
  b.rows = 0;
  b.data = NULL;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 0 && c_data[7] == 0);
  c_data[0] = 5;
  a.rows = 0;
  c.rows = 0;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 5);
}

/* What a program makes of output (i, j) of C in f64, of no more than its two steps. A source: a number for each row, column or element. */
static double after_step(const rigel_program* program, double v, int i, int j) {
  const rigel_step* const step = program->steps;
  const rigel_matrix* const sources = program->sources;
  double parameters[2];
  int p;
  for (p = 0; p < 2; ++p) {
    const rigel_matrix* const s = &sources[(p == 0 ? step->x_source : step->y_source) - 1];
    parameters[p] =
        ((const double*)s->data)[(s->rows == 1 ? 0 : i * s->row_stride) + (s->columns == 1 ? 0 : j * s->column_stride)];
  }
  if (step->kind == RIGEL_RECIPROCAL) return parameters[1] / (parameters[0] + v);
  return fmin(fmax(v, parameters[0]), parameters[1]);
}

/* Both parameters of a step from a row, a column, a matrix or one number, for a C by rows and by columns. Sums are exact. */
static void second_parameters(rigel_handle* handle) {
  enum { m = 5, n = 7, k = 3, shapes = 4 };
  static const int32_t kinds[] = {RIGEL_CLAMP, RIGEL_RECIPROCAL};
  double* const a_data = allocate(m * k * sizeof(double));
  double* const b_data = allocate(k * n * sizeof(double));
  double* const c_data = allocate(m * n * sizeof(double));
  double* const x_data = allocate(m * n * sizeof(double));
  double* const y_data = allocate(m * n * sizeof(double));
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, m, k), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F64, k, n);
  const rigel_matrix by_rows = RIGEL_ROW_MAJOR(c_data, RIGEL_F64, m, n),
                     by_columns = RIGEL_COLUMN_MAJOR(c_data, RIGEL_F64, m, n);
  int kind, of_x, of_y, along_m, i, j, z;
  for (i = 0; i < m * k; ++i) a_data[i] = (int)(next_random() * 9) - 4;
  for (i = 0; i < k * n; ++i) b_data[i] = (int)(next_random() * 9) - 4;
  for (kind = 0; kind < 2; ++kind)
    for (of_x = 0; of_x < shapes; ++of_x)
      for (of_y = 0; of_y < shapes; ++of_y)
        for (along_m = 0; along_m < 2; ++along_m) {
          const rigel_matrix c = along_m ? by_columns : by_rows;
          rigel_contract_args args = contract_args("plus_times");
          rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, of_x / 2 ? m : 1, of_x % 2 ? n : 1),
                       y = RIGEL_ROW_MAJOR(y_data, RIGEL_F64, of_y / 2 ? m : 1, of_y % 2 ? n : 1);
          int wrong = 0;
          for (i = 0; i < m * n; ++i) x_data[i] = kinds[kind] == RIGEL_CLAMP ? (int)(next_random() * 40) - 30 : 100 + i;
          for (i = 0; i < m * n; ++i) y_data[i] = kinds[kind] == RIGEL_CLAMP ? (int)(next_random() * 40) - 10 : 1 + i;
          args.epilogue.steps_count = 1;
          args.epilogue.sources_count = 2;
          args.epilogue.steps[0].kind = kinds[kind];
          args.epilogue.steps[0].x_source = 1;
          args.epilogue.steps[0].y_source = 2;
          args.epilogue.sources[0] = x;
          args.epilogue.sources[1] = y;
          OK(rigel_contract(handle, &args, &a, &b, &c));
          OK(rigel_synchronize(handle));
          for (i = 0; i < m; ++i)
            for (j = 0; j < n; ++j) {
              double sum = 0;
              for (z = 0; z < k; ++z) sum += a_data[i * k + z] * b_data[z * n + j];
              wrong += c_data[i * c.row_stride + j * c.column_stride] != after_step(&args.epilogue, sum, i, j);
            }
          CHECK(wrong == 0);
        }
}

/* Eight steps that add the given sources in turn. */
static void add_sources(rigel_program* epilogue, int sources_count) {
  int i;
  epilogue->steps_count = RIGEL_MOST_STEPS;
  epilogue->sources_count = sources_count;
  for (i = 0; i < RIGEL_MOST_STEPS; ++i) {
    epilogue->steps[i].kind = RIGEL_ADD;
    epilogue->steps[i].x_source = 1 + i % sources_count;
  }
}

/* A source counts once, whatever steps use it; a metric's own steps and a bias count not at all. */
static void full_programs(rigel_handle* handle) {
  static const float a_values[] = {1, 2, 3, 4}, b_values[] = {5, 6, 7, 8}, numbers[] = {1, 2, 3, 4, 30};
  static const float row_eight_times[] = {27, 38, 51, 66}; /* (19 22; 43 50) + 8 (1 2) */
  static const float clamped[] = {30, 30, 30, 30};
  static const float x_values[] = {0, 0}, z_values[] = {3, 4}, bias_values[] = {-20, 1};
  static const float biased[] = {19, 43}; /* (1 2) (5 6; 7 8) + (-20 1) + 2 (1 + 2 + 3 + 4) */
  float* const a_data = floats(4, a_values);
  float* const b_data = floats(4, b_values);
  float* const c_data = floats(4, NULL);
  float* const z_data = floats(4, NULL);
  float* const number_data = floats(5, numbers);
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F32, 2, 2),
                     c = RIGEL_ROW_MAJOR(c_data, RIGEL_F32, 2, 2), row = RIGEL_ROW_MAJOR(number_data, RIGEL_F32, 1, 2);
  const rigel_matrix x = RIGEL_ROW_MAJOR(floats(2, x_values), RIGEL_F32, 1, 2),
                     z = RIGEL_ROW_MAJOR(floats(2, z_values), RIGEL_F32, 1, 2), d = RIGEL_ROW_MAJOR(c_data, RIGEL_F32, 1, 1);
  const rigel_matrix first_row = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, 1, 2),
                     bias = RIGEL_ROW_MAJOR(floats(2, bias_values), RIGEL_F32, 1, 2),
                     y = RIGEL_ROW_MAJOR(c_data, RIGEL_F32, 1, 2), kept = RIGEL_ROW_MAJOR(z_data, RIGEL_F32, 1, 2);
  rigel_contract_args args = contract_args("plus_times");
  rigel_cdist_args distance = cdist_args("euclidean");
  rigel_linear_args layer;
  int i;

  args.epilogue.sources[0] = row;
  add_sources(&args.epilogue, 1);
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, row_eight_times, 4);

  /* One number as both bounds. */
  args = contract_args("plus_times");
  args.epilogue.steps_count = args.epilogue.sources_count = 1;
  args.epilogue.steps[0].kind = RIGEL_CLAMP;
  args.epilogue.steps[0].x_source = args.epilogue.steps[0].y_source = 1;
  args.epilogue.sources[0] = row;
  args.epilogue.sources[0].data = number_data + 4;
  args.epilogue.sources[0].columns = 1;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(c_data, clamped, 4);

  memset(&layer, 0, sizeof layer);
  layer.size = sizeof layer;
  for (i = 0; i < RIGEL_MOST_SOURCES; ++i) {
    const rigel_matrix number = RIGEL_ROW_MAJOR(number_data + i, RIGEL_F32, 1, 1);
    distance.epilogue.sources[i] = layer.epilogue.sources[i] = number;
  }
  add_sources(&distance.epilogue, RIGEL_MOST_SOURCES);
  OK(rigel_cdist(handle, &distance, &x, &z, &d));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 25); /* 5 + 2 (1 + 2 + 3 + 4) */

  add_sources(&layer.epilogue, RIGEL_MOST_SOURCES);
  for (i = 0; i < 2; ++i) {
    OK(rigel_linear_forward(handle, &layer, &first_row, &b, &bias, &y, i == 0 ? NULL : &kept));
    OK(rigel_synchronize(handle));
    CHECK_FLOATS(c_data, biased, 2);
  }
}

/* Strided operands and integers, which are exact, against loops. */
static void against_loops(rigel_handle* handle) {
  enum { m = 23, n = 19, k = 31, pitch = 37 };
  double* const a_data = allocate(m * pitch * sizeof(double));
  double* const b_data = allocate(k * pitch * sizeof(double));
  double* const c_data = allocate(m * pitch * sizeof(double));
  int32_t* const i_data = allocate(m * k * sizeof(int32_t));
  int32_t* const j_data = allocate(k * n * sizeof(int32_t));
  int32_t* const l_data = allocate(m * n * sizeof(int32_t));
  rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, m, k), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F64, k, n),
               c = RIGEL_ROW_MAJOR(c_data, RIGEL_F64, m, n);
  const rigel_matrix i = RIGEL_ROW_MAJOR(i_data, RIGEL_I32, m, k), j = RIGEL_ROW_MAJOR(j_data, RIGEL_I32, k, n),
                     l = RIGEL_ROW_MAJOR(l_data, RIGEL_I32, m, n);
  const rigel_parameter p = {"p", 1.25};
  rigel_contract_args args = contract_args("lp");
  int x, y, z;
  a.row_stride = b.row_stride = c.row_stride = pitch;
  for (x = 0; x < m * pitch; ++x) a_data[x] = next_random();
  for (x = 0; x < k * pitch; ++x) b_data[x] = next_random();
  for (x = 0; x < m * pitch; ++x) c_data[x] = -1;
  for (x = 0; x < m * k; ++x) i_data[x] = (int32_t)(next_random() * 1000) - 500;
  for (x = 0; x < k * n; ++x) j_data[x] = (int32_t)(next_random() * 1000) - 500;

  args.parameters = &p;
  args.parameters_count = 1;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  args.parameters_count = 0;
  args.semiring = "max_plus";
  OK(rigel_contract(handle, &args, &i, &j, &l));
  OK(rigel_synchronize(handle));
  for (x = 0; x < m; ++x)
    for (y = 0; y < pitch; ++y) {
      double sum = 0;
      int32_t largest = INT32_MIN;
      if (y >= n) {
        CHECK(c_data[x * pitch + y] == -1); /* between the rows of C */
        continue;
      }
      for (z = 0; z < k; ++z) {
        const int32_t joined = i_data[x * k + z] + j_data[z * n + y];
        sum += pow(fabs(a_data[x * pitch + z] - b_data[z * pitch + y]), 1.25);
        if (joined > largest) largest = joined;
      }
      /* Two sums of k non-negative terms, each with powers within 16 units. */
      CHECK(fabs(c_data[x * pitch + y] - sum) <= 2 * (k + 16) * 0x1p-53 * sum);
      CHECK(l_data[x * n + y] == largest);
    }
}

/* Squares that int32 does not hold: of the rows (70000, 0) and (0, -2147483647), whose distance from (0, 0) they are. */
static void integer_distances(rigel_handle* handle) {
  int32_t* const x_data = allocate(4 * sizeof(int32_t));
  int32_t* const z_data = allocate(2 * sizeof(int32_t));
  float* const d_data = floats(2, NULL);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_I32, 2, 2), z = RIGEL_ROW_MAJOR(z_data, RIGEL_I32, 1, 2),
                     d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, 2, 1);
  const rigel_cdist_args args = cdist_args("euclidean");
  x_data[0] = 70000;
  x_data[1] = x_data[2] = z_data[0] = z_data[1] = 0;
  x_data[3] = -2147483647;
  OK(rigel_cdist(handle, &args, &x, &z, &d));
  OK(rigel_synchronize(handle));
  CHECK(d_data[0] == 70000);
  CHECK(d_data[1] == 2147483648.f);
}

/* Neighbours among int64 that double does not hold, and the limits; any p. */
static void wide_differences(rigel_handle* handle) {
  static const char* const names[] = {"manhattan", "euclidean", "chebyshev", "minkowski"};
  int64_t* const x_data = allocate(2 * sizeof(int64_t));
  int64_t* const z_data = allocate(sizeof(int64_t));
  float* const d_data = floats(2, NULL);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_I64, 2, 1), z = RIGEL_ROW_MAJOR(z_data, RIGEL_I64, 1, 1),
                     d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, 2, 1);
  const rigel_parameter p = {"p", 1};
  int i;
  for (i = 0; i < 4; ++i) {
    rigel_cdist_args args = cdist_args(names[i]);
    if (i == 3) {
      args.parameters = &p;
      args.parameters_count = 1;
    }
    x_data[0] = ((int64_t)1 << 60) + 1;
    x_data[1] = (int64_t)1 << 60;
    z_data[0] = ((int64_t)1 << 60) + 2;
    OK(rigel_cdist(handle, &args, &x, &z, &d));
    OK(rigel_synchronize(handle));
    CHECK(d_data[0] == 1);
    CHECK(d_data[1] == 2);
    x_data[0] = INT64_MIN;
    z_data[0] = INT64_MAX;
    OK(rigel_cdist(handle, &args, &x, &z, &d));
    OK(rigel_synchronize(handle));
    CHECK(d_data[0] == 0x1p64f);
  }
}

static void distances(rigel_handle* handle) {
  static const float x_values[] = {0, 0, 3, 4, 1, 0}, z_values[] = {3, 4, 0, 2};
  static const float euclidean[] = {5, 2, 0, 3.605551275f, 4.472135955f, 2.236067977f}, squares[] = {25, 4, 0, 13, 20, 5};
  static const float city[] = {7, 2, 0, 5, 6, 3};
  static const float cosine_values[] = {0, 0.2f, 0.4f, 1};
  float* const x_data = floats(6, x_values);
  float* const z_data = floats(4, z_values);
  float* const d_data = floats(6, NULL);
  rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F32, 3, 2), d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, 3, 2);
  const rigel_matrix z = RIGEL_ROW_MAJOR(z_data, RIGEL_F32, 2, 2);
  rigel_parameter p = {"p", 1};
  rigel_cdist_args args = cdist_args("euclidean");
  int i;
  args.options.precision = RIGEL_PRECISION_ACCUMULATOR;
  OK(rigel_cdist(handle, &args, &x, &z, &d));
  OK(rigel_synchronize(handle));
  for (i = 0; i < 6; ++i) CHECK(fabs(d_data[i] - euclidean[i]) <= 0x1p-23 * euclidean[i]);
  args.skip_epilogue = 1;
  OK(rigel_cdist(handle, &args, &x, &z, &d));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(d_data, squares, 6);

  args = cdist_args("minkowski");
  args.parameters = &p;
  args.parameters_count = 1;
  OK(rigel_cdist(handle, &args, &x, &z, &d));
  OK(rigel_synchronize(handle));
  CHECK_FLOATS(d_data, city, 6);

  /* The rows (3, 4) and (1, 0) of X, the rows (3, 4) and (0, 2) of Z: 1 - 25/25, 1 - 8/10, 1 - 3/5, 1 - 0. */
  args = cdist_args("cosine");
  args.options.precision = RIGEL_PRECISION_ACCUMULATOR;
  x.data = x_data + 2;
  x.rows = d.rows = 2;
  OK(rigel_cdist(handle, &args, &x, &z, &d));
  OK(rigel_synchronize(handle));
  /* docs/numerics.md: (c + t K + K/32 + 10) u D + 2.9 u sqrt(D) + 2.1 u^2 with c + t K <= 2 + K */
  for (i = 0; i < 4; ++i)
    CHECK(fabs(d_data[i] - cosine_values[i]) <=
          0x1p-24 * (15 * cosine_values[i] + 2.9 * sqrt(cosine_values[i])) + 0x1p-24 * cosine_values[i] + 2.1 * 0x1p-48);
  integer_distances(handle);
  wide_differences(handle);
}

static void workspaces(rigel_handle* handle) {
  enum { m = 20, k = 30 };
  float* const x_data = floats(m * k, NULL);
  float* const d_data = floats(2 * m * m, NULL);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F32, m, k), d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, m, m),
                     e = RIGEL_ROW_MAJOR(d_data + m * m, RIGEL_F32, m, m);
  rigel_cdist_args args = cdist_args("correlation");
  size_t bytes = 0;
  int i;
  for (i = 0; i < m * k; ++i) x_data[i] = (float)next_random();
  OK(rigel_cdist_workspace_size(handle, &args, &x, &x, &d, &bytes));
  CHECK(bytes >= m * k * sizeof(float));
  OK(rigel_presize(handle, bytes));
  OK(rigel_cdist(handle, &args, &x, &x, &d));
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes - 1;
  FAILS(rigel_cdist(handle, &args, &x, &x, &e), RIGEL_INVALID_ARGUMENT, "rigel_cdist: ", "workspace", NULL);
  args.options.workspace_bytes = bytes;
  OK(rigel_cdist(handle, &args, &x, &x, &e));
  OK(rigel_synchronize(handle));
  CHECK(memcmp(d_data, d_data + m * m, m * m * sizeof(float)) == 0);
  OK(rigel_release_presized(handle));
  rigel_release_workspaces();
}

static void result_types(void) {
  static const struct {
    const char* semiring;
    rigel_type element, accumulator, result;
  } of[] = {{"plus_times", RIGEL_I8, 0, RIGEL_I32},
            {"plus_times", RIGEL_F64, 0, RIGEL_F64},
            {"min_plus", RIGEL_I64, 0, RIGEL_I64},
            {"plus_times", RIGEL_BF16, 0, RIGEL_F32},
            {"or_and", RIGEL_U8, 0, RIGEL_U8},
            {"or_and", RIGEL_U64, 0, RIGEL_U64},
            {"min_plus", RIGEL_F16, RIGEL_F16, RIGEL_F16},
            {"bit_jaccard", RIGEL_U32, 0, RIGEL_F32}};
  rigel_type type = 0;
  size_t i;
  for (i = 0; i < sizeof of / sizeof *of; ++i) {
    OK(rigel_result_type(of[i].semiring, of[i].element, of[i].accumulator, &type));
    check(type == of[i].result, "the type of results", of[i].semiring, __FILE__, __LINE__);
  }
  FAILS(rigel_result_type("nothing", RIGEL_F32, 0, &type), RIGEL_NOT_FOUND, "'nothing' is no semiring", NULL, NULL);
  FAILS(rigel_result_type("log_plus", RIGEL_I32, 0, &type), RIGEL_UNSUPPORTED, "log_plus", "i32", NULL);
  FAILS(rigel_result_type("log_plus", 99, 0, &type), RIGEL_INVALID_ARGUMENT, "element is 99", NULL, NULL);
  FAILS(rigel_result_type("log_plus", RIGEL_F32, 0, NULL), RIGEL_INVALID_ARGUMENT, "result is NULL", NULL, NULL);
}

void test_calls(rigel_handle* handle) {
  result_types();
  by_hand(handle);
  second_parameters(handle);
  full_programs(handle);
  against_loops(handle);
  distances(handle);
  workspaces(handle);
}
