/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Linear systems and eigenvectors: worked out by hand, against Gaussian elimination, and by their residuals. */
#include "support.h"

#include <math.h>
#include <string.h>

static rigel_solve_args solve_args(void) {
  rigel_solve_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  return args;
}

static double* doubles(size_t count, const double* values) {
  double* const memory = allocate(count * sizeof(double));
  if (values) memcpy(memory, values, count * sizeof(double));
  return memory;
}

/* Whether a number is the expected one, within 16 units. */
static int is_near(double actual, double expected) { return fabs(actual - expected) <= 16 * 0x1p-53 * fmax(1, fabs(expected)); }

/* A = (4 2; 2 3) = L L^T, L = (2 0; 1 sqrt 2), det A = 8. A (-1/2, 2) = (2, 5). The eigenvalues are (7 -+ sqrt 17)/2. */
static void by_hand(rigel_handle* handle, int triangle) {
  static const double a_values[] = {4, 2, 2, 3}, b_values[] = {2, 5};
  double* const a_data = doubles(4, a_values);
  double* const b_data = doubles(2, b_values);
  double* const x_data = doubles(2, NULL);
  double* const l_data = doubles(4, NULL);
  double* const number = doubles(2, NULL);
  int32_t* const info_data = allocate(sizeof(int32_t));
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F64, 2, 1),
                     x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, 2, 1), l = RIGEL_ROW_MAJOR(l_data, RIGEL_F64, 2, 2),
                     w = RIGEL_ROW_MAJOR(number, RIGEL_F64, 2, 1), d = RIGEL_ROW_MAJOR(number, RIGEL_F64, 1, 1),
                     info = RIGEL_ROW_MAJOR(info_data, RIGEL_I32, 1, 1);
  rigel_solve_args args = solve_args();
  int j;
  args.triangle = triangle;
  a_data[triangle == RIGEL_LOWER ? 1 : 2] = NAN; /* is not read */

  *info_data = -1;
  OK(rigel_cholesky_solve(handle, &args, &a, &b, &x, &info));
  OK(rigel_synchronize(handle));
  CHECK(*info_data == 0 && is_near(x_data[0], -0.5) && is_near(x_data[1], 2));

  OK(rigel_cholesky_factor(handle, &args, &a, &l, &info));
  OK(rigel_synchronize(handle));
  CHECK(*info_data == 0 && l_data[0] == 2 && is_near(l_data[3], sqrt(2)));
  CHECK(l_data[triangle == RIGEL_LOWER ? 2 : 1] == 1 && l_data[triangle == RIGEL_LOWER ? 1 : 2] == 0);

  x_data[0] = x_data[1] = 0;
  args.check = 1; /* it waits */
  OK(rigel_cholesky_solve_factored(handle, &args, &l, &b, &x, NULL));
  CHECK(is_near(x_data[0], -0.5) && is_near(x_data[1], 2));
  args.check = 0;

  OK(rigel_log_determinant(handle, &l, &d));
  OK(rigel_synchronize(handle));
  CHECK(is_near(number[0], log(8)));

  OK(rigel_eigh(handle, &args, &a, &w, &l, &info));
  OK(rigel_synchronize(handle));
  CHECK(*info_data == 0 && is_near(number[0], (7 - sqrt(17)) / 2) && is_near(number[1], (7 + sqrt(17)) / 2));
  for (j = 0; j < 2; ++j) /* (A - w) v = 0 and |v| = 1 */
    CHECK(fabs((4 - number[j]) * l_data[j] + 2 * l_data[2 + j]) <= 64 * 0x1p-53 && is_near(hypot(l_data[j], l_data[2 + j]), 1));

  /* The factor and the solution where A and B were. */
  args.overwrite_a = args.overwrite_b = 1;
  OK(rigel_cholesky_factor(handle, &args, &a, &a, NULL));
  OK(rigel_cholesky_solve_factored(handle, &args, &a, &b, &b, NULL));
  OK(rigel_synchronize(handle));
  CHECK(a_data[0] == 2 && is_near(b_data[0], -0.5) && is_near(b_data[1], 2));
}

