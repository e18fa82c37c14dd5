/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What is refused: with which code, in which words, and that nothing is written. */
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static float* data;
static rigel_contract_args contract;
static rigel_cdist_args cdist;
static rigel_linear_args linear;
static rigel_closure_args closure;
static rigel_transitive_closure_args reachability;
static rigel_matrix a, b, c;

/* A call of each function that the library takes: every test then changes one thing. */
static void reset(void) {
  const rigel_matrix in = RIGEL_ROW_MAJOR(data, RIGEL_F32, 4, 4), out = RIGEL_ROW_MAJOR(data + 16, RIGEL_F32, 4, 4);
  int i;
  for (i = 0; i < 32; ++i) data[i] = 7;
  a = b = in;
  c = out;
  memset(&contract, 0, sizeof contract);
  contract.size = sizeof contract;
  contract.semiring = "plus_times";
  memset(&cdist, 0, sizeof cdist);
  cdist.size = sizeof cdist;
  cdist.metric = "euclidean";
  memset(&linear, 0, sizeof linear);
  linear.size = sizeof linear;
  memset(&closure, 0, sizeof closure);
  closure.size = sizeof closure;
  closure.semiring = "min_plus";
  memset(&reachability, 0, sizeof reachability);
  reachability.size = sizeof reachability;
}

static rigel_handle* handle;

#define REFUSED(call, code, first, second, third)                  \
  do {                                                             \
    int refused_i, refused_written = 0;                            \
    FAILS(call, code, first, second, third);                       \
    rigel_synchronize(handle);                                     \
    for (refused_i = 0; refused_i < 32; ++refused_i) refused_written += data[refused_i] != 7; \
    CHECK(refused_written == 0);                                   \
    reset();                                                       \
  } while (0)
#define CONTRACT rigel_contract(handle, &contract, &a, &b, &c)
#define CDIST rigel_cdist(handle, &cdist, &a, &b, &c)
#define FORWARD rigel_linear_forward(handle, &linear, &a, &b, NULL, &c, NULL)
#define BACKWARD_WEIGHT rigel_linear_backward_weight(handle, &linear, &a, &b, &c, NULL)
#define BACKWARD_INPUT rigel_linear_backward_input(handle, &linear, &a, &b, &c, NULL)
#define CLOSURE rigel_closure(handle, &closure, &c, NULL, NULL)

