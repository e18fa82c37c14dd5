/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Reductions: of a semiring's scores by hand, of distances against rigel_cdist()'s matrix, and what is refused. */
#include "support.h"

#include <math.h>
#include <string.h>

static rigel_reduce_args reduce_args(const char* semiring, int32_t reducer) {
  rigel_reduce_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.semiring = semiring;
  args.reduction.reducer = reducer;
  return args;
}

static rigel_reduce_distances_args distances_args(const char* metric, int32_t reducer) {
  rigel_reduce_distances_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.metric = metric;
  args.reduction.reducer = reducer;
  return args;
}

static int same(const float* actual, const float* expected, int count) {
  int i;
  for (i = 0; i < count; ++i)
    if (actual[i] != expected[i]) return 0;
  return 1;
}

/* min_plus of (0 1; 2 0) and (5 3 4; 1 3 9): the scores (2 3 4; 1 3 6). */
static void by_hand(rigel_handle* handle) {
  static const float a_values[] = {0, 1, 2, 0}, b_values[] = {5, 3, 4, 1, 3, 9};
  float *const a_data = allocate(sizeof a_values), *const b_data = allocate(sizeof b_values), *const v = allocate(64);
  int64_t *const n = allocate(64), *const offsets = allocate(64);
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F32, 2, 3),
                     starts = RIGEL_ROW_MAJOR(offsets, RIGEL_I64, 3, 1);
  rigel_matrix values = RIGEL_ROW_MAJOR(v, RIGEL_F32, 2, 1), indices = RIGEL_ROW_MAJOR(n, RIGEL_I64, 2, 1);
  rigel_reduce_args args = reduce_args("min_plus", RIGEL_MINIMUM);
  size_t bytes = 0;
  memcpy(a_data, a_values, sizeof a_values);
  memcpy(b_data, b_values, sizeof b_values);

  OK(rigel_reduce(handle, &args, &a, &b, &values, &indices));
  OK(rigel_synchronize(handle));
  CHECK(v[0] == 2 && v[1] == 1 && n[0] == 0 && n[1] == 0);

  args.reduction.reducer = RIGEL_MAXIMUM;
  OK(rigel_reduce(handle, &args, &a, &b, NULL, &indices));
  OK(rigel_synchronize(handle));
  CHECK(n[0] == 2 && n[1] == 2);

  args.reduction.reducer = RIGEL_SUM; /* of 3 less than twice the scores: (1 3 5; -1 3 9) */
  args.epilogue.steps_count = 2;
  args.epilogue.steps[0].kind = RIGEL_SCALE;
  args.epilogue.steps[0].x = 2;
  args.epilogue.steps[1].kind = RIGEL_ADD;
  args.epilogue.steps[1].x = -3;
  OK(rigel_reduce(handle, &args, &a, &b, &values, NULL));
  OK(rigel_synchronize(handle));
  CHECK(v[0] == 9 && v[1] == 11);

  args = reduce_args("min_plus", RIGEL_LOG_SUM_EXP);
  OK(rigel_reduce(handle, &args, &a, &b, &values, NULL));
  OK(rigel_synchronize(handle));
  CHECK(fabs(v[0] - log(exp(2) + exp(3) + exp(4))) < 1e-6 && fabs(v[1] - log(exp(1) + exp(3) + exp(6))) < 1e-6);

  args = reduce_args("min_plus", RIGEL_LARGEST);
  args.reduction.k = 4;
  values.columns = values.row_stride = indices.columns = indices.row_stride = 4;
  OK(rigel_reduce(handle, &args, &a, &b, &values, &indices));
  OK(rigel_synchronize(handle));
  {
    static const float largest[] = {4, 3, 2, -INFINITY, 6, 3, 1, -INFINITY};
    static const int64_t places[] = {2, 1, 0, -1, 2, 1, 0, -1};
    CHECK(same(v, largest, 8));
    CHECK(memcmp(n, places, sizeof places) == 0);
  }

  args = reduce_args("min_plus", RIGEL_COUNT_BELOW);
  args.reduction.threshold = 3;
  args.reduction.or_equal = 1;
  values.columns = values.row_stride = indices.columns = indices.row_stride = 1;
  OK(rigel_reduce_workspace_size(handle, &args, &a, &b, &values, NULL, &bytes));
  args.options.workspace_bytes = bytes;
  args.options.workspace = allocate(bytes);
  OK(rigel_reduce(handle, &args, &a, &b, &values, NULL));
  OK(rigel_synchronize(handle));
  CHECK(v[0] == 2 && v[1] == 2);

  args = reduce_args("min_plus", RIGEL_ALL_BELOW);
  args.reduction.threshold = 3;
  args.reduction.or_equal = 1;
  args.reduction.offsets = &starts;
  offsets[0] = 0;
  offsets[1] = 2;
  offsets[2] = 4;
  values.rows = indices.rows = 4;
  OK(rigel_reduce(handle, &args, &a, &b, &values, &indices));
  OK(rigel_synchronize(handle));
  {
    static const float below[] = {2, 3, 1, 3};
    static const int64_t places[] = {0, 1, 0, 1};
    CHECK(same(v, below, 4));
    CHECK(memcmp(n, places, sizeof places) == 0);
  }
}

