/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kernel matrices and softmaxes times vectors, and iterations over reductions: by hand, against other functions, and what is refused. */
#include "support.h"

#include <math.h>
#include <string.h>

static const rigel_parameter bandwidth = {"bandwidth", 2};

static rigel_reduce_distances_args points_args(const char* metric, const char* kernel) {
  rigel_reduce_distances_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.metric = metric;
  args.kernel = kernel;
  if (kernel) {
    args.hyperparameters = &bandwidth;
    args.hyperparameters_count = 1;
  }
  return args;
}

/* Points 0, 3, 10 and 1, 2, 11 of a line, and V = (1 0; 2 1; 3 -1). */
static void matvecs(rigel_handle* handle) {
  static const double points[] = {0, 3, 10}, others[] = {1, 2, 11}, weights[] = {1, 0, 2, 1, 3, -1};
  double *const x_data = allocate(24), *const z_data = allocate(24), *const v_data = allocate(48),
                *const out_data = allocate(48);
  float* const xf = allocate(12);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, 3, 1), z = RIGEL_ROW_MAJOR(z_data, RIGEL_F64, 3, 1),
                     v = RIGEL_ROW_MAJOR(v_data, RIGEL_F64, 3, 2), out = RIGEL_ROW_MAJOR(out_data, RIGEL_F64, 3, 2),
                     floats = RIGEL_ROW_MAJOR(xf, RIGEL_F32, 3, 1), one = RIGEL_ROW_MAJOR(out_data, RIGEL_F64, 3, 1);
  rigel_reduce_distances_args args = points_args("euclidean", "gaussian");
  size_t bytes = 0;
  char* json = NULL;
  int m, n, d;
  memcpy(x_data, points, sizeof points);
  memcpy(z_data, others, sizeof others);
  memcpy(v_data, weights, sizeof weights);
  OK(rigel_kernel_matvec_workspace_size(handle, &args, &x, &z, &v, &out, &bytes));
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes;
  OK(rigel_kernel_matvec(handle, &args, &x, &z, &v, &out));
  OK(rigel_synchronize(handle));
  for (m = 0; m < 3; ++m)
    for (d = 0; d < 2; ++d) {
      double sum = 0;
      for (n = 0; n < 3; ++n) sum += exp(-(points[m] - others[n]) * (points[m] - others[n]) / 8) * weights[2 * n + d];
      CHECK(fabs(out_data[2 * m + d] - sum) < 1e-14);
    }
  args = points_args("euclidean", "gaussian");
  OK(rigel_explain_kernel_matvec(handle, &args, &x, &z, &v, &out, &json));
  CHECK(json && strstr(json, "portable.weighted_strips"));
  rigel_free(json);
  /* Kernels of floats, with doubles in V: each is within some roundings of floats. */
  for (m = 0; m < 3; ++m) xf[m] = (float)points[m];
  args.reduction.exclude_self = 1;
  OK(rigel_kernel_matvec(handle, &args, &floats, &floats, &v, &out));
  OK(rigel_synchronize(handle));
  CHECK(fabs(out_data[0] - (exp(-9. / 8) * 2 + exp(-100. / 8) * 3)) < 1e-6);
  CHECK(fabs(out_data[1] - (exp(-9. / 8) - exp(-100. / 8))) < 1e-6);

  /* exp(-distance) */
  args = points_args("manhattan", NULL);
  args.epilogue.steps_count = 1;
  args.epilogue.steps[0].kind = RIGEL_SCALE;
  args.epilogue.steps[0].x = -1;
  OK(rigel_softmax_matvec_workspace_size(handle, &args, &x, &z, &v, &out, &bytes));
  OK(rigel_softmax_matvec(handle, &args, &x, &z, &v, &out));
  OK(rigel_synchronize(handle));
  for (m = 0; m < 3; ++m)
    for (d = 0; d < 2; ++d) {
      double sum = 0, total = 0;
      for (n = 0; n < 3; ++n) {
        const double w = exp(-fabs(points[m] - others[n]));
        sum += w * weights[2 * n + d];
        total += w;
      }
      CHECK(fabs(out_data[2 * m + d] - sum / total) < 1e-14);
    }
  OK(rigel_explain_softmax_matvec(handle, &args, &x, &z, &v, &out, &json));
  CHECK(json && strstr(json, "\"chosen\""));
  rigel_free(json);

  args.kernel = "laplace";
  FAILS(rigel_kernel_matvec(handle, &args, &x, &z, &v, &out), RIGEL_INVALID_ARGUMENT, "args.epilogue has steps", NULL, NULL);
  args = points_args("manhattan", NULL);
  FAILS(rigel_kernel_matvec(handle, &args, &x, &z, &v, &out), RIGEL_INVALID_ARGUMENT, "args.kernel is NULL", NULL, NULL);
  FAILS(rigel_softmax_matvec(handle, &args, &x, &z, NULL, &out), RIGEL_INVALID_ARGUMENT, "V is NULL", NULL, NULL);
  FAILS(rigel_softmax_matvec(handle, &args, &x, &z, &v, NULL), RIGEL_INVALID_ARGUMENT, "no results are wanted", NULL, NULL);
  FAILS(rigel_softmax_matvec(handle, &args, &x, &z, &v, &one), RIGEL_INVALID_ARGUMENT, "out is 3x1", "expected 2 columns",
        NULL);
  FAILS(rigel_softmax_matvec(handle, &args, &x, &z, &v, &v), RIGEL_INVALID_ARGUMENT, "out", "overlaps V", NULL);
  args.reduction.reducer = 9;
  FAILS(rigel_softmax_matvec(handle, &args, &x, &z, &v, &out), RIGEL_INVALID_ARGUMENT,
        "args.reduction.reducer is 9, expected 0", NULL, NULL);
}