/* Two systems: a good one and one that has no factorisation, A = (1 2; 2 1) with det A = -3, or by LU (1 2; 2 4). */
static void batches(rigel_handle* handle) {
  static const float a_values[] = {4, 2, 2, 3, 1, 2, 2, 1}, b_values[] = {2, 4, 5, 2, 2, 4, 5, 2};
  float* const a_data = allocate(sizeof a_values);
  float* const b_data = allocate(sizeof b_values);
  float* const x_data = allocate(sizeof b_values);
  int32_t* const info_data = allocate(2 * sizeof(int32_t));
  rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F32, 2, 2),
               x = RIGEL_ROW_MAJOR(x_data, RIGEL_F32, 2, 2), info = RIGEL_ROW_MAJOR(info_data, RIGEL_I32, 1, 1);
  rigel_solve_args args = solve_args();
  memcpy(a_data, a_values, sizeof a_values);
  memcpy(b_data, b_values, sizeof b_values);
  a.batches = b.batches = x.batches = info.batches = 2;
  a.batch_stride = b.batch_stride = x.batch_stride = 4;
  info.batch_stride = 1;
  OK(rigel_cholesky_solve(handle, &args, &a, &b, &x, &info));
  OK(rigel_synchronize(handle));
  CHECK(info_data[0] == 0 && info_data[1] == 2);
  CHECK(fabsf(x_data[0] + 0.5f) <= 32 * 0x1p-24f && fabsf(x_data[2] - 2) <= 32 * 0x1p-24f);
  CHECK(fabsf(x_data[1] - 1) <= 32 * 0x1p-24f && fabsf(x_data[3]) <= 32 * 0x1p-24f); /* A (1, 0) = (4, 2) */
  CHECK(isnan(x_data[4]) && isnan(x_data[5]) && isnan(x_data[6]) && isnan(x_data[7]));
  args.check = 1;
  FAILS(rigel_cholesky_solve(handle, &args, &a, &b, &x, NULL), RIGEL_INVALID_ARGUMENT,
        "rigel_cholesky_solve: A 2x2x2: matrix 1 of the batch is not positive definite (leading minor of order 2)", NULL, NULL);
  a_data[7] = 4;
  args.check = 0;
  OK(rigel_lu_solve(handle, &args, &a, &b, &x, &info));
  OK(rigel_synchronize(handle));
  CHECK(info_data[0] == 0 && info_data[1] == 2 && isnan(x_data[4]));
  CHECK(fabsf(x_data[0] + 0.5f) <= 32 * 0x1p-24f && fabsf(x_data[2] - 2) <= 32 * 0x1p-24f);
}

/* (0 1; 2 0) (2, 3) = (3, 4): a pivot is exchanged. */
static void pivots(rigel_handle* handle) {
  static const double a_values[] = {0, 1, 2, 0}, b_values[] = {3, 4};
  double* const x_data = doubles(2, NULL);
  const rigel_matrix a = RIGEL_ROW_MAJOR(doubles(4, a_values), RIGEL_F64, 2, 2),
                     b = RIGEL_ROW_MAJOR(doubles(2, b_values), RIGEL_F64, 2, 1), x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, 2, 1);
  const rigel_solve_args args = solve_args();
  OK(rigel_lu_solve(handle, &args, &a, &b, &x, NULL));
  OK(rigel_synchronize(handle));
  CHECK(x_data[0] == 2 && x_data[1] == 3);
}

/* Gaussian elimination in double, without pivoting. */
static void eliminate(int n, double* a, double* b) {
  int i, j, k;
  for (k = 0; k < n; ++k)
    for (i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  for (i = n - 1; i >= 0; --i) {
    for (j = i + 1; j < n; ++j) b[i] -= a[i * n + j] * b[j];
    b[i] /= a[i * n + i];
  }
}

/* A_ij = 1/(i + j + 1) of floats: a condition number of 2e4, so that floats alone leave three digits and refined ones all. */
static void refinement(rigel_handle* handle) {
  enum { n = 4 };
  float* const a_data = allocate(n * n * sizeof(float));
  float* const b_data = allocate(n * sizeof(float));
  float* const x_data = allocate(n * sizeof(float));
  double expected_a[n * n], expected[n], largest = 0;
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, n, n), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F32, n, 1),
                     x = RIGEL_ROW_MAJOR(x_data, RIGEL_F32, n, 1);
  rigel_solve_args args = solve_args();
  int i, way;
  for (i = 0; i < n * n; ++i) a_data[i] = 1 / (float)(i / n + i % n + 1);
  for (i = 0; i < n; ++i) b_data[i] = (float)next_random();
  for (i = 0; i < n * n; ++i) expected_a[i] = a_data[i];
  for (i = 0; i < n; ++i) expected[i] = b_data[i];
  eliminate(n, expected_a, expected);
  for (i = 0; i < n; ++i) largest = fmax(largest, fabs(expected[i]));
  args.refine = 4;
  for (way = 0; way < 2; ++way) {
    for (i = 0; i < n; ++i) x_data[i] = 0;
    OK(way == 0 ? rigel_cholesky_solve(handle, &args, &a, &b, &x, NULL) : rigel_lu_solve(handle, &args, &a, &b, &x, NULL));
    OK(rigel_synchronize(handle));
    for (i = 0; i < n; ++i) CHECK(fabs(x_data[i] - expected[i]) <= 2 * 0x1p-24 * largest);
  }
}

