/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Gradients with functors from text: results worked out by hand, hyperparameters by name, and what is refused. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rigel_derivative_args l1_args(const rigel_parameter* w) {
  rigel_derivative_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.name = "c_sign";
  args.element = RIGEL_F64;
  args.multiply = "d == b ? 0 : w * a * copysign(1, d - b)";
  args.parameters = w;
  args.parameters_count = 1;
  return args;
}

static void refusals(void) {
  const rigel_parameter w = {"w", 1};
  rigel_derivative_args args = l1_args(&w);
  rigel_derivative* derivative = (rigel_derivative*)&args;
  FAILS(rigel_derivative_create(&args, NULL), RIGEL_INVALID_ARGUMENT, "rigel_derivative_create: derivative is NULL", NULL, NULL);
  FAILS(rigel_derivative_create(NULL, &derivative), RIGEL_INVALID_ARGUMENT, "rigel_derivative_create: args is NULL", NULL, NULL);
  CHECK(derivative == NULL);
  args.size = 8;
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT, "args.size is 8", NULL, NULL);
  args = l1_args(&w);
  args.reserved[3] = 1;
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  args = l1_args(&w);
  args.element = RIGEL_U8;
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT, "the element type is u8", "f32, f64, i32", NULL);
  args = l1_args(NULL);
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT, "parameters_count is 1", NULL, NULL);
  args = l1_args(&w);
  args.multiply = "w * (d - k)";
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT,
        "rigel_derivative_create: multiply, line 1, column 10: 'k' is not known here", "\n  w * (d - k)\n           ^", NULL);
  args.multiply = NULL;
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT, "multiply", NULL, NULL);
  args = l1_args(&w);
  args.accumulate = "max(x, c * v)";
  FAILS(rigel_derivative_create(&args, &derivative), RIGEL_INVALID_ARGUMENT, "identity, line 1, column 1", NULL, NULL);
  CHECK(derivative == NULL);
  FAILS(rigel_derivative_set(NULL, "w", 1), RIGEL_INVALID_ARGUMENT, "derivative is NULL", NULL, NULL);
  rigel_derivative_destroy(NULL);
}

static int are(const double* values, const double* expected, double times) {
  int i;
  for (i = 0; i < 8; ++i)
    if (values[i] != times * expected[i]) return 0;
  return 1;
}