/* Two groups of points, in f32 with labels of i64 and in f64 with labels of i32. */
static void kmeans(rigel_handle* handle, rigel_type type) {
  static const double points[] = {0, 0, 1, 0, 0, 1, 10, 10, 11, 10, 10, 11};
  const int floats = type == RIGEL_F32;
  void *const x_data = allocate(96), *const c_data = allocate(32), *const l_data = allocate(48);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, type, 6, 2), centres = RIGEL_ROW_MAJOR(c_data, type, 2, 2),
                     labels = RIGEL_ROW_MAJOR(l_data, floats ? RIGEL_I64 : RIGEL_I32, 6, 1),
                     seven = RIGEL_ROW_MAJOR(allocate(128), type, 7, 2);
  rigel_kmeans_args args;
  rigel_kmeans_result result;
  size_t bytes = 0;
  int i, first;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  memset(&result, 0, sizeof result);
  result.size = sizeof result;
  for (i = 0; i < 12; ++i)
    if (floats)
      ((float*)x_data)[i] = (float)points[i];
    else
      ((double*)x_data)[i] = points[i];
  args.seed = 3;
  OK(rigel_kmeans_workspace_size(handle, &args, &x, &centres, &labels, &bytes));
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes;
  OK(rigel_kmeans(handle, &args, &x, &centres, &labels, &result));
  CHECK(result.converged == 1 && result.iterations >= 1 && fabs(result.inertia - 8. / 3) < 1e-5);
  first = floats ? (int)((int64_t*)l_data)[0] : ((int32_t*)l_data)[0];
  CHECK(first == 0 || first == 1);
  for (i = 0; i < 6; ++i)
    CHECK((floats ? (int)((int64_t*)l_data)[i] : ((int32_t*)l_data)[i]) == (i < 3 ? first : 1 - first));
  for (i = 0; i < 2; ++i) {
    const double near = floats ? ((float*)c_data)[2 * first + i] : ((double*)c_data)[2 * first + i],
                 far = floats ? ((float*)c_data)[2 - 2 * first + i] : ((double*)c_data)[2 - 2 * first + i];
    CHECK(fabs(near - 1. / 3) < 1e-6 && fabs(far - 31. / 3) < 1e-5);
  }
  args.from_centres = 1;
  args.iterations = 1;
  OK(rigel_kmeans(handle, &args, &x, &centres, &labels, NULL));

  FAILS(rigel_kmeans(handle, &args, &x, &seven, &labels, NULL), RIGEL_INVALID_ARGUMENT, "k is 7, expected 1 to 6", NULL,
        NULL);
  FAILS(rigel_kmeans(handle, &args, &x, &centres, &x, NULL), RIGEL_INVALID_ARGUMENT, "labels is 6x2", "single column", NULL);
  FAILS(rigel_kmeans(handle, &args, &labels, &centres, &labels, NULL), RIGEL_INVALID_ARGUMENT, "X.type is", "f32 or f64",
        NULL);
  /* Its bytes, of which many threads need many, may reach X, too, which is then named first. */
  args.options.workspace = c_data;
  FAILS(rigel_kmeans(handle, &args, &x, &centres, &labels, NULL), RIGEL_INVALID_ARGUMENT, "the workspace", "overlaps", NULL);
  args.options.workspace = NULL;
  args.options.workspace_bytes = 0;
  args.tolerance = 2;
  FAILS(rigel_kmeans(handle, &args, &x, &centres, &labels, NULL), RIGEL_INVALID_ARGUMENT, "options.tolerance is 2", NULL,
        NULL);
  args.tolerance = 0;
  result.size = 4;
  FAILS(rigel_kmeans(handle, &args, &x, &centres, &labels, &result), RIGEL_INVALID_ARGUMENT, "result.size is 4", NULL, NULL);
  FAILS(rigel_kmeans_workspace_size(handle, &args, &x, &centres, &labels, NULL), RIGEL_INVALID_ARGUMENT, "bytes is NULL",
        NULL, NULL);
}