static void structs(void) {
  size_t bytes = 0;
  char* json = NULL;
  contract.size -= 8;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "rigel_contract: args.size is", "expected", NULL);
  contract.size = 0;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "args.size is 0", NULL, NULL);
  a.size = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "A.size is 1", NULL, NULL);
  contract.reserved = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "args.reserved", "0", NULL);
  contract.options.reserved[1] = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "options.reserved", NULL, NULL);
  b.reserved = 2;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "B.reserved is 2", NULL, NULL);
  cdist.reserved_flags = 1;
  REFUSED(CDIST, RIGEL_INVALID_ARGUMENT, "rigel_cdist: args.reserved_flags is 1", NULL, NULL);
  cdist.reserved[0] = 1;
  REFUSED(CDIST, RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  closure.reserved[0] = 1;
  REFUSED(CLOSURE, RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  closure.options.precision = RIGEL_PRECISION_TF32;
  REFUSED(CLOSURE, RIGEL_INVALID_ARGUMENT, "args.options.precision is 7", NULL, NULL);
  reachability.reserved[0] = 1;
  REFUSED(rigel_transitive_closure(handle, &reachability, &c), RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  contract.epilogue.steps_count = 1;
  contract.epilogue.steps[0].kind = RIGEL_RELU;
  contract.epilogue.steps[0].reserved = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.steps[0].reserved is 1", NULL, NULL);

  REFUSED(rigel_contract(NULL, &contract, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "rigel_contract: handle is NULL", NULL, NULL);
  REFUSED(rigel_contract(handle, NULL, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "args is NULL", NULL, NULL);
  REFUSED(rigel_contract(handle, &contract, &a, NULL, &c), RIGEL_INVALID_ARGUMENT, "B is NULL", NULL, NULL);
  REFUSED(rigel_contract_workspace_size(handle, &contract, &a, &b, &c, NULL), RIGEL_INVALID_ARGUMENT, "bytes is NULL", NULL, NULL);
  REFUSED(rigel_cdist(handle, &cdist, NULL, &b, &c), RIGEL_INVALID_ARGUMENT, "X is NULL", NULL, NULL);
  REFUSED(rigel_closure(handle, &closure, NULL, NULL, NULL), RIGEL_INVALID_ARGUMENT, "D is NULL", NULL, NULL);
  REFUSED(rigel_transitive_closure(handle, &reachability, NULL), RIGEL_INVALID_ARGUMENT, "D is NULL", NULL, NULL);
  REFUSED(rigel_closure_workspace_size(NULL, &closure, &c, NULL, &bytes), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  REFUSED(rigel_kernels(NULL, NULL), RIGEL_INVALID_ARGUMENT, "json is NULL", NULL, NULL);
  REFUSED(rigel_explain_contract(NULL, &contract, &a, &b, &c, &json), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  REFUSED(rigel_synchronize(NULL), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  REFUSED(rigel_presize(NULL, 1), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  b.data = NULL;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "B 4x4 has no data", NULL, NULL);
  {
    rigel_closure_report report = {0, 0, 0, 0, 0};
    REFUSED(rigel_closure(handle, &closure, &c, NULL, &report), RIGEL_INVALID_ARGUMENT, "report.size is 0", NULL, NULL);
  }
  rigel_destroy(NULL);
  rigel_free(NULL);
}

static void names(void) {
  const rigel_parameter q = {"q", 1}, nameless = {NULL, 1};
  contract.semiring = "plus_time";
  REFUSED(CONTRACT, RIGEL_NOT_FOUND, "rigel_contract: 'plus_time' is no semiring", "plus_times, min_plus", "bit_jaccard");
  contract.semiring = NULL;
  REFUSED(CONTRACT, RIGEL_NOT_FOUND, "NULL is the name of no semiring", "plus_times", NULL);
  contract.semiring = "or_and";
  REFUSED(CONTRACT, RIGEL_UNSUPPORTED, "semiring 'or_and' of f32", "u8 in u8, u32 in u32, u64 in u64", NULL);
  contract.accumulator = RIGEL_F64;
  REFUSED(CONTRACT, RIGEL_UNSUPPORTED, "f32 accumulated in f64", "f32 in f32", NULL);
  contract.accumulator = 12;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "accumulator is 12", "RIGEL_U64", NULL);
  contract.semiring = "lp";
  contract.parameters = &q;
  contract.parameters_count = 1;
  REFUSED(CONTRACT, RIGEL_NOT_FOUND, "semiring 'lp' has no hyperparameter 'q', expected p", NULL, NULL);
  contract.parameters = &q;
  contract.parameters_count = 1;
  REFUSED(CONTRACT, RIGEL_NOT_FOUND, "semiring 'plus_times' has no hyperparameter 'q', expected none", NULL, NULL);
  contract.parameters_count = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "parameters_count is 1", "NULL", NULL);
  contract.parameters = &q;
  contract.parameters_count = -1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "parameters_count is -1", NULL, NULL);
  contract.parameters = &nameless;
  contract.parameters_count = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "parameters[0].name is NULL", NULL, NULL);
  contract.options.kernel = "no_such";
  REFUSED(CONTRACT, RIGEL_NOT_FOUND, "no kernel is named 'no_such'", NULL, NULL);

  cdist.metric = "cosin";
  REFUSED(CDIST, RIGEL_NOT_FOUND, "rigel_cdist: 'cosin' is no metric", "manhattan, euclidean", "bit_jaccard");
  cdist.metric = NULL;
  REFUSED(CDIST, RIGEL_NOT_FOUND, "NULL is the name of no metric", NULL, NULL);
  cdist.metric = "bit_hamming";
  REFUSED(CDIST, RIGEL_UNSUPPORTED, "metric 'bit_hamming' of f32", "u8, u32, u64", NULL);
  cdist.parameters = &q;
  cdist.parameters_count = 1;
  REFUSED(CDIST, RIGEL_NOT_FOUND, "metric 'euclidean' has no parameter 'q', expected none", NULL, NULL);
  {
    const rigel_parameter p = {"p", -1};
    cdist.metric = "minkowski";
    cdist.parameters = &p;
    cdist.parameters_count = 1;
    REFUSED(CDIST, RIGEL_INVALID_ARGUMENT, "minkowski's p is -1", "p > 0", NULL);
  }

  closure.semiring = "plus_times";
  REFUSED(CLOSURE, RIGEL_NOT_FOUND, "rigel_closure: 'plus_times' is no semiring with closures", "min_plus, max_plus", "or_and");
  closure.semiring = "or_and";
  REFUSED(CLOSURE, RIGEL_UNSUPPORTED, "'or_and' of f32", "u8, u32, u64", NULL);
  closure.semiring = "max_plus";
  a.type = RIGEL_I32;
  REFUSED(rigel_closure(handle, &closure, &c, &a, NULL), RIGEL_NOT_FOUND, "'max_plus' is no semiring with predecessors", "min_plus",
          NULL);
  REFUSED(rigel_closure(handle, &closure, &c, &a, NULL), RIGEL_INVALID_ARGUMENT, "P.type is f32, expected i32", NULL, NULL);
}

static void extents(void) {
  size_t bytes = 0;
  b.rows = 3;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "rigel_contract: B", "3x4", "4x4");
  c.columns = 2;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "C", "4x2", NULL);
  a.batches = 0;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "A.batches is 0, expected at least 1", NULL, NULL);
  a.rows = -1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "A.rows is -1, expected at least 0", NULL, NULL);
  c.row_stride = -4;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "C.row_stride is -4, expected at least 0", NULL, NULL);
  a.row_stride = INT64_MAX / 2;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "A of 1 x 4 x 4 elements spans more than 2^63 bytes", NULL, NULL);
  a.data = (char*)data + 2;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "A.data is not aligned to its elements of 4 bytes", NULL, NULL);
  a.type = 0;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "A.type is 0, expected 1 (RIGEL_F16) to 11 (RIGEL_U64)", NULL, NULL);
  b.type = RIGEL_I32;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "B is 4x4 of i32, expected f32 as A", NULL, NULL);
  c.data = data + 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "C", "A", NULL);
  c.type = RIGEL_I32;
  REFUSED(CONTRACT, RIGEL_UNSUPPORTED, "C", "i32", "f16, bf16, f32 or f64");
  b.columns = 3;
  REFUSED(CDIST, RIGEL_INVALID_ARGUMENT, "rigel_cdist: Z", "4x3", NULL);
  c.type = RIGEL_I64;
  REFUSED(CDIST, RIGEL_UNSUPPORTED, "D", "i64", "f16, bf16, f32 or f64");
  c.columns = 3;
  REFUSED(CLOSURE, RIGEL_INVALID_ARGUMENT, "D is 4x3", "square", NULL);
  closure.block = -1;
  REFUSED(CLOSURE, RIGEL_INVALID_ARGUMENT, "block is -1", NULL, NULL);
  REFUSED(rigel_transitive_closure(handle, &reachability, &c), RIGEL_INVALID_ARGUMENT, "D.type is f32", "u32 or u64", NULL);
  c.type = RIGEL_U32;
  REFUSED(rigel_transitive_closure(handle, &reachability, &c), RIGEL_INVALID_ARGUMENT, "D is 4x4, expected 4x1", NULL, NULL);
  c.type = RIGEL_U32;
  c.columns = 1;
  reachability.block = 33;
  REFUSED(rigel_transitive_closure_workspace_size(handle, &reachability, &c, &bytes), RIGEL_INVALID_ARGUMENT, "block is 33", NULL,
          NULL);
}

