/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Every metric of cdist(), against its formula in double; those with a matrix; X from itself. */
#include "support.h"

#include <math.h>
#include <string.h>

enum { rows_x = 5, rows_z = 4, columns = 6, rank = 3 };

static double x_values[rows_x][columns], z_values[rows_z][columns], factor[columns][rank], weights[columns];

static rigel_cdist_args cdist_args(const char* metric) {
  rigel_cdist_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.metric = metric;
  return args;
}

/* ---- formulas ---- */

static double manhattan(const double* x, const double* z) {
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += fabs(x[k] - z[k]);
  return sum;
}
static double minkowski(const double* x, const double* z) { /* p = 3 */
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += pow(fabs(x[k] - z[k]), 3);
  return pow(sum, 1.0 / 3);
}
static double chebyshev(const double* x, const double* z) {
  double most = 0;
  int k;
  for (k = 0; k < columns; ++k) most = fmax(most, fabs(x[k] - z[k]));
  return most;
}
static double mahalanobis(const double* x, const double* z) {
  double sum = 0;
  int k, r;
  for (r = 0; r < rank; ++r) {
    double part = 0;
    for (k = 0; k < columns; ++k) part += factor[k][r] * (x[k] - z[k]);
    sum += part * part;
  }
  return sqrt(sum);
}
static double seuclidean(const double* x, const double* z) {
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += (x[k] - z[k]) * (x[k] - z[k]) / weights[k];
  return sqrt(sum);
}
static double weighted_minkowski(const double* x, const double* z) { /* p = 3 */
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += weights[k] * pow(fabs(x[k] - z[k]), 3);
  return pow(sum, 1.0 / 3);
}
static double minkowski_with_epsilon(const double* x, const double* z) { /* p = 3, epsilon = 0.25 */
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k)
    if (fabs(x[k] - z[k]) >= 0.25) sum += pow(fabs(x[k] - z[k]), 3);
  return pow(sum, 1.0 / 3);
}
static double canberra(const double* x, const double* z) {
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += fabs(x[k] - z[k]) / (x[k] + z[k]);
  return sum;
}
static double braycurtis(const double* x, const double* z) {
  double differences = 0, sums = 0;
  int k;
  for (k = 0; k < columns; ++k) {
    differences += fabs(x[k] - z[k]);
    sums += x[k] + z[k];
  }
  return differences / sums;
}
static double hellinger(const double* x, const double* z) {
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += pow(sqrt(x[k]) - sqrt(z[k]), 2);
  return sqrt(sum / 2);
}
static double jensenshannon(const double* x, const double* z) {
  double sum_x = 0, sum_z = 0, sum = 0;
  int k;
  for (k = 0; k < columns; ++k) {
    sum_x += x[k];
    sum_z += z[k];
  }
  for (k = 0; k < columns; ++k) {
    const double p = x[k] / sum_x, q = z[k] / sum_z, m = (p + q) / 2;
    sum += p * log(p / m) + q * log(q / m);
  }
  return sqrt(sum / 2);
}
static double kl_divergence(const double* x, const double* z) {
  double sum = 0;
  int k;
  for (k = 0; k < columns; ++k) sum += x[k] * log(x[k] / z[k]);
  return sum;
}

typedef double (*formula)(const double* x, const double* z);

static const struct {
  const char* metric;
  formula of;
  int parameters; /* of p = 3 and epsilon = 0.25 */
} metrics[] = {{"manhattan", manhattan, 0},
               {"minkowski", minkowski, 1},
               {"chebyshev", chebyshev, 0},
               {"mahalanobis", mahalanobis, 0},
               {"seuclidean", seuclidean, 0},
               {"weighted_minkowski", weighted_minkowski, 1},
               {"minkowski_with_epsilon", minkowski_with_epsilon, 2},
               {"canberra", canberra, 0},
               {"braycurtis", braycurtis, 0},
               {"hellinger", hellinger, 0},
               {"jensenshannon", jensenshannon, 0},
               {"kl_divergence", kl_divergence, 0}};

