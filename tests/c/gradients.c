/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Gradients of semiring products against values worked out by hand; of kernel_matvec, softmax_matvec and logsumexp against torch's. */
#include "support.h"

#include <math.h>
#include <string.h>

static rigel_matrix doubles(const double* values, int rows, int columns) {
  const rigel_matrix empty = RIGEL_ROW_MAJOR(NULL, RIGEL_F64, rows, columns);
  rigel_matrix m = empty;
  m.data = allocate((size_t)(rows * columns) * sizeof(double));
  if (values) memcpy(m.data, values, (size_t)(rows * columns) * sizeof(double));
  return m;
}
static int are(const rigel_matrix* m, const double* expected, double error) {
  int i;
  for (i = 0; i < m->rows * m->columns; ++i)
    if (!(fabs(((const double*)m->data)[i] - expected[i]) <= error)) return 0;
  return 1;
}

/* ---- semiring products ---- */

static rigel_contract_backward_args backward_args(const char* semiring) {
  rigel_contract_backward_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.semiring = semiring;
  return args;
}

static const double a_values[] = {1, 3, 0, 2}, b_values[] = {2, 1, 0, 4}, dc_values[] = {1, 10, 100, 1000};
static const rigel_parameter three[] = {{"p", 3}};

static const struct {
  const char* semiring;
  const rigel_parameter* parameters;
  int count;
  double da[4], db[4];
} products[] = {
    {"plus_times", NULL, 0, {12, 40, 1200, 4000}, {1, 10, 203, 2030}},
    {"min_plus", NULL, 0, {11, 0, 1100, 0}, {101, 1010, 0, 0}}, /* 3 and 3, 2 and 7; 2 and 2, 1 and 6: the smallest k of a tie */
    {"max_plus", NULL, 0, {1, 10, 100, 1000}, {101, 0, 0, 1010}},
    {"max_min", NULL, 0, {1, 10, 100, 1000}, {0, 0, 0, 0}},   /* 1 and 0, 1 and 3; 0 and 0, 0 and 2 */
    {"min_max", NULL, 0, {10, 0, 0, 0}, {101, 1000, 0, 0}},   /* 2 and 3, 1 and 4; 2 and 2, 1 and 4: A has what is equal in both */
    {"l1", NULL, 0, {-1, -9, -1100, -900}, {101, 1000, -101, 1010}},
    {"l2_squared", NULL, 0, {-2, -14, -2400, -3600}, {402, 2000, -406, 4020}},
    {"lp", three, 1, {-3, 3 * (9 - 10), -3 * (400 + 1000), 3 * (400 - 4000)}, {3 * (1 + 400), 3000, -3 * (9 + 400), 3 * (10 + 4000)}},
};

static void hand_values(rigel_handle* handle) {
  const rigel_matrix a = doubles(a_values, 2, 2), b = doubles(b_values, 2, 2), dc = doubles(dc_values, 2, 2),
                     da = doubles(NULL, 2, 2), db = doubles(NULL, 2, 2);
  size_t one, bytes = 1;
  int i, times;
  for (one = 0; one < sizeof products / sizeof *products; ++one) {
    rigel_contract_backward_args args = backward_args(products[one].semiring);
    double da_values[4], db_values[4];
    args.parameters = products[one].parameters;
    args.parameters_count = products[one].count;
    OK(rigel_contract_backward_workspace_size(handle, &args, &a, &b, NULL, &dc, &da, &db, &bytes));
    args.options.workspace = bytes > 0 ? allocate(bytes) : NULL;
    args.options.workspace_bytes = bytes;
    for (times = 1; times <= 2; ++times) {
      args.accumulate = times - 1;
      OK(rigel_contract_backward(handle, &args, &a, &b, NULL, &dc, &da, &db));
      OK(rigel_synchronize(handle));
      for (i = 0; i < 4; ++i) {
        da_values[i] = times * products[one].da[i];
        db_values[i] = times * products[one].db[i];
      }
      /* All numbers but powers are exact. */
      check(are(&da, da_values, products[one].count * 1e-9), "dA", products[one].semiring, __FILE__, __LINE__);
      check(are(&db, db_values, products[one].count * 1e-9), "dB", products[one].semiring, __FILE__, __LINE__);
    }
  }
}