static void options(void) {
  contract.accumulate = 2;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "args.accumulate is 2, expected 0 or 1", NULL, NULL);
  contract.options.require = 8;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "options.require is 8", "RIGEL_REPEATABLE", NULL);
  contract.options.precision = 9;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "options.precision is 9", NULL, NULL);
  contract.options.workspace_bytes = 100;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "options.workspace is NULL", NULL, NULL);
  contract.epilogue.steps_count = 9;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.steps_count is 9, expected 0 to 8", NULL, NULL);
  contract.epilogue.sources_count = -1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.sources_count is -1", NULL, NULL);
  contract.epilogue.steps_count = 2;
  contract.epilogue.steps[0].kind = RIGEL_RELU;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.steps[1].kind is 0", NULL, NULL);
  contract.epilogue.steps_count = 1;
  contract.epilogue.steps[0].kind = RIGEL_ADD;
  contract.epilogue.steps[0].x_source = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.steps[0].x_source is 1", "sources", NULL);
  contract.epilogue.steps_count = 1;
  contract.epilogue.steps[0].kind = RIGEL_RELU;
  contract.epilogue.steps[0].offset = 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.steps[0].offset", "RIGEL_ADD_DIAGONAL", NULL);
  contract.epilogue.steps_count = 1;
  contract.epilogue.steps[0].kind = RIGEL_RATIONAL_QUADRATIC + 1;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.steps[0].kind is 22", "1 to 21", NULL);
  contract.epilogue.steps_count = contract.epilogue.sources_count = 1;
  contract.epilogue.steps[0].kind = RIGEL_ADD;
  contract.epilogue.steps[0].x_source = 1;
  contract.epilogue.sources[0] = a;
  contract.epilogue.sources[0].columns = 3;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.sources[0]", "1 x 4 x 3", "1 x 4 x 4");
  contract.epilogue.steps_count = contract.epilogue.sources_count = 1;
  contract.epilogue.steps[0].kind = RIGEL_ADD;
  contract.epilogue.steps[0].x_source = 1;
  contract.epilogue.sources[0] = a;
  contract.epilogue.sources[0].type = RIGEL_I8;
  REFUSED(CONTRACT, RIGEL_INVALID_ARGUMENT, "epilogue.sources[0].type is i8", NULL, NULL);
}