void test_derivatives(rigel_handle* handle) {
  static const double a_values[] = {1, 10, 100, 1000}, b_values[] = {1, 3, 0, 2}, c_values[] = {1, 2, 3, -1}, d_values[] = {2, 4, 2, 1};
  /* The signs of d(n,m) - b(n,k): + - and + +; + 0 and + -. */
  static const double expected[] = {1 - 200, 10 + 2000, 1, 10 - 2000, 3 + 100, 30 - 1000, 3, 30 + 1000};
  const rigel_parameter w = {"w", 1}, twice = {"w", 2}, q = {"q", 1};
  rigel_derivative_args created = l1_args(&w);
  rigel_derivative* derivative = NULL;
  rigel_contract_gradient_args args;
  double* const data = allocate(16 * sizeof(double));
  double* const out_data = allocate(10 * sizeof(double));
  float* const floats = allocate(4 * sizeof(float));
  const rigel_matrix a = RIGEL_ROW_MAJOR(data, RIGEL_F64, 2, 2), b = RIGEL_ROW_MAJOR(data + 4, RIGEL_F64, 2, 2),
                     c = RIGEL_ROW_MAJOR(data + 8, RIGEL_F64, 2, 2), d = RIGEL_ROW_MAJOR(data + 12, RIGEL_F64, 2, 2),
                     out = RIGEL_ROW_MAJOR(out_data, RIGEL_F64, 2, 2), of_floats = RIGEL_ROW_MAJOR(floats, RIGEL_F32, 2, 2);
  size_t bytes = 1;
  char* json = NULL;
  rigel_code code;
  refusals();
  memcpy(data, a_values, sizeof a_values);
  memcpy(data + 4, b_values, sizeof b_values);
  memcpy(data + 8, c_values, sizeof c_values);
  memcpy(data + 12, d_values, sizeof d_values);
  OK(rigel_derivative_create(&created, &derivative));
  if (!derivative) return;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
#define CALL(out) rigel_contract_gradient(handle, &args, &a, &b, &c, &d, &out)
  FAILS(CALL(out), RIGEL_INVALID_ARGUMENT, "rigel_contract_gradient: args.derivative is NULL", NULL, NULL);
  args.derivative = derivative;
  code = rigel_derivative_compile(derivative, handle);
  if (code != RIGEL_OK) {
    CHECK(code == RIGEL_UNSUPPORTED);
    CHECK(!tests_host() || !getenv("RIGEL_TEST_RUNTIME")); /* where it is built, it is there */
    printf("skipped: gradients from text: %s\n", rigel_last_error());
    FAILS(CALL(out), RIGEL_UNSUPPORTED, "derivative 'c_sign': ", NULL, NULL);
    rigel_derivative_destroy(derivative);
    return;
  }
  OK(CALL(out));
  OK(rigel_synchronize(handle));
  CHECK(are(out_data, expected, 1));
  args.parameters = &twice;
  args.parameters_count = 1;
  args.accumulate = 1;
  OK(CALL(out));
  OK(rigel_synchronize(handle));
  CHECK(are(out_data, expected, 3));
  args.parameters_count = 0;
  args.accumulate = 0;
  OK(rigel_derivative_set(derivative, "w", -1));
  OK(rigel_contract_gradient_workspace_size(handle, &args, &a, &b, &c, &d, &out, &bytes));
  args.options.workspace = bytes > 0 ? allocate(bytes) : NULL;
  args.options.workspace_bytes = bytes;
  OK(CALL(out));
  OK(rigel_synchronize(handle));
  CHECK(are(out_data, expected, -1));
  /* The second o begins one element later. */
  args.output_stride = 5;
  OK(CALL(out));
  OK(rigel_synchronize(handle));
  CHECK(out_data[3] == -expected[3] && out_data[4] == -expected[4] && out_data[5] == -expected[4] && out_data[8] == -expected[7]);
  args.output_stride = 0;
  OK(rigel_explain_contract_gradient(handle, &args, &a, &b, &c, &d, &out, &json));
  CHECK(json && strstr(json, ".c_sign.f64") && strstr(json, "\"chosen\": true"));
  rigel_free(json);

  FAILS(rigel_derivative_set(derivative, "q", 1), RIGEL_NOT_FOUND,
        "rigel_derivative_set: derivative 'c_sign' has no hyperparameter 'q', expected w", NULL, NULL);
  args.parameters = &q;
  args.parameters_count = 1;
  FAILS(CALL(out), RIGEL_NOT_FOUND, "derivative 'c_sign' has no hyperparameter 'q'", NULL, NULL);
  args.parameters_count = 0;
  args.accumulate = 2;
  FAILS(CALL(out), RIGEL_INVALID_ARGUMENT, "args.accumulate is 2", NULL, NULL);
  args.accumulate = 0;
  FAILS(CALL(of_floats), RIGEL_INVALID_ARGUMENT, "Out holds elements of type f32, expected f64, that of the accumulators of the derivative",
        NULL, NULL);
  FAILS(rigel_contract_gradient(handle, &args, &a, &b, &c, &of_floats, &out), RIGEL_INVALID_ARGUMENT,
        "D holds elements of type f32, expected f64, that of the derivative 'c_sign'", NULL, NULL);
  FAILS(CALL(a), RIGEL_INVALID_ARGUMENT, "overlaps", NULL, NULL);
  FAILS(rigel_derivative_compile(NULL, handle), RIGEL_INVALID_ARGUMENT, "derivative is NULL", NULL, NULL);
  CHECK(out_data[0] == -expected[0]);
#undef CALL
  rigel_derivative_destroy(derivative);
}
