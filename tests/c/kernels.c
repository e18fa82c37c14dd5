/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kernel matrices: every kernel against its formula. Their gradients, and those of distances, against sums that are derived by hand. */
#include "support.h"

#include <math.h>
#include <string.h>

enum { rows_x = 5, rows_z = 4, columns = 3 };

static double x_values[rows_x * columns], z_values[rows_z * columns], g_values[rows_x * rows_z];

static const double unit = 0x1p-53;

static rigel_matrix doubles(const double* values, int rows, int count) {
  const rigel_matrix empty = RIGEL_ROW_MAJOR(NULL, RIGEL_F64, rows, count);
  rigel_matrix m = empty;
  m.data = allocate((size_t)(rows * count) * sizeof(double));
  if (values) memcpy(m.data, values, (size_t)(rows * count) * sizeof(double));
  return m;
}

static double at(const rigel_matrix* m, int i, int j) { return ((const double*)m->data)[i * m->columns + j]; }

static rigel_kernel_matrix_args kernel_args(const char* kernel, const char* metric, const rigel_parameter* hyperparameters, int count) {
  rigel_kernel_matrix_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.kernel = kernel;
  args.metric = metric;
  args.hyperparameters = hyperparameters;
  args.hyperparameters_count = count;
  args.options.precision = RIGEL_PRECISION_ACCUMULATOR;
  return args;
}

/* The distance of two rows for p = 1 or 2, their product for p = 0, and for p = -1 the cosine. */
static double between(const double* x, const double* z, int p) {
  double sum = 0, of_x = 0, of_z = 0;
  int k;
  for (k = 0; k < columns; ++k) {
    sum += p == 2 ? (x[k] - z[k]) * (x[k] - z[k]) : p == 1 ? fabs(x[k] - z[k]) : x[k] * z[k];
    of_x += x[k] * x[k];
    of_z += z[k] * z[k];
  }
  return p == 2 ? sqrt(sum) : p >= 0 ? sum : sum / sqrt(of_x * of_z);
}

static double laplace(double d) { return exp(-d / 1.5); }
static double gaussian(double d) { return exp(-d * d / (2 * 1.5 * 1.5)); }
static double matern32(double d) { return (1 + sqrt(3) * d / 1.5) * exp(-sqrt(3) * d / 1.5); }
static double matern52(double d) { return (1 + sqrt(5) * d / 1.5 + 5 * d * d / (3 * 1.5 * 1.5)) * exp(-sqrt(5) * d / 1.5); }
static double rational_quadratic(double d) { return pow(1 + d * d / (2 * 2.5 * 1.5 * 1.5), -2.5); }
static double polynomial(double q) { return pow(0.5 * q + 2, 3); }
static double cubic(double q) { return pow(q + 1, 3); } /* by default */
static double sigmoid(double q) { return tanh(0.5 * q - 0.25); }
static double itself(double q) { return q; }

static const rigel_parameter length[] = {{"length", 1.5}}, bandwidth[] = {{"bandwidth", 1.5}},
                             length_and_alpha[] = {{"alpha", 2.5}, {"length", 1.5}},
                             of_polynomial[] = {{"degree", 3}, {"scale", 0.5}, {"offset", 2}},
                             of_sigmoid[] = {{"scale", 0.5}, {"offset", -0.25}};

static const struct {
  const char *kernel, *metric;
  int p, count;
  const rigel_parameter* hyperparameters;
  double (*of)(double);
  double largest; /* of the kernel's value and of what it is computed from, for rows of numbers from -1 to 1 */
} kernels[] = {{"laplace", "manhattan", 1, 1, length, laplace, 4},
               {"matern12", "euclidean", 2, 1, length, laplace, 4},
               {"gaussian", "euclidean", 2, 1, bandwidth, gaussian, 4},
               {"matern32", "euclidean", 2, 1, length, matern32, 8},
               {"matern52", "euclidean", 2, 1, length, matern52, 16},
               {"rational_quadratic", "euclidean", 2, 2, length_and_alpha, rational_quadratic, 8},
               {"polynomial", "inner_product", 0, 3, of_polynomial, polynomial, 43},
               {"polynomial", "inner_product", 0, 1, of_polynomial, cubic, 64},
               {"sigmoid", "inner_product", 0, 2, of_sigmoid, sigmoid, 4},
               {"cosine", "cosine", -1, 0, NULL, itself, 2}};