static void linear_structs(void) {
  linear.size -= 8;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "rigel_linear_forward: args.size is", "expected", NULL);
  linear.reserved[2] = 1;
  REFUSED(BACKWARD_WEIGHT, RIGEL_INVALID_ARGUMENT, "rigel_linear_backward_weight: args.reserved", NULL, NULL);
  linear.options.reserved[0] = 1;
  REFUSED(BACKWARD_INPUT, RIGEL_INVALID_ARGUMENT, "rigel_linear_backward_input: options.reserved", NULL, NULL);
  REFUSED(rigel_linear_forward(NULL, &linear, &a, &b, NULL, &c, NULL), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  REFUSED(rigel_linear_forward(handle, NULL, &a, &b, NULL, &c, NULL), RIGEL_INVALID_ARGUMENT, "args is NULL", NULL, NULL);
  REFUSED(rigel_linear_forward(handle, &linear, &a, NULL, NULL, &c, NULL), RIGEL_INVALID_ARGUMENT, "W is NULL", NULL, NULL);
  REFUSED(rigel_linear_backward_weight(handle, &linear, &a, NULL, &c, NULL), RIGEL_INVALID_ARGUMENT, "dY is NULL", NULL, NULL);
  REFUSED(rigel_linear_backward_input(handle, &linear, &a, &b, NULL, NULL), RIGEL_INVALID_ARGUMENT, "dX is NULL", NULL, NULL);
  REFUSED(rigel_linear_forward_workspace_size(handle, &linear, &a, &b, NULL, &c, NULL, NULL), RIGEL_INVALID_ARGUMENT,
          "bytes is NULL", NULL, NULL);
  REFUSED(rigel_linear_backward_weight_workspace_size(handle, &linear, &a, &b, &c, NULL, NULL), RIGEL_INVALID_ARGUMENT,
          "bytes is NULL", NULL, NULL);
  REFUSED(rigel_linear_backward_input_workspace_size(handle, &linear, &a, &b, &c, NULL, NULL), RIGEL_INVALID_ARGUMENT,
          "bytes is NULL", NULL, NULL);
}