/* Points 0, 1, 4 to 0.5, 2 with weights: the marginals of the plan, and where it moves points to. */
static void sinkhorn(rigel_handle* handle, int alternating) {
  static const double points[] = {0, 1, 4}, others[] = {0.5, 2}, from[] = {1, 2, 1}, to[] = {3, 5};
  double *const x_data = allocate(24), *const z_data = allocate(16), *const a_data = allocate(24),
                *const b_data = allocate(16), *const f_data = allocate(24), *const g_data = allocate(16),
                *const out_data = allocate(24);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, 3, 1), z = RIGEL_ROW_MAJOR(z_data, RIGEL_F64, 2, 1),
                     a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, 3, 1), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F64, 2, 1),
                     f = RIGEL_ROW_MAJOR(f_data, RIGEL_F64, 3, 1), g = RIGEL_ROW_MAJOR(g_data, RIGEL_F64, 2, 1),
                     out = RIGEL_ROW_MAJOR(out_data, RIGEL_F64, 3, 1), one = RIGEL_ROW_MAJOR(f_data, RIGEL_F64, 1, 1);
  rigel_sinkhorn_args args;
  rigel_sinkhorn_result result;
  size_t bytes = 0;
  double plan[3][2], value = 0;
  int m, n;
  memset(&args, 0, sizeof args);
  memset(&result, 0, sizeof result);
  args.size = sizeof args;
  result.size = sizeof result;
  args.metric = "squared_euclidean";
  args.epsilon = 0.5;
  args.tolerance = 1e-12;
  args.alternating = alternating;
  memcpy(x_data, points, sizeof points);
  memcpy(z_data, others, sizeof others);
  memcpy(a_data, from, sizeof from);
  memcpy(b_data, to, sizeof to);
  OK(rigel_sinkhorn_workspace_size(handle, &args, &x, &z, &a, &b, &f, &g, &bytes));
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes;
  OK(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &g, &result));
  CHECK(result.converged == 1 && result.error <= 1e-12 && result.iterations > 1);
  for (m = 0; m < 3; ++m)
    for (n = 0; n < 2; ++n)
      plan[m][n] =
          from[m] / 4 * to[n] / 8 * exp((f_data[m] + g_data[n] - (points[m] - others[n]) * (points[m] - others[n])) / 0.5);
  for (m = 0; m < 3; ++m) CHECK(fabs(plan[m][0] + plan[m][1] - from[m] / 4) < 2e-12);
  for (n = 0; n < 2; ++n) CHECK(fabs(plan[0][n] + plan[1][n] + plan[2][n] - to[n] / 8) < 2e-12);
  for (m = 0; m < 3; ++m) value += from[m] / 4 * f_data[m];
  for (n = 0; n < 2; ++n) value += to[n] / 8 * g_data[n];
  CHECK(fabs(value - result.value) < 1e-14);
  OK(rigel_sinkhorn_barycentre_workspace_size(handle, &args, &x, &z, &b, &g, &z, &out, &bytes));
  CHECK(bytes <= args.options.workspace_bytes);
  OK(rigel_sinkhorn_barycentre(handle, &args, &x, &z, &b, &g, &z, &out));
  OK(rigel_synchronize(handle));
  for (m = 0; m < 3; ++m)
    CHECK(fabs(out_data[m] - (plan[m][0] * others[0] + plan[m][1] * others[1]) / (plan[m][0] + plan[m][1])) < 1e-12);

  args.options.workspace = NULL;
  args.options.workspace_bytes = 0;
  FAILS(rigel_sinkhorn_barycentre(handle, &args, &x, &z, &b, &g, &z, &g), RIGEL_INVALID_ARGUMENT, "out", "overlaps g", NULL);
  f_data[0] = -7;
  args.epsilon = 0;
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &g, NULL), RIGEL_INVALID_ARGUMENT, "options.epsilon is 0", NULL,
        NULL);
  args.epsilon = 1;
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &b, &b, &f, &g, NULL), RIGEL_INVALID_ARGUMENT, "rigel_sinkhorn: a is 2x1",
        "expected 3 numbers", NULL);
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &b, NULL), RIGEL_INVALID_ARGUMENT, "g", "overlaps b", NULL);
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &a, &g, NULL), RIGEL_INVALID_ARGUMENT, "f", "overlaps a", NULL);
  args.metric = "kl_divergence";
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &g, NULL), RIGEL_INVALID_ARGUMENT,
        "'kl_divergence' is not symmetric", NULL, NULL);
  args.metric = "seuclidean";
  args.metric_matrix = &one;
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &g, NULL), RIGEL_INVALID_ARGUMENT, "f",
        "overlaps args.metric_matrix", NULL);
  args.metric_matrix = NULL;
  args.metric = "nothing";
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &g, NULL), RIGEL_NOT_FOUND, "'nothing' is no metric", NULL, NULL);
  args.metric = "euclidean";
  args.options.kernel = "reference";
  FAILS(rigel_sinkhorn(handle, &args, &x, &z, &a, &b, &f, &g, NULL), RIGEL_INVALID_ARGUMENT,
        "args.options.kernel is not NULL", NULL, NULL);
  CHECK(f_data[0] == -7);
}