static void formulas(rigel_handle* handle) {
  const rigel_matrix x = doubles(x_values, rows_x, columns), z = doubles(z_values, rows_z, columns),
                     d = doubles(NULL, rows_x, rows_z);
  size_t one;
  int i, j;
  for (one = 0; one < sizeof kernels / sizeof *kernels; ++one) {
    const rigel_kernel_matrix_args args =
        kernel_args(kernels[one].kernel, kernels[one].metric, kernels[one].hyperparameters, kernels[one].count);
    size_t bytes = 1;
    char* json = NULL;
    OK(rigel_kernel_matrix(handle, &args, &x, &z, &d));
    OK(rigel_kernel_matrix_workspace_size(handle, &args, &x, &z, &d, &bytes));
    OK(rigel_explain_kernel_matrix(handle, &args, &x, &z, &d, &json));
    CHECK(json && strstr(json, "\"chosen\": true") != NULL);
    rigel_free(json);
    OK(rigel_synchronize(handle));
    for (i = 0; i < rows_x; ++i)
      for (j = 0; j < rows_z; ++j) {
        const double expected = kernels[one].of(between(x_values + i * columns, z_values + j * columns, kernels[one].p));
        /* A sum of three terms, and steps that take or give at most `largest`, each within 4 units. */
        check(fabs(at(&d, i, j) - expected) <= 32 * unit * kernels[one].largest, kernels[one].kernel, "", __FILE__, __LINE__);
      }
  }
}

/* X with itself, its diagonal, a threshold, and rows of a larger matrix. */
static void options(rigel_handle* handle) {
  const rigel_matrix x = doubles(x_values, rows_x, columns), d = doubles(NULL, rows_x, rows_x);
  rigel_kernel_matrix_args args = kernel_args("gaussian", "euclidean", bandwidth, 1);
  rigel_matrix last = x, last_rows = d;
  int i, j;
  args.regularisation = 0.25;
  args.threshold = 0.7;
  OK(rigel_kernel_matrix(handle, &args, &x, NULL, &d));
  OK(rigel_synchronize(handle));
  for (i = 0; i < rows_x; ++i)
    for (j = 0; j < rows_x; ++j) {
      const double k = gaussian(between(x_values + i * columns, x_values + j * columns, 2));
      CHECK(at(&d, i, j) == at(&d, j, i));
      CHECK(i == j ? at(&d, i, j) == 1.25 : k < 0.7 ? at(&d, i, j) == 0 : fabs(at(&d, i, j) - k) <= 64 * unit);
    }
  /* The last two rows of the same matrix. */
  last.data = (double*)x.data + 3 * columns;
  last.rows = last_rows.rows = 2;
  last_rows.data = doubles(NULL, 2, rows_x).data;
  args.m0 = 3;
  OK(rigel_kernel_matrix(handle, &args, &last, &x, &last_rows));
  OK(rigel_synchronize(handle));
  for (i = 0; i < 2; ++i)
    for (j = 0; j < rows_x; ++j) CHECK(fabs(at(&last_rows, i, j) - at(&d, 3 + i, j)) <= 64 * unit);
}

/* Kernels of distances whose rows are prepared, or that have a semiring of their own: with the factor 2 times the unit matrix distances
   double, with variances of 1/4 too. */