/* exp(a + b - c) are 1/4 and 3/4; no path has the gradient 0. */
static void exponentials(rigel_handle* handle) {
  const double a_row[] = {0, log(3), -INFINITY, -INFINITY}, b_column[] = {0, 0}, upstream[] = {8, 5}, expected_a[] = {2, 6, 0, 0},
               expected_b[] = {2, 6};
  const rigel_matrix a = doubles(a_row, 2, 2), b = doubles(b_column, 2, 1), c = doubles(NULL, 2, 1), dc = doubles(upstream, 2, 1),
                     da = doubles(NULL, 2, 2), db = doubles(NULL, 2, 1);
  rigel_contract_args contract;
  const rigel_contract_backward_args args = backward_args("log_plus");
  memset(&contract, 0, sizeof contract);
  contract.size = sizeof contract;
  contract.semiring = "log_plus";
  OK(rigel_contract(handle, &contract, &a, &b, &c));
  OK(rigel_contract_backward(handle, &args, &a, &b, &c, &dc, &da, &db));
  OK(rigel_synchronize(handle));
  CHECK(are(&da, expected_a, 1e-14));
  CHECK(are(&db, expected_b, 1e-14));
  FAILS(rigel_contract_backward(handle, &args, &a, &b, NULL, &dc, &da, &db), RIGEL_INVALID_ARGUMENT,
        "rigel_contract_backward: C is NULL, expected the result of log_plus", NULL, NULL);
}

/* Halves, with gradients in f32. */
static void halves(rigel_handle* handle) {
  unsigned short* const numbers = allocate(8 * sizeof(short));
  float* const gradients = allocate(12 * sizeof(float));
  const rigel_matrix a = RIGEL_ROW_MAJOR(numbers, RIGEL_F16, 2, 2), b = RIGEL_ROW_MAJOR(numbers + 4, RIGEL_F16, 2, 2),
                     dc = RIGEL_ROW_MAJOR(gradients, RIGEL_F32, 2, 2), da = RIGEL_ROW_MAJOR(gradients + 4, RIGEL_F32, 2, 2),
                     db = RIGEL_ROW_MAJOR(gradients + 8, RIGEL_F32, 2, 2);
  static const unsigned short bits[8] = {0x3c00, 0x4200, 0, 0x4000, 0x4000, 0x3c00, 0, 0x4400}; /* a_values, b_values */
  int one, i;
  memcpy(numbers, bits, sizeof bits);
  for (i = 0; i < 4; ++i) gradients[i] = (float)dc_values[i];
  for (one = 0; one < 7; ++one) {
    const rigel_contract_backward_args args = backward_args(products[one].semiring);
    OK(rigel_contract_backward(handle, &args, &a, &b, NULL, &dc, &da, &db));
    OK(rigel_synchronize(handle));
    for (i = 0; i < 4; ++i) CHECK(gradients[4 + i] == products[one].da[i] && gradients[8 + i] == products[one].db[i]);
  }
}