/* Sums of integers have 64 bits. */
static void of_integers(rigel_handle* handle) {
  int32_t *const a_data = allocate(8), *const b_data = allocate(16);
  int64_t* const sums = allocate(16);
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_I32, 2, 1), b = RIGEL_ROW_MAJOR(b_data, RIGEL_I32, 1, 3),
                     values = RIGEL_ROW_MAJOR(sums, RIGEL_I64, 2, 1);
  rigel_reduce_args args = reduce_args("plus_times", RIGEL_SUM);
  a_data[0] = 1;
  a_data[1] = -2;
  b_data[0] = b_data[1] = b_data[2] = 1000000000;
  OK(rigel_reduce(handle, &args, &a, &b, &values, NULL));
  OK(rigel_synchronize(handle));
  CHECK(sums[0] == INT64_C(3000000000));
  CHECK(sums[1] == INT64_C(-6000000000));
}

/* ---- distances ---- */

enum { rows_x = 7, rows_z = 9, columns = 6, most = 4 };

/* The k nearest and the sums of rows are those of the matrix that rigel_cdist() stores, of every metric of this type. */
static void against_cdist(rigel_handle* handle, const char* metric, rigel_type type, const rigel_matrix* x,
                          const rigel_matrix* z, const rigel_matrix* metric_matrix) {
  double *const d_data = allocate(rows_x * rows_z * 8), *const v = allocate(rows_x * most * 8),
                *const sums = allocate(rows_x * 8);
  int32_t* const n = allocate(rows_x * most * 4);
  const int products = strcmp(metric, "inner_product") == 0;
  const rigel_matrix distances = RIGEL_ROW_MAJOR(v, RIGEL_F64, rows_x, most),
                     indices = RIGEL_ROW_MAJOR(n, RIGEL_I32, rows_x, most),
                     totals = RIGEL_ROW_MAJOR(sums, RIGEL_F64, rows_x, 1);
  /* metrics that src/c has kernels for store what they compute */
  const rigel_matrix d = RIGEL_ROW_MAJOR(d_data, type == RIGEL_F32 ? RIGEL_F32 : RIGEL_F64, rows_x, rows_z);
  rigel_cdist_args of_matrix;
  rigel_reduce_distances_args args = distances_args(metric, 0);
  int m, k, j;
  memset(&of_matrix, 0, sizeof of_matrix);
  of_matrix.size = sizeof of_matrix;
  of_matrix.metric = metric;
  of_matrix.metric_matrix = args.metric_matrix = metric_matrix;
  of_matrix.options.require = args.options.require = RIGEL_REFERENCE_BITS;
  OK(rigel_cdist(handle, &of_matrix, x, z, &d));
  args.reduction.k = most;
  OK(rigel_nearest(handle, &args, x, z, &indices, &distances));
  args.reduction.k = 0;
  args.reduction.reducer = RIGEL_SUM;
  OK(rigel_reduce_distances(handle, &args, x, z, &totals, NULL));
  OK(rigel_synchronize(handle));
  for (m = 0; m < rows_x; ++m) {
    double row[rows_z], sum = 0;
    for (k = 0; k < rows_z; ++k) {
      row[k] = type == RIGEL_F32 ? (double)((float*)d_data)[m * rows_z + k] : d_data[m * rows_z + k];
      sum += row[k];
    }
    check(fabs(sums[m] - sum) <= 1e-12 * fabs(sum), "sum", metric, __FILE__, __LINE__);
    for (j = 0; j < most; ++j) {
      const int32_t place = n[m * most + j];
      int before = 0; /* that come before it, by distance and then by place */
      if (place < 0 || place >= rows_z) {
        check(0, "place", metric, __FILE__, __LINE__);
        continue;
      }
      check(v[m * most + j] == row[place], "distance", metric, __FILE__, __LINE__);
      for (k = 0; k < rows_z; ++k)
        before += (products ? row[k] > row[place] : row[k] < row[place]) || (row[k] == row[place] && k < place);
      check(before == j, "order", metric, __FILE__, __LINE__);
    }
  }
}