/* A V = V diag(w), with a workspace of the caller's. */
static void eigenvectors(rigel_handle* handle) {
  enum { n = 12 };
  double* const a_data = doubles(n * n, NULL);
  double* const v_data = doubles(n * n, NULL);
  double* const w_data = doubles(n, NULL);
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, n, n), v = RIGEL_COLUMN_MAJOR(v_data, RIGEL_F64, n, n),
                     w = RIGEL_ROW_MAJOR(w_data, RIGEL_F64, n, 1);
  rigel_solve_args args = solve_args();
  size_t bytes = 0;
  char* json = NULL;
  int i, j, k;
  for (i = 0; i < n; ++i)
    for (j = 0; j <= i; ++j) a_data[i * n + j] = a_data[j * n + i] = next_random();
  OK(rigel_eigh_workspace_size(handle, &args, &a, &w, &v, NULL, &bytes));
  if (bytes > 0) {
    args.options.workspace = allocate(bytes);
    args.options.workspace_bytes = bytes;
  }
  OK(rigel_eigh(handle, &args, &a, &w, &v, NULL));
  OK(rigel_explain_eigh(handle, &args, &a, &w, &v, NULL, &json));
  CHECK(json && strstr(json, "\"problem\": \"eigen f64, 12x12\"") && strstr(json, "\"chosen\": true"));
  rigel_free(json);
  OK(rigel_synchronize(handle));
  for (j = 0; j < n; ++j) {
    CHECK(j == 0 || w_data[j - 1] <= w_data[j]);
    for (i = 0; i < n; ++i) {
      double rest = -w_data[j] * v_data[j * n + i];
      for (k = 0; k < n; ++k) rest += a_data[i * n + k] * v_data[j * n + k];
      /* |A| <= n, and eigenvectors leave a small multiple of n u |A|. */
      CHECK(fabs(rest) <= 10 * n * 0x1p-53 * n);
    }
  }
}

static void sizes_and_candidates(rigel_handle* handle) {
  double* const data = doubles(64, NULL);
  const rigel_matrix a = RIGEL_ROW_MAJOR(data, RIGEL_F64, 4, 4), b = RIGEL_ROW_MAJOR(data + 16, RIGEL_F64, 4, 1),
                     x = RIGEL_ROW_MAJOR(data + 32, RIGEL_F64, 4, 1), l = RIGEL_ROW_MAJOR(data + 48, RIGEL_F64, 4, 4);
  const rigel_solve_args args = solve_args();
  size_t bytes = 0;
  char* texts[4] = {NULL, NULL, NULL, NULL};
  static const char* const problems[] = {"\"cholesky f64, 4x4, 1 right side\"", "\"cholesky f64, 4x4, factors\"",
                                         "\"cholesky f64, 4x4, 1 right side, factored\"", "\"lu f64, 4x4, 1 right side\""};
  int i;
  OK(rigel_cholesky_solve_workspace_size(handle, &args, &a, &b, &x, NULL, &bytes));
  OK(rigel_cholesky_factor_workspace_size(handle, &args, &a, &l, NULL, &bytes));
  OK(rigel_cholesky_solve_factored_workspace_size(handle, &args, &l, &b, &x, NULL, &bytes));
  OK(rigel_lu_solve_workspace_size(handle, &args, &a, &b, &x, NULL, &bytes));
  OK(rigel_explain_cholesky_solve(handle, &args, &a, &b, &x, NULL, &texts[0]));
  OK(rigel_explain_cholesky_factor(handle, &args, &a, &l, NULL, &texts[1]));
  OK(rigel_explain_cholesky_solve_factored(handle, &args, &l, &b, &x, NULL, &texts[2]));
  OK(rigel_explain_lu_solve(handle, &args, &a, &b, &x, NULL, &texts[3]));
  for (i = 0; i < 4; ++i) {
    CHECK(texts[i] && strstr(texts[i], problems[i]) && strstr(texts[i], "\"chosen\": true"));
    rigel_free(texts[i]);
  }
}