static void of_other_metrics(rigel_handle* handle) {
  static const double twice[columns * columns] = {2, 0, 0, 0, 2, 0, 0, 0, 2}, quarters[columns] = {0.25, 0.25, 0.25};
  const rigel_matrix x = doubles(x_values, rows_x, columns), z = doubles(z_values, rows_z, columns),
                     d = doubles(NULL, rows_x, rows_z), factor = doubles(twice, columns, columns),
                     variances = doubles(quarters, 1, columns);
  rigel_kernel_matrix_args args = kernel_args("gaussian", "mahalanobis", bandwidth, 1);
  int way, i, j;
  for (way = 0; way < 2; ++way) {
    if (way == 1) args.metric = "seuclidean";
    args.metric_matrix = way == 0 ? &factor : &variances;
    OK(rigel_kernel_matrix(handle, &args, &x, &z, &d));
    OK(rigel_synchronize(handle));
    for (i = 0; i < rows_x; ++i)
      for (j = 0; j < rows_z; ++j)
        CHECK(fabs(at(&d, i, j) - gaussian(2 * between(x_values + i * columns, z_values + j * columns, 2))) <= 64 * unit);
  }
}

static void refused(rigel_handle* handle) {
  const rigel_matrix x = doubles(x_values, rows_x, columns);
  rigel_matrix d = doubles(NULL, rows_x, rows_x);
  static const rigel_parameter none = {"length", 0}, unknown = {"width", 1};
  rigel_kernel_matrix_args args = kernel_args("gausian", "euclidean", bandwidth, 1);
#define CALL rigel_kernel_matrix(handle, &args, &x, &x, &d)
#define REFUSES(code, text) FAILS(CALL, code, "rigel_kernel_matrix: ", text, NULL)
  REFUSES(RIGEL_NOT_FOUND, "'gausian' is no kernel, expected one of laplace, gaussian, matern12");
  args.kernel = NULL;
  REFUSES(RIGEL_NOT_FOUND, "NULL is the name of no kernel");
  args.kernel = "laplace";
  REFUSES(RIGEL_NOT_FOUND, "kernel 'laplace' has no hyperparameter 'bandwidth', expected length");
  args.hyperparameters_count = 0;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.hyperparameters have no 'length', expected one: kernel 'laplace' has no default for it");
  args.hyperparameters_count = -1;
  REFUSES(RIGEL_INVALID_ARGUMENT, "hyperparameters_count is -1");
  args = kernel_args("laplace", "euclidean", &none, 1);
  REFUSES(RIGEL_INVALID_ARGUMENT, "the kernel's length is 0, expected a positive number");
  args = kernel_args("cosine", "cosine", &unknown, 1);
  REFUSES(RIGEL_NOT_FOUND, "kernel 'cosine' has no hyperparameter 'width', expected none");
  args = kernel_args("laplace", "squared_euclidean", length, 1);
  REFUSES(RIGEL_INVALID_ARGUMENT, "metric 'squared_euclidean' does not go with kernel 'laplace', expected one of distances");
  args.metric = "inner_product";
  REFUSES(RIGEL_INVALID_ARGUMENT, "metric 'inner_product' does not go with kernel 'laplace'");
  args = kernel_args("polynomial", "euclidean", of_polynomial, 3);
  REFUSES(RIGEL_INVALID_ARGUMENT, "metric 'euclidean' does not go with kernel 'polynomial', expected inner_product");
  args = kernel_args("cosine", "euclidean", NULL, 0);
  REFUSES(RIGEL_INVALID_ARGUMENT, "expected cosine or correlation");
  args = kernel_args("laplace", "euclid", length, 1);
  REFUSES(RIGEL_NOT_FOUND, "'euclid' is no metric");
  args = kernel_args("laplace", "euclidean", length, 1);
  args.size -= 8;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.size is");
  args = kernel_args("laplace", "euclidean", length, 1);
  args.reserved[2] = 1;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.reserved");
  args = kernel_args("laplace", "euclidean", length, 1);
  args.threshold = INFINITY;
  REFUSES(RIGEL_INVALID_ARGUMENT, "options.threshold is inf, expected a finite number");
  args = kernel_args("laplace", "euclidean", length, 1);
  args.metric_matrix = &x;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.metric_matrix is not NULL");
  args.metric_matrix = NULL;
  d.type = RIGEL_I64;
  REFUSES(RIGEL_INVALID_ARGUMENT, "D.type is i64, expected f16, bf16, f32 or f64");
  d.type = RIGEL_F64;
  d.columns = 4;
  REFUSES(RIGEL_INVALID_ARGUMENT, "D is 5x4, expected 5 columns to match the rows of Z 5x3");
  d.columns = 5;
  args.n0 = 1;
  FAILS(rigel_kernel_matrix(handle, &args, &x, NULL, &d), RIGEL_INVALID_ARGUMENT,
        "rigel_kernel_matrix: options.m0 is 0 and options.n0 is 1", NULL, NULL);
  FAILS(rigel_kernel_matrix_workspace_size(handle, &args, &x, &x, &d, NULL), RIGEL_INVALID_ARGUMENT, "bytes is NULL", NULL, NULL);
  CHECK(at(&d, 0, 0) == 0);
#undef REFUSES
#undef CALL
}