static void of_metrics(rigel_handle* handle) {
  static const char* const numbers[] = {
      "manhattan",     "euclidean",  "squared_euclidean", "chebyshev",     "minkowski",
      "inner_product", "cosine",     "correlation",       "hamming",       "minkowski_with_epsilon",
      "canberra",      "braycurtis", "hellinger",         "jensenshannon", "kl_divergence",
      "jaccard",       "dice",       "rogerstanimoto",    "russellrao",    "sokalsneath",
      "yule"};
  static const char* const words[] = {"bit_hamming",    "bit_jaccard",     "bit_dice", "bit_rogerstanimoto",
                                      "bit_russellrao", "bit_sokalsneath", "bit_yule"};
  float *const xf = allocate(rows_x * columns * 4), *const zf = allocate(rows_z * columns * 4),
               *const wf = allocate(columns * 4);
  double *const xd = allocate(rows_x * columns * 8), *const zd = allocate(rows_z * columns * 8);
  uint32_t *const xw = allocate(rows_x * columns * 4), *const zw = allocate(rows_z * columns * 4);
  int8_t *const xi = allocate(rows_x * columns), *const zi = allocate(rows_z * columns);
  const rigel_matrix x_floats = RIGEL_ROW_MAJOR(xf, RIGEL_F32, rows_x, columns),
                     z_floats = RIGEL_ROW_MAJOR(zf, RIGEL_F32, rows_z, columns),
                     x_doubles = RIGEL_ROW_MAJOR(xd, RIGEL_F64, rows_x, columns),
                     z_doubles = RIGEL_ROW_MAJOR(zd, RIGEL_F64, rows_z, columns),
                     x_words = RIGEL_ROW_MAJOR(xw, RIGEL_U32, rows_x, columns),
                     z_words = RIGEL_ROW_MAJOR(zw, RIGEL_U32, rows_z, columns),
                     x_bytes = RIGEL_ROW_MAJOR(xi, RIGEL_I8, rows_x, columns),
                     z_bytes = RIGEL_ROW_MAJOR(zi, RIGEL_I8, rows_z, columns),
                     variances = RIGEL_ROW_MAJOR(wf, RIGEL_F32, 1, columns),
                     factor = RIGEL_COLUMN_MAJOR(wf, RIGEL_F32, columns, 1);
  size_t i;
  for (i = 0; i < rows_x * columns; ++i) {
    xd[i] = xf[i] = (float)(next_random() + 0.5);
    xw[i] = (uint32_t)(next_random() * 4294967295.0);
    xi[i] = (int8_t)(1 + next_random() * 9);
  }
  for (i = 0; i < rows_z * columns; ++i) {
    zd[i] = zf[i] = (float)(next_random() + 0.5);
    zw[i] = (uint32_t)(next_random() * 4294967295.0);
    zi[i] = (int8_t)(1 + next_random() * 9);
  }
  for (i = 0; i < columns; ++i) wf[i] = (float)(next_random() + 0.5);
  for (i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    against_cdist(handle, numbers[i], RIGEL_F32, &x_floats, &z_floats, NULL);
    against_cdist(handle, numbers[i], RIGEL_F64, &x_doubles, &z_doubles, NULL);
  }
  for (i = 0; i < sizeof words / sizeof *words; ++i) against_cdist(handle, words[i], RIGEL_U32, &x_words, &z_words, NULL);
  against_cdist(handle, "manhattan", RIGEL_I8, &x_bytes, &z_bytes, NULL);
  against_cdist(handle, "cosine", RIGEL_I8, &x_bytes, &z_bytes, NULL);
  against_cdist(handle, "seuclidean", RIGEL_F32, &x_floats, &z_floats, &variances);
  against_cdist(handle, "weighted_minkowski", RIGEL_F32, &x_floats, &z_floats, &variances);
  against_cdist(handle, "mahalanobis", RIGEL_F32, &x_floats, &z_floats, &factor);
  { /* scores of a metric whose kernels of bytes write floats only */
    double* const v = allocate(rows_x * 8);
    const rigel_matrix values = RIGEL_ROW_MAJOR(v, RIGEL_F64, rows_x, 1);
    rigel_reduce_distances_args args = distances_args("jensenshannon", RIGEL_MINIMUM);
    OK(rigel_reduce_distances(handle, &args, &x_bytes, &z_bytes, &values, NULL));
    OK(rigel_synchronize(handle));
    CHECK(v[0] > 0 && v[0] < 1);
  }
}