/* ---- kernel_solve ---- */

enum { points_count = 60, sides = 2 };

static int32_t count_steps(int32_t iteration, double residual, void* user) {
  int* const steps = user;
  ++*steps;
  CHECK(iteration == *steps && residual >= 0);
  return iteration < 3;
}

/* Against rigel_cholesky_solve() of the matrix that rigel_kernel_matrix() stores. */
static void kernel_solve(rigel_handle* handle) {
  double *const x_data = allocate(points_count * 16), *const y_data = allocate(points_count * sides * 8),
                *const alpha_data = allocate(points_count * sides * 8),
                *const k_data = allocate(points_count * points_count * 8),
                *const expected = allocate(points_count * sides * 8);
  float* const x_floats = allocate(points_count * 8);
  const rigel_matrix x = RIGEL_ROW_MAJOR(x_data, RIGEL_F64, points_count, 2),
                     xf = RIGEL_ROW_MAJOR(x_floats, RIGEL_F32, points_count, 2),
                     y = RIGEL_ROW_MAJOR(y_data, RIGEL_F64, points_count, sides),
                     alpha = RIGEL_ROW_MAJOR(alpha_data, RIGEL_F64, points_count, sides),
                     k = RIGEL_ROW_MAJOR(k_data, RIGEL_F64, points_count, points_count),
                     solution = RIGEL_ROW_MAJOR(expected, RIGEL_F64, points_count, sides),
                     few = RIGEL_ROW_MAJOR(alpha_data, RIGEL_F64, points_count - 1, sides);
  rigel_kernel_solve_args args;
  rigel_kernel_solve_result result;
  rigel_kernel_matrix_args of_matrix;
  rigel_solve_args of_cholesky;
  size_t bytes = 0;
  int i, steps = 0;
  memset(&args, 0, sizeof args);
  memset(&result, 0, sizeof result);
  memset(&of_matrix, 0, sizeof of_matrix);
  memset(&of_cholesky, 0, sizeof of_cholesky);
  args.size = sizeof args;
  result.size = sizeof result;
  of_matrix.size = sizeof of_matrix;
  of_cholesky.size = sizeof of_cholesky;
  for (i = 0; i < 2 * points_count; ++i) x_data[i] = x_floats[i] = (float)(4 * next_random());
  for (i = 0; i < sides * points_count; ++i) y_data[i] = next_random() - 0.5;
  args.kernel = of_matrix.kernel = "gaussian";
  args.metric = of_matrix.metric = "euclidean";
  args.hyperparameters = of_matrix.hyperparameters = &bandwidth;
  args.hyperparameters_count = of_matrix.hyperparameters_count = 1;
  args.regularisation = of_matrix.regularisation = 0.5;
  args.tolerance = 1e-12;
  OK(rigel_kernel_matrix(handle, &of_matrix, &x, NULL, &k));
  OK(rigel_cholesky_solve(handle, &of_cholesky, &k, &y, &solution, NULL));
  OK(rigel_synchronize(handle));
  args.rank = 20;
  OK(rigel_kernel_solve_workspace_size(handle, &args, &x, &y, &alpha, &bytes));
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes;
  OK(rigel_kernel_solve(handle, &args, &x, &y, &alpha, &result));
  CHECK(result.converged == 1 && result.residual <= 1e-12 && result.rank > 0 && result.rank <= 20);
  /* |y| < 4, and the least eigenvalue is 0.5 at least. */
  for (i = 0; i < sides * points_count; ++i) CHECK(fabs(alpha_data[i] - expected[i]) <= 1e-11);

  args.options.workspace = NULL;
  args.options.workspace_bytes = 0;
  args.rank = -1;
  args.progress = count_steps;
  args.user = &steps;
  OK(rigel_kernel_solve(handle, &args, &x, &y, &alpha, &result));
  CHECK(result.converged == 0 && result.iterations == 3 && result.rank == 0 && steps == 3);
  args.progress = NULL;
  args.rank = 0;
  args.tolerance = 0;                                              /* 1e-6 */
  OK(rigel_kernel_solve(handle, &args, &xf, &y, &alpha, &result)); /* kernels of floats */
  CHECK(result.converged == 1 && result.residual <= 1e-6);
  for (i = 0; i < sides * points_count; ++i) CHECK(fabs(alpha_data[i] - expected[i]) <= 1e-3);

  alpha_data[0] = -7;
  FAILS(rigel_kernel_solve(handle, &args, &x, &y, &few, NULL), RIGEL_INVALID_ARGUMENT, "alpha is 59x2, expected 60 rows",
        NULL, NULL);
  FAILS(rigel_kernel_solve(handle, &args, &x, &y, &y, NULL), RIGEL_INVALID_ARGUMENT, "alpha", "overlaps y", NULL);
  args.rank = -2;
  FAILS(rigel_kernel_solve(handle, &args, &x, &y, &alpha, NULL), RIGEL_INVALID_ARGUMENT, "options.rank is -2", NULL, NULL);
  args.rank = 0;
  args.metric = "inner_product";
  FAILS(rigel_kernel_solve(handle, &args, &x, &y, &alpha, NULL), RIGEL_INVALID_ARGUMENT,
        "does not go with kernel 'gaussian'", NULL, NULL);
  args.metric = "euclidean";
  args.kernel = NULL;
  FAILS(rigel_kernel_solve(handle, &args, &x, &y, &alpha, NULL), RIGEL_NOT_FOUND, "kernel", NULL, NULL);
  args.kernel = "gaussian";
  args.hyperparameters_count = 0;
  FAILS(rigel_kernel_solve(handle, &args, &x, &y, &alpha, NULL), RIGEL_INVALID_ARGUMENT, "no 'bandwidth'", NULL, NULL);
  CHECK(alpha_data[0] == -7);
}

void test_iterations(rigel_handle* handle) {
  matvecs(handle);
  kmeans(handle, RIGEL_F32);
  kmeans(handle, RIGEL_F64);
  sinkhorn(handle, 0);
  sinkhorn(handle, 1);
  kernel_solve(handle);
}