/* ---- gradients of kernel matrices ---- */

static rigel_kernel_matrix_gradient_args gradient_args(const char* kernel, const char* metric, const rigel_parameter* hyperparameters,
                                                       int count) {
  rigel_kernel_matrix_gradient_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.kernel = kernel;
  args.metric = metric;
  args.hyperparameters = hyperparameters;
  args.hyperparameters_count = count;
  return args;
}

/* What dk/dx_k and dk/dtheta are for one pair of rows, and a bound of the magnitudes that they are computed from. */
typedef void (*derivative)(const double* x, const double* z, double by_x[columns], double by_hyperparameters[3]);

static void of_gaussian(const double* x, const double* z, double by_x[columns], double by[3]) {
  const double d = between(x, z, 2), b = 1.5, k = gaussian(d);
  int c;
  for (c = 0; c < columns; ++c) by_x[c] = -k * (x[c] - z[c]) / (b * b);
  by[0] = k * d * d / (b * b * b);
}
static void of_laplace(const double* x, const double* z, double by_x[columns], double by[3]) {
  const double d = between(x, z, 1), k = laplace(d);
  int c;
  for (c = 0; c < columns; ++c) by_x[c] = x[c] == z[c] ? 0 : (x[c] > z[c] ? -k : k) / 1.5;
  by[0] = k * d / (1.5 * 1.5);
}
static void of_cubic(const double* x, const double* z, double by_x[columns], double by[3]) {
  const double q = between(x, z, 0), b = 0.5 * q + 2;
  int c;
  for (c = 0; c < columns; ++c) by_x[c] = 3 * b * b * 0.5 * z[c];
  by[0] = b * b * b * log(b);
  by[1] = 3 * b * b * q;
  by[2] = 3 * b * b;
}

static const struct {
  const char *kernel, *metric;
  const rigel_parameter* hyperparameters;
  int count;
  derivative of;
} differentiable[] = {{"gaussian", "euclidean", bandwidth, 1, of_gaussian},
                      {"laplace", "manhattan", length, 1, of_laplace},
                      {"polynomial", "inner_product", of_polynomial, 3, of_cubic}};

/* Each sum has at most 20 terms, which are below 50 and within 32 units. */
static const double tolerance = 20 * 50 * 64 * 0x1p-53;