static void refused(rigel_handle* handle) {
  double* const data = doubles(64, NULL);
  rigel_matrix a = RIGEL_ROW_MAJOR(data, RIGEL_F64, 4, 4), b = RIGEL_ROW_MAJOR(data + 16, RIGEL_F64, 4, 1),
               x = RIGEL_ROW_MAJOR(data + 32, RIGEL_F64, 4, 1), info = RIGEL_ROW_MAJOR(data + 48, RIGEL_I32, 1, 1);
  rigel_solve_args args = solve_args();
  int i;
#define CALL rigel_lu_solve(handle, &args, &a, &b, &x, &info)
#define REFUSES(text) FAILS(CALL, RIGEL_INVALID_ARGUMENT, "rigel_lu_solve: ", text, NULL)
  args.size = 8;
  REFUSES("args.size is 8");
  args = solve_args();
  args.triangle = 2;
  REFUSES("args.triangle is 2, expected 0 (RIGEL_LOWER) or 1 (RIGEL_UPPER)");
  args = solve_args();
  args.overwrite_a = 2;
  REFUSES("args.overwrite_a is 2, expected 0 or 1");
  args = solve_args();
  args.refine = 1;
  REFUSES("options.refine is 1, expected 0");
  args = solve_args();
  args.options.precision = RIGEL_PRECISION_TF32;
  REFUSES("args.options.precision is 7, expected 0");
  args = solve_args();
  args.reserved_flags = 1;
  REFUSES("args.reserved_flags is 1");
  args = solve_args();
  args.options.kernel = "no_such";
  FAILS(CALL, RIGEL_NOT_FOUND, "no kernel is named 'no_such'", NULL, NULL);
  args = solve_args();
  a.rows = 3;
  REFUSES("A is 3x4, expected a square matrix");
  a.rows = 4;
  b.rows = 3;
  REFUSES("B is 3x1, expected 4x1");
  b.rows = 4;
  a.type = RIGEL_I64;
  REFUSES("A.type is i64, expected f32 or f64");
  a.type = RIGEL_F64;
  x.type = RIGEL_F32;
  REFUSES("X is 4x1 of f32, expected f64 as A");
  x.type = RIGEL_F64;
  info.type = RIGEL_I64;
  REFUSES("info.type is i64, expected i32");
  info.type = RIGEL_I32;
  info.columns = 2;
  REFUSES("info is 1x2, expected 1x1");
  info.columns = 1;
  x.data = b.data;
  REFUSES("X 4x1 overlaps B 4x1, expected distinct elements, or the same view and options.overwrite_b");
  FAILS(rigel_cholesky_factor(handle, &args, &a, NULL, NULL), RIGEL_INVALID_ARGUMENT, "rigel_cholesky_factor: L is NULL", NULL, NULL);
  FAILS(rigel_eigh(handle, &args, &a, NULL, &a, NULL), RIGEL_INVALID_ARGUMENT, "rigel_eigh: w is NULL", NULL, NULL);
  FAILS(rigel_eigh(handle, &args, &a, &info, &a, NULL), RIGEL_INVALID_ARGUMENT, "w is 1x1 of i32, expected f64 as A", NULL, NULL);
  FAILS(rigel_log_determinant(handle, &b, &x), RIGEL_INVALID_ARGUMENT, "rigel_log_determinant: d is 4x1, expected 1x1", NULL, NULL);
  x.rows = 1;
  FAILS(rigel_log_determinant(handle, &b, &x), RIGEL_INVALID_ARGUMENT, "rigel_log_determinant: L is 4x1, expected a square matrix", NULL,
        NULL);
  for (i = 0; i < 64; ++i) CHECK(data[i] == 0);
#undef REFUSES
#undef CALL
}

void test_solves(rigel_handle* handle) {
  by_hand(handle, RIGEL_LOWER);
  by_hand(handle, RIGEL_UPPER);
  batches(handle);
  pivots(handle);
  refinement(handle);
  eigenvectors(handle);
  sizes_and_candidates(handle);
  refused(handle);
}