/* A matrix of the values, of f32 or f64, which holds both: they have few bits. */
static rigel_matrix matrix_of(const double* values, int rows, int count, rigel_type type) {
  const rigel_matrix empty = RIGEL_ROW_MAJOR(NULL, type, rows, count);
  rigel_matrix m = empty;
  int i;
  m.data = allocate((size_t)(rows * count) * sizeof(double));
  for (i = 0; i < rows * count; ++i) {
    if (type == RIGEL_F32)
      ((float*)m.data)[i] = (float)values[i];
    else
      ((double*)m.data)[i] = values[i];
  }
  return m;
}

static double value_of(const rigel_matrix* m, int i, int j) {
  const int64_t at = i * m->row_stride + j * m->column_stride;
  return m->type == RIGEL_F32 ? ((const float*)m->data)[at] : ((const double*)m->data)[at];
}

static const rigel_matrix* matrix_for(const char* metric, const rigel_matrix* of_factor, const rigel_matrix* of_weights) {
  if (strcmp(metric, "mahalanobis") == 0) return of_factor;
  if (strcmp(metric, "seuclidean") == 0 || strcmp(metric, "weighted_minkowski") == 0) return of_weights;
  return NULL;
}

static void formulas(rigel_handle* handle, rigel_type type) {
  static const rigel_parameter parameters[] = {{"p", 3}, {"epsilon", 0.25}};
  const rigel_matrix x = matrix_of(&x_values[0][0], rows_x, columns, type),
                     z = matrix_of(&z_values[0][0], rows_z, columns, type),
                     l = matrix_of(&factor[0][0], columns, rank, type), w = matrix_of(weights, 1, columns, type);
  rigel_matrix d = matrix_of(&x_values[0][0], rows_x, rows_z, type);
  const double unit = type == RIGEL_F32 ? 0x1p-24 : 0x1p-53;
  size_t m;
  int i, j;
  for (m = 0; m < sizeof metrics / sizeof *metrics; ++m) {
    rigel_cdist_args args = cdist_args(metrics[m].metric);
    size_t bytes = 1;
    char* json = NULL;
    args.parameters = parameters;
    args.parameters_count = metrics[m].parameters;
    args.metric_matrix = matrix_for(metrics[m].metric, &l, &w);
    args.options.precision = RIGEL_PRECISION_ACCUMULATOR;
    OK(rigel_cdist(handle, &args, &x, &z, &d));
    OK(rigel_cdist_workspace_size(handle, &args, &x, &z, &d, &bytes));
    OK(rigel_explain_cdist(handle, &args, &x, &z, &d, &json));
    CHECK(json && strstr(json, "\"chosen\": true") != NULL);
    rigel_free(json);
    OK(rigel_synchronize(handle));
    for (i = 0; i < rows_x; ++i)
      for (j = 0; j < rows_z; ++j) {
        const double expected = metrics[m].of(x_values[i], z_values[j]);
        /* The errors of docs/numerics.md and of the docstrings, K = 6 and p = 3, are below 100 units of a distance, whose terms are
           between 0.1 and 10, as the distances are. */
        check(fabs(value_of(&d, i, j) - expected) <= 100 * unit * fmax(1, fabs(expected)), metrics[m].metric, "", __FILE__, __LINE__);
      }
  }
}

/* From (0, 0) to (0, pi/2) it is a quarter of a great circle; from there to the pole as well. */
static void great_circles(rigel_handle* handle) {
  const double half_pi = 1.57079632679489662, positions[] = {0, 0, 0, half_pi, half_pi, 0};
  const rigel_matrix x = matrix_of(positions, 3, 2, RIGEL_F64), d = matrix_of(&x_values[0][0], 3, 3, RIGEL_F64);
  const rigel_cdist_args args = cdist_args("haversine");
  int i, j;
  OK(rigel_cdist(handle, &args, &x, &x, &d));
  OK(rigel_synchronize(handle));
  for (i = 0; i < 3; ++i)
    for (j = 0; j < 3; ++j) CHECK(fabs(value_of(&d, i, j) - (i == j ? 0 : half_pi)) <= 16 * 0x1p-53 * half_pi);
}

static int count_of(uint32_t bits) {
  int count = 0;
  for (; bits; bits &= bits - 1) ++count;
  return count;
}