static void gradients(rigel_handle* handle, int is_outer) {
  const rigel_matrix x = doubles(x_values, rows_x, columns), z = doubles(z_values, rows_z, columns),
                     g = doubles(g_values, rows_x, is_outer ? 1 : rows_z), v = doubles(g_values + rows_x, rows_z, 1),
                     dx = doubles(NULL, rows_x, columns), dz = doubles(NULL, rows_z, columns);
  rigel_hyperparameter_gradient wanted[3];
  size_t one;
  int i, j, c, times;
  for (one = 0; one < 3; ++one) {
    rigel_kernel_matrix_gradient_args args = gradient_args(differentiable[one].kernel, differentiable[one].metric,
                                                           differentiable[one].hyperparameters, differentiable[one].count);
    double by_x[rows_x * columns] = {0}, by_z[rows_z * columns] = {0}, by_hyperparameters[3] = {0};
    size_t bytes = 0;
    char* json = NULL;
    for (i = 0; i < rows_x; ++i)
      for (j = 0; j < rows_z; ++j) {
        const double weight = is_outer ? g_values[i] * g_values[rows_x + j] : g_values[i * rows_z + j];
        double of_x[columns], of_z[columns], by[3] = {0};
        differentiable[one].of(z_values + j * columns, x_values + i * columns, of_z, by);
        differentiable[one].of(x_values + i * columns, z_values + j * columns, of_x, by);
        for (c = 0; c < columns; ++c) {
          by_x[i * columns + c] += weight * of_x[c];
          by_z[j * columns + c] += weight * of_z[c];
        }
        for (c = 0; c < 3; ++c) by_hyperparameters[c] += weight * by[c];
      }
    for (c = 0; c < differentiable[one].count; ++c) {
      wanted[c].name = differentiable[one].hyperparameters[c].name;
      wanted[c].matrix = doubles(NULL, 1, 1);
    }
    args.gradients = wanted;
    args.gradients_count = differentiable[one].count;
    OK(rigel_kernel_matrix_gradient_workspace_size(handle, &args, &x, &z, &g, is_outer ? &v : NULL, &dx, &dz, &bytes));
    CHECK(bytes > 0);
    args.options.workspace = allocate(bytes);
    args.options.workspace_bytes = bytes;
    OK(rigel_explain_kernel_matrix_gradient(handle, &args, &x, &z, &g, is_outer ? &v : NULL, &dx, &dz, &json));
    CHECK(json && strstr(json, "\"part\": \"dX\"") && strstr(json, "\"part\": \"dZ\""));
    CHECK(json && strstr(json, differentiable[one].of == of_cubic ? "\"part\": \"products\"" : "\"part\": \"distances\""));
    rigel_free(json);
    for (times = 1; times <= 2; ++times) {
      args.accumulate = times - 1;
      OK(rigel_kernel_matrix_gradient(handle, &args, &x, &z, &g, is_outer ? &v : NULL, &dx, &dz));
      OK(rigel_synchronize(handle));
      for (i = 0; i < rows_x * columns; ++i) CHECK(fabs(((double*)dx.data)[i] - times * by_x[i]) <= times * tolerance);
      for (i = 0; i < rows_z * columns; ++i) CHECK(fabs(((double*)dz.data)[i] - times * by_z[i]) <= times * tolerance);
      for (c = 0; c < differentiable[one].count; ++c)
        CHECK(fabs(*(double*)wanted[c].matrix.data - times * by_hyperparameters[c]) <= times * tolerance);
    }
  }
}

/* X with itself: the sum of the gradients by both arguments. */
static void gradient_of_self(rigel_handle* handle) {
  const rigel_matrix x = doubles(x_values, rows_x, columns), g = doubles(NULL, rows_x, rows_x), dx = doubles(NULL, rows_x, columns);
  const rigel_kernel_matrix_gradient_args args = gradient_args("gaussian", "euclidean", bandwidth, 1);
  double expected[rows_x * columns] = {0};
  int i, j, c;
  for (i = 0; i < rows_x * rows_x; ++i) ((double*)g.data)[i] = g_values[i % (rows_x * rows_z)];
  for (i = 0; i < rows_x; ++i)
    for (j = 0; j < rows_x; ++j) {
      double by_x[columns], by[3];
      of_gaussian(x_values + i * columns, x_values + j * columns, by_x, by);
      for (c = 0; c < columns; ++c) {
        expected[i * columns + c] += at(&g, i, j) * by_x[c];
        expected[j * columns + c] -= at(&g, i, j) * by_x[c];
      }
    }
  OK(rigel_kernel_matrix_gradient(handle, &args, &x, NULL, &g, NULL, &dx, NULL));
  OK(rigel_synchronize(handle));
  for (i = 0; i < rows_x * columns; ++i) CHECK(fabs(((double*)dx.data)[i] - expected[i]) <= tolerance);
}