static void linear_extents(void) {
  rigel_matrix bias = RIGEL_ROW_MAJOR(data, RIGEL_F32, 1, 4);
  b.rows = 3;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "rigel_linear_forward: W is 3x4, expected 4 rows to match the columns of X 4x4", NULL,
          NULL);
  b.rows = 3;
  REFUSED(BACKWARD_WEIGHT, RIGEL_INVALID_ARGUMENT, "rigel_linear_backward_weight: dY is 3x4, expected 4 rows to match X 4x4", NULL,
          NULL);
  c.columns = 3;
  REFUSED(BACKWARD_INPUT, RIGEL_INVALID_ARGUMENT,
          "rigel_linear_backward_input: dX is 4x3, expected 4 columns to match the rows of W 4x4", NULL, NULL);
  a.type = RIGEL_I32;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "X.type is i32, expected f16, bf16 or f32", NULL, NULL);
  c.type = RIGEL_I16;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "Y.type is i16, expected f16, bf16 or f32", NULL, NULL);
  b.type = RIGEL_BF16;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "W is 4x4 of bf16, expected f32 as X", NULL, NULL);
  c.type = RIGEL_BF16;
  REFUSED(BACKWARD_WEIGHT, RIGEL_INVALID_ARGUMENT, "dW.type is bf16, expected f32", NULL, NULL);
  c.data = data + 1;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "rigel_linear_forward: Y", "overlaps", NULL);
  REFUSED(rigel_linear_forward(handle, &linear, &a, &b, NULL, &c, &c), RIGEL_INVALID_ARGUMENT, "Z 4x4", "overlaps", "Y 4x4");
  REFUSED(rigel_linear_backward_weight(handle, &linear, &a, &b, &c, &bias), RIGEL_INVALID_ARGUMENT, "db 1x4 overlaps dY 4x4", NULL, NULL);
  bias.columns = 3;
  REFUSED(rigel_linear_forward(handle, &linear, &a, &b, &bias, &c, NULL), RIGEL_INVALID_ARGUMENT,
          "bias is 1x3, expected 4 elements to match the columns of W 4x4", NULL, NULL);
  bias.rows = 2;
  REFUSED(rigel_linear_forward(handle, &linear, &a, &b, &bias, &c, NULL), RIGEL_INVALID_ARGUMENT, "bias is 2x3, expected one row",
          NULL, NULL);
  bias.type = RIGEL_F16;
  REFUSED(rigel_linear_forward(handle, &linear, &a, &b, &bias, &c, NULL), RIGEL_INVALID_ARGUMENT, "bias.type is f16, expected f32",
          NULL, NULL);
}