/* Measures of truth values: t both, f the first alone, s the second alone, n neither. */
static double measure(const char* name, double t, double f, double s, double n) {
  if (strcmp(name, "jaccard") == 0) return (f + s) / (t + f + s);
  if (strcmp(name, "dice") == 0) return (f + s) / (2 * t + f + s);
  if (strcmp(name, "rogerstanimoto") == 0) return 2 * (f + s) / (t + n + 2 * (f + s));
  if (strcmp(name, "russellrao") == 0) return (f + s + n) / (t + f + s + n);
  if (strcmp(name, "sokalsneath") == 0) return 2 * (f + s) / (t + 2 * (f + s));
  return 2 * f * s / (t * n + f * s); /* yule */
}

/* Codes of two words from themselves, and the same truth values as bytes. */
static void codes(rigel_handle* handle) {
  enum { n = 33, words = 2 };
  static const char* const names[] = {"jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule"};
  uint32_t* const code = allocate(n * words * sizeof(uint32_t));
  uint8_t* const truth = allocate(n * words * 32);
  float* const d_data = allocate(n * n * sizeof(float));
  double* const e_data = allocate(n * n * sizeof(double));
  const rigel_matrix x = RIGEL_ROW_MAJOR(code, RIGEL_U32, n, words), t = RIGEL_ROW_MAJOR(truth, RIGEL_U8, n, words * 32),
                     d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, n, n), e = RIGEL_ROW_MAJOR(e_data, RIGEL_F64, n, n);
  rigel_cdist_args args = cdist_args("bit_hamming");
  int i, j, k, name, wrong = 0;
  for (i = 0; i < n * words; ++i) code[i] = (uint32_t)(next_random() * 4294967296.0);
  for (i = 0; i < n * words * 32; ++i) truth[i] = (uint8_t)(code[i / 32] >> i % 32 & 1);
  OK(rigel_cdist(handle, &args, &x, &x, &d));
  OK(rigel_synchronize(handle));
  for (i = 0; i < n; ++i)
    for (j = 0; j < n; ++j) {
      int differ = 0;
      for (k = 0; k < words; ++k) differ += count_of(code[i * words + k] ^ code[j * words + k]);
      wrong += d_data[i * n + j] != (float)differ / 64;
      wrong += d_data[i * n + j] != d_data[j * n + i];
      wrong += i == j && d_data[i * n + j] != 0;
    }
  CHECK(wrong == 0);
  for (name = 0; name < 6; ++name) {
    char of_bits[32] = "bit_";
    strcat(of_bits, names[name]);
    args = cdist_args(names[name]);
    OK(rigel_cdist(handle, &args, &t, &t, &e));
    args = cdist_args(of_bits);
    OK(rigel_cdist(handle, &args, &x, &x, &d));
    OK(rigel_synchronize(handle));
    for (i = 0; i < n; ++i)
      for (j = 0; j < n; ++j) {
        int both = 0, first = 0, second = 0;
        double expected;
        for (k = 0; k < words; ++k) {
          const uint32_t a = code[i * words + k], b = code[j * words + k];
          both += count_of(a & b);
          first += count_of(a & ~b);
          second += count_of(b & ~a);
        }
        expected = measure(names[name], both, first, second, 64 - both - first - second);
        check(fabs(e_data[i * n + j] - expected) <= 0x1p-53 * expected, names[name], "", __FILE__, __LINE__);
        check(fabs(d_data[i * n + j] - expected) <= 1.01 * 0x1p-24 * expected, of_bits, "", __FILE__, __LINE__);
      }
  }
}

/* The struct before it had metric_matrix. */
typedef struct old_cdist_args {
  size_t size;
  const char* metric;
  const rigel_parameter* parameters;
  int32_t parameters_count, skip_epilogue, may_cancel, reserved_flags;
  rigel_program epilogue;
  rigel_options options;
  int64_t reserved[4];
} old_cdist_args;