/* Floats give what doubles give. */
static void gradient_of_floats(rigel_handle* handle) {
  float* const numbers = allocate(64 * sizeof(float));
  const rigel_matrix x = RIGEL_ROW_MAJOR(numbers, RIGEL_F32, rows_x, columns),
                     g = RIGEL_ROW_MAJOR(numbers + 16, RIGEL_F32, rows_x, rows_x),
                     dx = RIGEL_ROW_MAJOR(numbers + 48, RIGEL_F32, rows_x, columns);
  const rigel_matrix wide_x = doubles(NULL, rows_x, columns), wide_g = doubles(NULL, rows_x, rows_x),
                     wide_dx = doubles(NULL, rows_x, columns);
  const rigel_kernel_matrix_gradient_args args = gradient_args("matern32", "euclidean", length, 1);
  int i;
  for (i = 0; i < rows_x * columns; ++i) ((double*)wide_x.data)[i] = numbers[i] = (float)x_values[i];
  for (i = 0; i < rows_x * rows_x; ++i) ((double*)wide_g.data)[i] = numbers[16 + i] = (float)g_values[i % (rows_x * rows_z)];
  OK(rigel_kernel_matrix_gradient(handle, &args, &x, NULL, &g, NULL, &dx, NULL));
  OK(rigel_kernel_matrix_gradient(handle, &args, &wide_x, NULL, &wide_g, NULL, &wide_dx, NULL));
  OK(rigel_synchronize(handle));
  for (i = 0; i < rows_x * columns; ++i) CHECK(fabs(numbers[48 + i] - ((double*)wide_dx.data)[i]) <= 10 * 3 * 64 * 0x1p-24);
}

static void refused_gradients(rigel_handle* handle) {
  const rigel_matrix x = doubles(x_values, rows_x, columns), z = doubles(z_values, rows_z, columns),
                     dx = doubles(NULL, rows_x, columns), dz = doubles(NULL, rows_z, columns);
  rigel_matrix g = doubles(g_values, rows_x, rows_z);
  rigel_hyperparameter_gradient wanted[2];
  rigel_kernel_matrix_gradient_args args;
#define RESET args = gradient_args("gaussian", "euclidean", bandwidth, 1)
#define REFUSES(code, text) \
  FAILS(rigel_kernel_matrix_gradient(handle, &args, &x, &z, &g, NULL, &dx, &dz), code, "rigel_kernel_matrix_gradient: ", text, NULL)
  RESET;
  args.kernel = "cosine";
  args.metric = "cosine";
  args.hyperparameters_count = 0;
  REFUSES(RIGEL_UNSUPPORTED, "metric 'cosine' has no gradient here, expected euclidean, manhattan, minkowski or inner_product");
  RESET;
  args.metric = "chebyshev";
  REFUSES(RIGEL_UNSUPPORTED, "metric 'chebyshev' has no gradient here");
  RESET;
  args.metric = "weighted_minkowski"; /* before its weights are missed */
  REFUSES(RIGEL_UNSUPPORTED, "metric 'weighted_minkowski' has no gradient here");
  RESET;
  const rigel_parameter infinite = {"p", INFINITY};
  args.metric = "minkowski";
  args.parameters = &infinite;
  args.parameters_count = 1;
  REFUSES(RIGEL_INVALID_ARGUMENT, "minkowski's p is inf, expected a finite number above 0");
  RESET;
  wanted[0].name = "length";
  wanted[0].matrix = doubles(NULL, 1, 1);
  args.gradients = wanted;
  args.gradients_count = 1;
  REFUSES(RIGEL_NOT_FOUND, "kernel 'gaussian' has no hyperparameter 'length', expected bandwidth");
  wanted[0].name = "bandwidth";
  wanted[1] = wanted[0];
  args.gradients_count = 2;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.gradients name 'bandwidth' twice");
  args.gradients_count = 1;
  wanted[0].matrix.columns = 2;
  REFUSES(RIGEL_INVALID_ARGUMENT, "the gradient by bandwidth is 1x2, expected 1x1");
  wanted[0].name = NULL;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.gradients[0].name is NULL");
  args.gradients = NULL;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.gradients_count is 1");
  RESET;
  args.options.kernel = "host";
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.options.kernel is not NULL");
  RESET;
  args.options.require = RIGEL_REPEATABLE;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.options.require is 2, expected 0");
  RESET;
  args.epsilon = -1;
  REFUSES(RIGEL_INVALID_ARGUMENT, "args.epsilon is -1");
  RESET;
  args.block_rows = -1;
  REFUSES(RIGEL_INVALID_ARGUMENT, "options.block_rows is -1, expected 0 or more");
  RESET;
  g.columns = 3;
  REFUSES(RIGEL_INVALID_ARGUMENT, "G is 5x3, expected 5x4 (M x N) to match X 5x3 and Z 4x3");
  g.columns = 4;
  g.type = RIGEL_F32;
  REFUSES(RIGEL_INVALID_ARGUMENT, "G is 5x4 of f32, expected f64 as X");
  g.type = RIGEL_F64;
  FAILS(rigel_kernel_matrix_gradient(handle, &args, &x, NULL, &g, NULL, &dx, &dz), RIGEL_INVALID_ARGUMENT,
        "rigel_kernel_matrix_gradient: dZ is not NULL, and Z is", NULL, NULL);
  FAILS(rigel_kernel_matrix_gradient(handle, &args, &x, &z, NULL, NULL, &dx, &dz), RIGEL_INVALID_ARGUMENT, "G is NULL", NULL, NULL);
  CHECK(at(&dx, 0, 0) == 0 && at(&dz, 0, 0) == 0);
#undef REFUSES
#undef RESET
}