static void linear_options(void) {
  linear.tier = 2;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "args.tier is 2, expected 0 (RIGEL_TIER_SCALAR) or 1 (RIGEL_TIER_TENSOR)", NULL, NULL);
  linear.activation = 5;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "args.activation is 5", "4 (RIGEL_ACTIVATION_SILU)", NULL);
  linear.activation = RIGEL_ACTIVATION_GELU;
  linear.epilogue.steps_count = 1;
  linear.epilogue.steps[0].kind = RIGEL_RELU;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "args.activation is gelu and args.epilogue has 1 steps", "one of the two", NULL);
  linear.activation = RIGEL_ACTIVATION_RELU;
  REFUSED(BACKWARD_WEIGHT, RIGEL_INVALID_ARGUMENT, "args.activation is 1, expected 0", NULL, NULL);
  linear.activation = RIGEL_ACTIVATION_RELU;
  REFUSED(BACKWARD_INPUT, RIGEL_INVALID_ARGUMENT, "Z is NULL, expected what relu was applied to", NULL, NULL);
  linear.epilogue.steps_count = 1;
  REFUSED(BACKWARD_WEIGHT, RIGEL_INVALID_ARGUMENT, "args.epilogue.steps_count is 1, expected 0", NULL, NULL);
  linear.epilogue.steps_count = 1;
  REFUSED(BACKWARD_INPUT, RIGEL_INVALID_ARGUMENT, "args.epilogue.steps_count is 1, expected 0", NULL, NULL);
  linear.options.require = RIGEL_REPEATABLE;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "args.options.require is 2, expected 0", "tier", NULL);
  linear.options.precision = RIGEL_PRECISION_TF32;
  REFUSED(FORWARD, RIGEL_INVALID_ARGUMENT, "options.precision is tf32", "Tier::scalar", NULL);
  linear.options.kernel = "no_such";
  REFUSED(FORWARD, RIGEL_NOT_FOUND, "no kernel is named 'no_such'", NULL, NULL);
  if (!tests_host()) return;
  linear.tier = RIGEL_TIER_TENSOR;
  REFUSED(FORWARD, RIGEL_UNSUPPORTED, "rigel_linear_forward: Tier::tensor runs on tensor cores", "expected the execution space cuda",
          NULL);
  linear.tier = RIGEL_TIER_TENSOR;
  REFUSED(BACKWARD_WEIGHT, RIGEL_UNSUPPORTED, "rigel_linear_backward_weight: Tier::tensor", NULL, NULL);
  linear.tier = RIGEL_TIER_TENSOR;
  REFUSED(BACKWARD_INPUT, RIGEL_UNSUPPORTED, "rigel_linear_backward_input: Tier::tensor", NULL, NULL);
}

static void* in_another_thread(void* unused) {
  (void)unused;
  CHECK(strcmp(rigel_last_error(), "") == 0);
  FAILS(rigel_kernels(NULL, NULL), RIGEL_INVALID_ARGUMENT, "rigel_kernels: json is NULL", NULL, NULL);
  return NULL;
}

static void messages(void) {
  pthread_t thread;
  rigel_handle* none = NULL;
  FAILS(rigel_create(-2, NULL, &none), RIGEL_INVALID_ARGUMENT, "rigel_create: device is -2", NULL, NULL);
  if (pthread_create(&thread, NULL, in_another_thread, NULL) == 0) pthread_join(thread, NULL);
  CHECK(strstr(rigel_last_error(), "device is -2") != NULL); /* each thread has its own */
  OK(CONTRACT);
  CHECK(strstr(rigel_last_error(), "device is -2") != NULL); /* until the next failure */
  OK(rigel_synchronize(handle));
}

void test_errors(rigel_handle* given) {
  handle = given;
  data = allocate(32 * sizeof(float));
  reset();
  structs();
  names();
  extents();
  options();
  linear_structs();
  linear_extents();
  linear_options();
  messages();
}

void test_handles(int device) {
  rigel_handle* first = NULL;
  rigel_handle* second = NULL;
  int number = 0;
  FAILS(rigel_create(device, NULL, NULL), RIGEL_INVALID_ARGUMENT, "rigel_create: handle is NULL", NULL, NULL);
  second = (rigel_handle*)&number;
  FAILS(rigel_create(-2, NULL, &second), RIGEL_INVALID_ARGUMENT, "device is -2", "-1 for the host", NULL);
  CHECK(second == NULL);
  CHECK(rigel_create(1000, NULL, &second) == (device < 0 ? RIGEL_UNSUPPORTED : RIGEL_INVALID_ARGUMENT) ||
        strstr(rigel_last_error(), "number of GPUs") != NULL);
  FAILS(rigel_create(-1, &number, &second), RIGEL_INVALID_ARGUMENT, "stream is not NULL", NULL, NULL);
  OK(rigel_create(device, new_stream(), &first));
  OK(rigel_create(device, new_stream(), &second));
  CHECK(first != second);
  test_calls(first);
  rigel_destroy(first);
  test_calls(second);
  rigel_destroy(second);
}