static void refused_products(rigel_handle* handle) {
  const rigel_matrix a = doubles(a_values, 2, 2), b = doubles(b_values, 2, 2), dc = doubles(dc_values, 2, 2),
                     da = doubles(NULL, 2, 2), db = doubles(NULL, 2, 2), wide = doubles(NULL, 2, 3);
  rigel_contract_backward_args args = backward_args("max_times");
  rigel_matrix integers = a;
#define CALL(a, dc, da) rigel_contract_backward(handle, &args, a, &b, NULL, dc, da, &db)
  FAILS(CALL(&a, &dc, &da), RIGEL_UNSUPPORTED, "semiring 'max_times' has no gradient here, expected one of plus_times, log_plus", NULL, NULL);
  args = backward_args("best");
  FAILS(CALL(&a, &dc, &da), RIGEL_NOT_FOUND, "'best' is no semiring", NULL, NULL);
  args = backward_args("min_plus");
  integers.type = RIGEL_I64;
  FAILS(rigel_contract_backward(handle, &args, &integers, &integers, NULL, &dc, &da, &db), RIGEL_UNSUPPORTED,
        "A is of i64, expected f16, bf16, f32 or f64", NULL, NULL);
  FAILS(CALL(&a, &wide, &da), RIGEL_INVALID_ARGUMENT, "dC is 2x3, expected 2 columns to match B 2x2", NULL, NULL);
  FAILS(CALL(&a, &dc, &a), RIGEL_INVALID_ARGUMENT, "dA 2x2 overlaps A 2x2", NULL, NULL);
  FAILS(CALL(&a, NULL, &da), RIGEL_INVALID_ARGUMENT, "dC is NULL", NULL, NULL);
  args.options.kernel = "host";
  FAILS(CALL(&a, &dc, &da), RIGEL_INVALID_ARGUMENT, "args.options.kernel is not NULL", NULL, NULL);
#undef CALL
}

/* ---- kernel matrices and softmaxes ---- */

static rigel_matvec_gradient_args matvec_args(const char* metric) {
  rigel_matvec_gradient_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.metric = metric;
  return args;
}

/* torch 2.15, float64. Sums are within some dozens of roundings of terms up to 3. */
static const double error = 1e-14;
static const double x_values[] = {0.5, -1, 2, 0.25, -0.75, 1.5}, z_values[] = {1, 0.5, -0.25, -1.25}, v_values[] = {1, -2, 0.5, 3},
                    g_values[] = {1, 0.5, -1, 2, 0.25, -0.5}, of_columns[] = {0.25, -0.5}, of_sums[] = {1, -2, 0.5};