/* ---- gradients of distances ---- */

static rigel_cdist_gradient_args distance_args(double p) {
  rigel_cdist_gradient_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.p = p;
  return args;
}

/* Two batches of two outputs, whose matrices lie apart; one A, C and D for both batches. */
static void distance_gradients(rigel_handle* handle) {
  enum { n = 3, m = 5, k = 7, outputs = 2, batches = 2, apart = n * m + 2 };
  static const double powers[batches] = {1.5, 3};
  double* const out_data = allocate(batches * outputs * apart * sizeof(double));
  rigel_matrix a = doubles(NULL, k, m), b = doubles(NULL, batches * n, k), c = doubles(NULL, outputs, k), d = doubles(NULL, n, m);
  rigel_matrix out = RIGEL_ROW_MAJOR(out_data, RIGEL_F64, n, m), of_powers = doubles(powers, batches, 1);
  int one, l, o, i, j, s;
  for (i = 0; i < k * m; ++i) ((double*)a.data)[i] = next_random();
  for (i = 0; i < batches * n * k; ++i) ((double*)b.data)[i] = next_random();
  for (i = 0; i < outputs * k; ++i) ((double*)c.data)[i] = next_random();
  for (i = 0; i < n * m; ++i) ((double*)d.data)[i] = next_random();
  b.batches = out.batches = of_powers.batches = batches;
  b.rows = n;
  b.batch_stride = n * k;
  out.batch_stride = outputs * apart;
  of_powers.rows = 1;
  of_powers.batch_stride = 1;
  for (one = 0; one < 5; ++one) { /* p = 2 by default, 1, 2.5, and one for each batch, added to Out */
    static const double numbers[] = {0, 1, 2.5, 0, 0};
    rigel_cdist_gradient_args args = distance_args(numbers[one]);
    size_t bytes = 1;
    char* json = NULL;
    if (one >= 3) args.powers = &of_powers;
    args.accumulate = one == 4;
    args.epsilon = 0.125;
    args.output_stride = apart;
    if (one < 4)
      for (i = 0; i < batches * outputs * apart; ++i) out_data[i] = -1;
    OK(rigel_cdist_gradient(handle, &args, &a, &b, &c, &d, &out));
    OK(rigel_cdist_gradient_workspace_size(handle, &args, &a, &b, &c, &d, &out, &bytes));
    OK(rigel_explain_cdist_gradient(handle, &args, &a, &b, &c, &d, &out, &json));
    CHECK(json && strstr(json, "\"chosen\": true"));
    rigel_free(json);
    OK(rigel_synchronize(handle));
    for (l = 0; l < batches; ++l)
      for (o = 0; o < outputs; ++o) {
        const double p = one >= 3 ? powers[l] : one == 0 ? 2 : numbers[one];
        const double* const result = out_data + (l * outputs + o) * apart;
        for (i = 0; i < n; ++i)
          for (j = 0; j < m; ++j) {
            double sum = 0;
            for (s = 0; s < k; ++s) {
              const double t = at(&d, i, j) - ((double*)b.data)[l * n * k + i * k + s];
              if (fabs(t) >= 0.125) sum += at(&c, o, s) * at(&a, s, j) * (t > 0 ? 1 : -1) * pow(fabs(t), p - 1);
            }
            /* Seven terms below 1, each within 16 units; the second sum of two starts with the first. */
            CHECK(fabs(result[i * m + j] - (one == 4 ? 2 : 1) * sum) <= 2 * 7 * 24 * unit);
          }
        CHECK(result[n * m] == -1 && result[n * m + 1] == -1);
      }
  }
  /* Without a stride the matrices follow each other. */
  {
    rigel_cdist_gradient_args args = distance_args(1);
    const double first = at(&c, 0, 0);
    out.batches = 1;
    b.batches = 1;
    for (s = 0; s < k; ++s) ((double*)c.data)[k + s] = 2 * ((double*)c.data)[s];
    OK(rigel_cdist_gradient(handle, &args, &a, &b, &c, &d, &out));
    OK(rigel_synchronize(handle));
    CHECK(first > 0);
    for (i = 0; i < n * m; ++i) CHECK(fabs(out_data[n * m + i] - 2 * out_data[i]) <= 7 * 4 * unit);
  }
}