/* Points 0, 3, 10 and 1, 2, 11 of a line. */
static void on_a_line(rigel_handle* handle) {
  double *const x_data = allocate(24), *const z_data = allocate(24), *const v = allocate(72);
  int64_t *const offsets = allocate(64), *const n = allocate(72);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, 3, 1), z = RIGEL_ROW_MAJOR(z_data, RIGEL_F64, 3, 1),
                     starts = RIGEL_ROW_MAJOR(offsets, RIGEL_I64, 4, 1);
  rigel_matrix indices = RIGEL_ROW_MAJOR(n, RIGEL_I64, 3, 1), values = RIGEL_ROW_MAJOR(v, RIGEL_F64, 3, 1);
  rigel_reduce_distances_args args = distances_args("manhattan", 0);
  const rigel_parameter bandwidth = {"bandwidth", 2};
  x_data[1] = 3;
  x_data[2] = 10;
  z_data[0] = 1;
  z_data[1] = 2;
  z_data[2] = 11;

  OK(rigel_assign(handle, &args, &x, &z, &indices, &values));
  OK(rigel_synchronize(handle));
  CHECK(n[0] == 0 && n[1] == 1 && n[2] == 2 && v[0] == 1 && v[1] == 1 && v[2] == 1);
  args.reduction.exclude_self = 1;
  OK(rigel_assign(handle, &args, &x, &z, &indices, NULL));
  OK(rigel_synchronize(handle));
  CHECK(n[0] == 1 && n[1] == 0 && n[2] == 1);
  args.reduction.exclude_self = 0;

  args.reduction.threshold = 2; /* 0: both of 1, 2; 3: both; 10: 11 */
  OK(rigel_radius_offsets(handle, &args, &x, &z, &starts));
  OK(rigel_synchronize(handle));
  CHECK(offsets[0] == 0 && offsets[1] == 2 && offsets[2] == 4 && offsets[3] == 5);
  args.reduction.offsets = &starts;
  indices.rows = values.rows = 5;
  OK(rigel_radius_neighbors(handle, &args, &x, &z, &indices, &values));
  OK(rigel_synchronize(handle));
  CHECK(n[0] == 0 && n[1] == 1 && n[2] == 0 && n[3] == 1 && n[4] == 2);
  CHECK(v[0] == 1 && v[1] == 2 && v[2] == 2 && v[3] == 1 && v[4] == 1);

  args = distances_args("manhattan", 0);
  indices.rows = values.rows = 3;
  args.epilogue.steps_count = 1;
  args.epilogue.steps[0].kind = RIGEL_SCALE;
  args.epilogue.steps[0].x = -1;
  OK(rigel_logsumexp(handle, &args, &x, &z, &values));
  OK(rigel_synchronize(handle));
  CHECK(fabs(v[0] - log(exp(-1) + exp(-2) + exp(-11))) < 1e-14);

  args = distances_args("euclidean", RIGEL_SUM); /* a kernel density: exp(-d^2/8) */
  args.kernel = "gaussian";
  args.hyperparameters = &bandwidth;
  args.hyperparameters_count = 1;
  OK(rigel_reduce_distances(handle, &args, &x, &z, &values, NULL));
  OK(rigel_synchronize(handle));
  CHECK(fabs(v[0] - (exp(-0.125) + exp(-0.5) + exp(-121.0 / 8))) < 1e-14);
}