static void torch_values(rigel_handle* handle) {
  static const rigel_parameter bandwidth = {"bandwidth", 1.5};
  /* (softmax(-(x - z)^2/2 + c) @ v * g).sum() */
  static const double softmax_x[] = {-0.6195388628726578,  -0.8673544080217208, -0.2614362023464807,
                                     -0.36601068328507236, 0.20666669512031993, 0.28933337316844865},
                      softmax_z[] = {-0.2506667898965688, 0.9610672320127412, 0.9249751599953874, -0.01703551387439667},
                      softmax_v[] = {-0.2932924714268623, 1.7197395628921899, 0.5432924714268624, 0.2802604371078099},
                      softmax_c[] = {-0.539446696079054, 0.5394466960790544}, softmax_scale[] = {-0.2421273679375464};
  /* (logsumexp(-(x - z)^2/2 + c) * [1, -2, 0.5]).sum() */
  static const double sums_x[] = {-0.18342268998076733, 0.5432082340269258, 2.0508308833566464,
                                  -0.42883676330069426, 0.832783318037732,  -0.5591033547471755},
                      sums_z[] = {-3.0018628625751997, 0.27616770573577687, 0.3016713511615887, 0.16856417828516723},
                      sums_c[] = {-1.0398467908691105, 0.5398467908691109}, sums_scale[] = {1.25361159413242};
  /* (exp(-(x - z)^2/(2*1.5^2)) @ v * g).sum() */
  static const double kernel_x[] = {-0.580216483888927,  -0.19340549462964232, 0.671858953931592,
                                    -1.1607277676373764, 0.34033938710362177,  0.07087564876734115},
                      kernel_z[] = {-2.149052760159321, 0.6639637733770429, 1.7170709030130342, 0.6192938401226347},
                      kernel_v[] = {-0.1145790379923939, 1.6635416278283697, 0.7174641278573199, 0.7408835588688363},
                      kernel_h[] = {1.475042498610025};
  const rigel_matrix x = doubles(x_values, 3, 2), z = doubles(z_values, 2, 2), v = doubles(v_values, 2, 2), g = doubles(g_values, 3, 2),
                     columns = doubles(of_columns, 2, 1), sums = doubles(of_sums, 3, 1), dx = doubles(NULL, 3, 2),
                     dz = doubles(NULL, 2, 2), dv = doubles(NULL, 2, 2), dcolumns = doubles(NULL, 2, 1);
  rigel_hyperparameter_gradient wanted;
  rigel_matvec_gradient_args args = matvec_args("squared_euclidean");
  size_t bytes = 0;
  wanted.name = "scale";
  wanted.matrix = doubles(NULL, 1, 1);
  args.scale = -0.5;
  args.of_columns = &columns;
  args.dof_columns = &dcolumns;
  args.gradients = &wanted;
  args.gradients_count = 1;
  args.block_rows = 2;
  OK(rigel_softmax_matvec_gradient_workspace_size(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv, &bytes));
  CHECK(bytes > 0);
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes;
  OK(rigel_softmax_matvec_gradient(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv));
  OK(rigel_synchronize(handle));
  CHECK(are(&dx, softmax_x, error) && are(&dz, softmax_z, error) && are(&dv, softmax_v, error));
  CHECK(are(&dcolumns, softmax_c, error) && are(&wanted.matrix, softmax_scale, error));
  args.options.workspace = NULL;
  args.options.workspace_bytes = 0;
  OK(rigel_logsumexp_gradient_workspace_size(handle, &args, &x, &z, &sums, &dx, &dz, &bytes));
  OK(rigel_logsumexp_gradient(handle, &args, &x, &z, &sums, &dx, &dz));
  OK(rigel_synchronize(handle));
  CHECK(are(&dx, sums_x, error) && are(&dz, sums_z, error));
  CHECK(are(&dcolumns, sums_c, error) && are(&wanted.matrix, sums_scale, error));
  FAILS(rigel_kernel_matvec_gradient(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv), RIGEL_INVALID_ARGUMENT,
        "rigel_kernel_matvec_gradient: args.scale, of_rows, of_columns", NULL, NULL);
  args = matvec_args("euclidean");
  args.kernel = "gaussian";
  args.hyperparameters = &bandwidth;
  args.hyperparameters_count = 1;
  wanted.name = "bandwidth";
  args.gradients = &wanted;
  args.gradients_count = 1;
  OK(rigel_kernel_matvec_gradient_workspace_size(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv, &bytes));
  OK(rigel_kernel_matvec_gradient(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv));
  OK(rigel_synchronize(handle));
  CHECK(are(&dx, kernel_x, error) && are(&dz, kernel_z, error) && are(&dv, kernel_v, error) && are(&wanted.matrix, kernel_h, error));
  args.accumulate = 1;
  OK(rigel_kernel_matvec_gradient(handle, &args, &x, &z, &v, &g, &dx, NULL, NULL));
  OK(rigel_synchronize(handle));
  CHECK(fabs(*(double*)wanted.matrix.data - 2 * kernel_h[0]) <= 2 * error && are(&dz, kernel_z, error));
  FAILS(rigel_kernel_matvec_gradient(handle, &args, &x, &z, &g, &g, &dx, &dz, &dv), RIGEL_INVALID_ARGUMENT,
        "rigel_kernel_matvec_gradient: V is 3x2, expected 2x2 (N x D)", NULL, NULL);
  FAILS(rigel_softmax_matvec_gradient(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv), RIGEL_INVALID_ARGUMENT,
        "rigel_softmax_matvec_gradient: args.kernel or args.hyperparameters is set", NULL, NULL);
  args = matvec_args("chebyshev");
  FAILS(rigel_softmax_matvec_gradient(handle, &args, &x, &z, &v, &g, &dx, &dz, &dv), RIGEL_UNSUPPORTED,
        "metric 'chebyshev' has no gradient here", NULL, NULL);
  wanted.name = "length";
  args = matvec_args("manhattan");
  args.gradients = &wanted;
  args.gradients_count = 1;
  FAILS(rigel_logsumexp_gradient(handle, &args, &x, &z, &sums, &dx, &dz), RIGEL_INVALID_ARGUMENT,
        "args.gradients[0].name is 'length', expected 'scale', once", NULL, NULL);
}

void test_gradients(rigel_handle* handle) {
  hand_values(handle);
  exponentials(handle);
  halves(handle);
  refused_products(handle);
  torch_values(handle);
}