static void an_older_header(rigel_handle* handle) {
  const rigel_matrix x = matrix_of(&x_values[0][0], rows_x, columns, RIGEL_F64),
                     d = matrix_of(&x_values[0][0], rows_x, rows_x, RIGEL_F64);
  old_cdist_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.metric = "manhattan";
  OK(rigel_cdist(handle, (const rigel_cdist_args*)(const void*)&args, &x, &x, &d));
  OK(rigel_synchronize(handle));
  CHECK(fabs(value_of(&d, 0, 1) - manhattan(x_values[0], x_values[1])) <= 8 * 0x1p-53 * value_of(&d, 0, 1));
}

static void refused(rigel_handle* handle) {
  const rigel_matrix x = matrix_of(&x_values[0][0], rows_x, columns, RIGEL_F32),
                     l = matrix_of(&factor[0][0], columns, rank, RIGEL_F32), wide = matrix_of(weights, 1, columns, RIGEL_F64);
  rigel_matrix d = matrix_of(&x_values[0][0], rows_x, rows_x, RIGEL_F32), w = matrix_of(weights, 1, columns, RIGEL_F32);
  static const rigel_parameter q = {"q", 1}, negative = {"epsilon", -1};
  rigel_cdist_args args = cdist_args("seuclidean");
#define CALL rigel_cdist(handle, &args, &x, &x, &d)
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "rigel_cdist: args.metric_matrix is NULL, expected the variances, 1 x K", "'seuclidean'", NULL);
  args.metric_matrix = &wide;
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "args.metric_matrix is 1x6 of f64, expected f32", NULL, NULL);
  w.columns = 5;
  args.metric_matrix = &w;
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "args.metric_matrix is 1x5, expected the variances, 1 x K, to match X 5x6", NULL, NULL);
  args.metric = "mahalanobis";
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "args.metric_matrix is 1x5, expected the factor, K x R, to match X 5x6", NULL, NULL);
  args.metric = "euclidean";
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "args.metric_matrix is not NULL", "'euclidean' does not take", NULL);
  args.metric = "weighted_minkowski";
  args.metric_matrix = &w;
  w.columns = 6;
  w.data = d.data;
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "D 5x5 overlaps args.metric_matrix 1x6", NULL, NULL);
  args = cdist_args("mahalanobis");
  args.metric_matrix = &l;
  args.reserved[2] = 1;
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  args = cdist_args("canberra");
  d.type = RIGEL_F16;
  FAILS(CALL, RIGEL_UNSUPPORTED, "D is 5x5 of f16, expected f32", NULL, NULL);
  d.type = RIGEL_F32;
  args = cdist_args("haversine");
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "X has 6 columns, expected haversine's 2", NULL, NULL);
  args = cdist_args("minkowski_with_epsilon");
  args.parameters = &q;
  args.parameters_count = 1;
  FAILS(CALL, RIGEL_NOT_FOUND, "metric 'minkowski_with_epsilon' has no parameter 'q', expected p or epsilon", NULL, NULL);
  args.parameters = &negative;
  FAILS(CALL, RIGEL_INVALID_ARGUMENT, "epsilon is -1", NULL, NULL);
  args = cdist_args("bit_yule");
  FAILS(CALL, RIGEL_UNSUPPORTED, "metric 'bit_yule' of f32 is not to be had, expected one of u32", NULL, NULL);
#undef CALL
}

void test_distances(rigel_handle* handle) {
  int i, j;
  /* Numbers from 1/4 to 4 with 10 bits. */
  for (i = 0; i < rows_x; ++i)
    for (j = 0; j < columns; ++j) x_values[i][j] = (256 + floor(next_random() * 3840)) / 1024;
  for (i = 0; i < rows_z; ++i)
    for (j = 0; j < columns; ++j) z_values[i][j] = (256 + floor(next_random() * 3840)) / 1024;
  for (i = 0; i < columns; ++i)
    for (j = 0; j < rank; ++j) factor[i][j] = floor(next_random() * 1024) / 1024;
  for (i = 0; i < columns; ++i) weights[i] = (256 + floor(next_random() * 1024)) / 1024;
  formulas(handle, RIGEL_F32);
  formulas(handle, RIGEL_F64);
  great_circles(handle);
  codes(handle);
  an_older_header(handle);
  refused(handle);
}