static void refused_distance_gradients(rigel_handle* handle) {
  const rigel_matrix a = doubles(NULL, 4, 3), b = doubles(NULL, 2, 4), c = doubles(NULL, 2, 4);
  rigel_matrix d = doubles(NULL, 2, 3), out = doubles(NULL, 4, 3), powers = doubles(NULL, 1, 2);
  rigel_cdist_gradient_args args = distance_args(-1);
  out.rows = 2;
#define REFUSES(text) \
  FAILS(rigel_cdist_gradient(handle, &args, &a, &b, &c, &d, &out), RIGEL_INVALID_ARGUMENT, "rigel_cdist_gradient: ", text, NULL)
  REFUSES("p is -1");
  args = distance_args(INFINITY);
  REFUSES("p is inf");
  args = distance_args(0);
  args.epsilon = -1;
  REFUSES("args.epsilon is -1");
  args = distance_args(0);
  args.output_stride = -1;
  REFUSES("args.output_stride is -1, expected 0 or more");
  args.output_stride = INT64_MAX / 8;
  REFUSES("Out with all outputs");
  args = distance_args(2);
  args.powers = &powers;
  REFUSES("args.p is 2.000000, expected 0: args.powers has it");
  args.p = 0;
  REFUSES("args.powers is 1x2, expected 1x1");
  powers.type = RIGEL_F32;
  REFUSES("args.powers is 1x2 of f32, expected f64 as Out");
  args = distance_args(0);
  args.reserved[3] = 1;
  REFUSES("args.reserved");
  args = distance_args(0);
  d.rows = 3;
  REFUSES("D is 3x3, expected 2x3 (N x M) to match Out 2x2x3");
  d.rows = 2;
  d.type = RIGEL_F32;
  REFUSES("D is 2x3 of f32, expected f64 as A");
  d.type = RIGEL_F64;
  args.output_stride = 1;
  REFUSES("Out 2x2x3 overlaps itself");
  FAILS(rigel_cdist_gradient(handle, &args, &a, &b, &c, &d, NULL), RIGEL_INVALID_ARGUMENT, "Out is NULL", NULL, NULL);
#undef REFUSES
}

void test_kernels(rigel_handle* handle) {
  int i;
  for (i = 0; i < rows_x * columns; ++i) x_values[i] = 2 * next_random() - 1;
  for (i = 0; i < rows_z * columns; ++i) z_values[i] = 2 * next_random() - 1;
  for (i = 0; i < rows_x * rows_z; ++i) g_values[i] = 2 * next_random() - 1;
  formulas(handle);
  options(handle);
  of_other_metrics(handle);
  refused(handle);
  gradients(handle, 0);
  gradients(handle, 1);
  gradient_of_self(handle);
  gradient_of_floats(handle);
  refused_gradients(handle);
  distance_gradients(handle);
  refused_distance_gradients(handle);
}