static void refusals(rigel_handle* handle) {
  float *const data = allocate(64), *const out = allocate(64);
  int32_t* const n = allocate(64);
  int64_t* const offsets = allocate(64);
  const rigel_matrix a = RIGEL_ROW_MAJOR(data, RIGEL_F32, 2, 2), v = RIGEL_ROW_MAJOR(out, RIGEL_F32, 2, 1),
                     i = RIGEL_ROW_MAJOR(n, RIGEL_I32, 2, 1), long_v = RIGEL_ROW_MAJOR(out, RIGEL_F32, 3, 1),
                     starts = RIGEL_ROW_MAJOR(offsets, RIGEL_I64, 3, 1), few = RIGEL_ROW_MAJOR(offsets, RIGEL_I64, 2, 1),
                     inside = RIGEL_ROW_MAJOR(data, RIGEL_F32, 2, 1);
  rigel_reduce_args args = reduce_args("min_plus", 0);
  rigel_reduce_distances_args of = distances_args("euclidean", RIGEL_SUM);
  const rigel_parameter length = {"length", 1};
  size_t bytes = 0;
  char* json = NULL;
  out[0] = -7;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "args.reduction.reducer is 0", "expected 1",
        NULL);
  args.reduction.reducer = 9;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "reducer is 9", "8 (RIGEL_ALL_BELOW)", NULL);
  args.reduction.reducer = RIGEL_MINIMUM;
  args.size = 8;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "rigel_reduce: args.size is 8", NULL, NULL);
  args.size = sizeof args;
  FAILS(rigel_reduce(NULL, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  FAILS(rigel_reduce(handle, NULL, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "args is NULL", NULL, NULL);
  FAILS(rigel_reduce(handle, &args, NULL, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "A is NULL", NULL, NULL);
  FAILS(rigel_reduce(handle, &args, &a, &a, NULL, NULL), RIGEL_INVALID_ARGUMENT, "no results are wanted", NULL, NULL);
  FAILS(rigel_reduce(handle, &args, &a, &a, &long_v, NULL), RIGEL_INVALID_ARGUMENT, "values is 3x1", "expected 2", NULL);
  FAILS(rigel_reduce(handle, &args, &a, &a, &inside, NULL), RIGEL_INVALID_ARGUMENT, "values", "overlaps", NULL);
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &v), RIGEL_INVALID_ARGUMENT, "indices", "i32 or i64", NULL);
  args.reduction.k = 2;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "args.reduction.k is not 0", "minimum", NULL);
  args.reduction.reducer = RIGEL_SMALLEST;
  args.reduction.k = 5000;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "k is 5000", "1 to 4096", NULL);
  args = reduce_args("min_plus", RIGEL_SUM);
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "indices is not NULL", "sum", NULL);
  args.reduction.threshold = 1;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "threshold", NULL, NULL);
  args.reduction.threshold = 0;
  args.reduction.reserved = 1;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "args.reduction.reserved", NULL, NULL);
  args.reduction.reserved = 0;
  args.reduction.exclude_self = 2;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "exclude_self is 2", NULL, NULL);
  args.reduction.exclude_self = 0;
  args.options.kernel = "nothing";
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_NOT_FOUND, "nothing", NULL, NULL);
  args = reduce_args("min_plus", RIGEL_ALL_BELOW);
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "args.reduction.offsets is NULL", NULL, NULL);
  args.reduction.offsets = &few;
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, &i), RIGEL_INVALID_ARGUMENT, "args.reduction.offsets", "expected 3", NULL);
  args = reduce_args("nothing", RIGEL_SUM);
  FAILS(rigel_reduce(handle, &args, &a, &a, &v, NULL), RIGEL_NOT_FOUND, "'nothing' is no semiring", NULL, NULL);
  args = reduce_args("min_plus", RIGEL_SUM);
  FAILS(rigel_reduce_workspace_size(handle, &args, &a, &a, &v, NULL, NULL), RIGEL_INVALID_ARGUMENT, "bytes is NULL", NULL,
        NULL);
  FAILS(rigel_explain_reduce(handle, &args, &a, &a, &v, NULL, NULL), RIGEL_INVALID_ARGUMENT, "json is NULL", NULL, NULL);

  FAILS(rigel_assign(handle, &of, &a, &a, &i, NULL), RIGEL_INVALID_ARGUMENT, "args.reduction.reducer is 5, expected 0", NULL,
        NULL);
  of.hyperparameters = &length;
  of.hyperparameters_count = 1;
  FAILS(rigel_reduce_distances(handle, &of, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "args.kernel", "is NULL", NULL);
  of.kernel = "laplace";
  OK(rigel_reduce_distances(handle, &of, &a, &a, &v, NULL));
  OK(rigel_synchronize(handle));
  OK(rigel_reduce_distances_workspace_size(handle, &of, &a, &a, &v, NULL, &bytes));
  OK(rigel_explain_reduce_distances(handle, &of, &a, &a, &v, NULL, &json));
  CHECK(json && strstr(json, "portable.strips"));
  rigel_free(json);
  of.reduction.reducer = 0;
  FAILS(rigel_nearest(handle, &of, &a, &a, &i, NULL), RIGEL_INVALID_ARGUMENT, "args.kernel is not NULL", "rigel_nearest",
        NULL);
  of.metric = "inner_product";
  of.reduction.reducer = RIGEL_SUM;
  FAILS(rigel_reduce_distances(handle, &of, &a, &a, &v, NULL), RIGEL_INVALID_ARGUMENT, "does not go with kernel 'laplace'",
        NULL, NULL);
  of = distances_args("inner_product", 0);
  FAILS(rigel_radius_offsets(handle, &of, &a, &a, &starts), RIGEL_INVALID_ARGUMENT, "'inner_product' has products", NULL,
        NULL);
  of.metric = "euclidean";
  FAILS(rigel_radius_offsets(handle, &of, &a, &a, &few), RIGEL_INVALID_ARGUMENT, "offsets is 2x1", "expected 3x1", NULL);
  FAILS(rigel_radius_offsets(handle, &of, &a, &a, NULL), RIGEL_INVALID_ARGUMENT, "rigel_radius_offsets: offsets is NULL",
        NULL, NULL);
  const rigel_matrix late = RIGEL_ROW_MAJOR(data + 2, RIGEL_I64, 3, 1); /* its first number alone is in a */
  FAILS(rigel_radius_offsets(handle, &of, &a, &a, &late), RIGEL_INVALID_ARGUMENT, "offsets 1x1 overlaps X 2x2", NULL, NULL);
  FAILS(rigel_radius_neighbors(handle, &of, &a, &a, &i, NULL), RIGEL_INVALID_ARGUMENT, "offsets is NULL", NULL, NULL);
  of.epilogue.steps_count = 1;
  of.epilogue.steps[0].kind = RIGEL_RELU;
  FAILS(rigel_assign(handle, &of, &a, &a, &i, NULL), RIGEL_INVALID_ARGUMENT, "args.epilogue has steps", NULL, NULL);
  of = distances_args("nothing", RIGEL_SUM);
  FAILS(rigel_reduce_distances(handle, &of, &a, &a, &v, NULL), RIGEL_NOT_FOUND, "'nothing' is no metric", NULL, NULL);
}

/* Pairs of rows and columns, of points 0 to 5 on a line with themselves: rows 0 and 1 meet 4, 5 and 0, row 5 meets 1. */
static void of_ranges(rigel_handle* handle) {
  static const int64_t rows[] = {5, 6, 0, 2, 3, 3}, slices[] = {1, 3, 3}, columns[] = {1, 2, 4, 6, 0, 1},
                       beyond[] = {5, 7, 0, 2, 3, 3};
  static const float points[] = {0, 1, 2, 3, 4, 5}, nearest[] = {4, 1, 4}, sums[] = {9, 8, 0, 0, 0, 4};
  float *const x_data = allocate(64), *const d = allocate(64);
  int64_t* const n = allocate(64);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F32, 6, 1), distances = RIGEL_ROW_MAJOR(d, RIGEL_F32, 6, 1),
                     indices = RIGEL_ROW_MAJOR(n, RIGEL_I64, 6, 1);
  rigel_reduce_distances_args args = distances_args("manhattan", RIGEL_SUM);
  rigel_reduce_args product = reduce_args("l1", RIGEL_SUM);
  const rigel_matrix transposed = RIGEL_COLUMN_MAJOR(x_data, RIGEL_F32, 1, 6);
  rigel_ranges* ranges = NULL;
  char* json = NULL;
  memcpy(x_data, points, sizeof points);
  OK(rigel_ranges_create(handle, 6, 6, rows, 3, slices, columns, 3, &ranges));
  args.ranges = ranges;
  OK(rigel_reduce_distances(handle, &args, &x, &x, &distances, NULL));
  OK(rigel_synchronize(handle));
  CHECK(same(d, sums, 6));
  OK(rigel_explain_reduce_distances(handle, &args, &x, &x, &distances, NULL, &json));
  CHECK(strstr(json, "7 pairs in ranges") != NULL);
  rigel_free(json);
  args.reduction.reducer = 0;
  args.reduction.exclude_self = 1;
  OK(rigel_assign(handle, &args, &x, &x, &indices, &distances));
  OK(rigel_synchronize(handle));
  CHECK(d[0] == nearest[0] && d[1] == nearest[1] && d[5] == nearest[2]);
  CHECK(n[0] == 4 && n[1] == 0 && n[2] == -1 && n[3] == -1 && n[5] == 1);
  product.ranges = ranges;
  memset(d, 0, 64);
  OK(rigel_reduce(handle, &product, &x, &transposed, &distances, NULL));
  OK(rigel_synchronize(handle));
  CHECK(same(d, sums, 6));
  rigel_ranges_destroy(ranges);
  rigel_ranges_destroy(NULL);

  FAILS(rigel_ranges_create(handle, 6, 6, beyond, 3, slices, columns, 3, &ranges), RIGEL_INVALID_ARGUMENT,
        "rigel_ranges_create", "rows[0] from 5 to 7", "<= 6");
  CHECK(ranges == NULL);
  FAILS(rigel_ranges_create(handle, 6, 6, NULL, 3, slices, columns, 3, &ranges), RIGEL_INVALID_ARGUMENT, "rows is NULL", NULL,
        NULL);
  FAILS(rigel_ranges_create(handle, 6, 6, rows, 3, slices, columns, -1, &ranges), RIGEL_INVALID_ARGUMENT,
        "columns_count is -1", NULL, NULL);
  OK(rigel_ranges_create(handle, 6, 7, rows, 3, slices, columns, 3, &ranges));
  args.ranges = ranges;
  FAILS(rigel_assign(handle, &args, &x, &x, &indices, NULL), RIGEL_INVALID_ARGUMENT, "options.ranges are of 6x7 scores", "6x6",
        NULL);
  rigel_ranges_destroy(ranges);
}

void test_reductions(rigel_handle* handle) {
  by_hand(handle);
  of_integers(handle);
  of_metrics(handle);
  on_a_line(handle);
  of_ranges(handle);
  refusals(handle);
}
