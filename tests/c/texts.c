/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Semirings and epilogues from text: results worked out by hand, hyperparameters by name, and what is refused. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rigel_semiring_args l1_args(const rigel_parameter* w) {
  rigel_semiring_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.name = "c_l1";
  args.element = RIGEL_F64;
  args.commutative = 1;
  args.multiply = "w * abs(a - b)";
  args.add = "x + y";
  args.parameters = w;
  args.parameters_count = 1;
  return args;
}

/* The least a(m,k) + b(k,n) and its k. */
static rigel_semiring_args nearest_args(const rigel_field* fields, int32_t count) {
  rigel_semiring_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.multiply = "{a + b, k}";
  args.add = "y.value < x.value ? y : x";
  args.identity = "{infinity, -1}";
  args.result = "x.index";
  args.result_type = RIGEL_I32;
  args.fields = fields;
  args.fields_count = count;
  return args;
}

static void refusals(void) {
  const rigel_parameter w = {"w", 1}, nameless = {NULL, 1};
  rigel_semiring_args args = l1_args(&w);
  rigel_semiring* semiring = (rigel_semiring*)&args;
  rigel_statistics statistics = {0, 0, 0, 0};
  FAILS(rigel_semiring_create(&args, NULL), RIGEL_INVALID_ARGUMENT, "rigel_semiring_create: semiring is NULL", NULL, NULL);
  FAILS(rigel_semiring_create(NULL, &semiring), RIGEL_INVALID_ARGUMENT, "rigel_semiring_create: args is NULL", NULL, NULL);
  CHECK(semiring == NULL);
  args.size = 8;
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "args.size is 8", NULL, NULL);
  args = l1_args(&w);
  args.reserved[1] = 1;
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  args = l1_args(&w);
  args.reserved_flags = 1;
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "args.reserved_flags is 1", NULL, NULL);
  args = l1_args(&w);
  args.commutative = 2;
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "args.commutative is 2", NULL, NULL);
  args = l1_args(&w);
  args.element = RIGEL_U8;
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "the element type is u8", "f32, f64, i32", NULL);
  args = l1_args(&nameless);
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "parameters[0].name is NULL", NULL, NULL);
  args = l1_args(NULL);
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "parameters_count is 1", NULL, NULL);
  args = l1_args(&w);
  args.multiply = NULL;
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, "multiply", NULL, NULL);
  args.multiply = "abs(a - c)";
  FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT,
        "rigel_semiring_create: multiply, line 1, column 9: 'c' is not known here", "\n  abs(a - c)\n          ^", NULL);
  CHECK(semiring == NULL);
  FAILS(rigel_semiring_set(NULL, "w", 1), RIGEL_INVALID_ARGUMENT, "semiring is NULL", NULL, NULL);
  FAILS(rigel_semiring_statistics(NULL), RIGEL_INVALID_ARGUMENT, "statistics is NULL", NULL, NULL);
  FAILS(rigel_semiring_statistics(&statistics), RIGEL_INVALID_ARGUMENT, "statistics.size is 0", NULL, NULL);
  rigel_semiring_destroy(NULL);
}

/* Whether texts run on the handle's device; if not, calls say so and write nothing. */
static int runs(rigel_handle* handle, rigel_semiring* semiring, const rigel_contract_args* args, const rigel_matrix* a,
                const rigel_matrix* b, const rigel_matrix* c) {
  const double before = *(const double*)c->data;
  const rigel_code code = rigel_semiring_compile(semiring, handle);
  if (code == RIGEL_OK) return 1;
  CHECK(code == RIGEL_UNSUPPORTED);
  CHECK(!tests_host() || !getenv("RIGEL_TEST_RUNTIME")); /* where it is built, it is there */
  printf("skipped: semirings from text: %s\n", rigel_last_error());
  FAILS(rigel_contract(handle, args, a, b, c), RIGEL_UNSUPPORTED, "semiring 'c_l1': ",
        tests_host() ? "librigel_runtime.so, which compiles texts, cannot be opened" : NULL, NULL);
  OK(rigel_synchronize(handle));
  CHECK(*(const double*)c->data == before);
  return 0;
}

static void refusals_of_fields(void) {
  const rigel_field fields[] = {{"value", RIGEL_F32, 0}, {"index", RIGEL_I32, 0}}, nameless[] = {{"value", RIGEL_F32, 0}, {NULL, RIGEL_I32, 0}},
                    wide[] = {{"value", RIGEL_F32, 0}, {"index", RIGEL_I64, 0}}, typeless[] = {{"value", RIGEL_F32, 0}, {"index", 0, 0}},
                    reserved[] = {{"value", RIGEL_F32, 1}, {"index", RIGEL_I32, 0}};
  const struct {
    const rigel_field* fields;
    int count;
    const char* says;
  } cases[] = {{NULL, 2, "args.fields_count is 2, expected the number of fields, which are NULL"},
               {fields, -1, "args.fields_count is -1"},
               {fields, 1, "expected"},
               {nameless, 2, "args.fields[1].name is NULL"},
               {typeless, 2, "args.fields[1].type is 0"},
               {reserved, 2, "args.fields[0].reserved is 1, expected 0"},
               {wide, 2, "field 'index' of the accumulator has type i64"}};
  rigel_semiring* semiring = NULL;
  size_t i;
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const rigel_semiring_args args = nearest_args(cases[i].fields, cases[i].count);
    FAILS(rigel_semiring_create(&args, &semiring), RIGEL_INVALID_ARGUMENT, cases[i].says, NULL, NULL);
    CHECK(semiring == NULL);
  }
}

static void refusals_of_epilogues(void) {
  const rigel_parameter w = {"w", 2};
  rigel_epilogue* epilogue = (rigel_epilogue*)&w;
  rigel_epilogue_args args;
  memset(&args, 0, sizeof args);
  FAILS(rigel_epilogue_create(NULL, &epilogue), RIGEL_INVALID_ARGUMENT, "rigel_epilogue_create: args is NULL", NULL, NULL);
  CHECK(epilogue == NULL);
  FAILS(rigel_epilogue_create(&args, &epilogue), RIGEL_INVALID_ARGUMENT, "args.size is 0", NULL, NULL);
  args.size = sizeof args;
  FAILS(rigel_epilogue_create(&args, NULL), RIGEL_INVALID_ARGUMENT, "epilogue is NULL", NULL, NULL);
  FAILS(rigel_epilogue_create(&args, &epilogue), RIGEL_INVALID_ARGUMENT, "body", NULL, NULL);
  args.body = "x * v";
  FAILS(rigel_epilogue_create(&args, &epilogue), RIGEL_INVALID_ARGUMENT, "rigel_epilogue_create: body, line 1, column 5: 'v' is not known here",
        "\n  x * v\n      ^", NULL);
  args.body = "x * w";
  args.parameters = &w;
  args.parameters_count = 1;
  args.argument = RIGEL_F16;
  FAILS(rigel_epilogue_create(&args, &epilogue), RIGEL_INVALID_ARGUMENT, "the argument type is f16", NULL, NULL);
  args.argument = 0;
  args.result = RIGEL_U8;
  FAILS(rigel_epilogue_create(&args, &epilogue), RIGEL_INVALID_ARGUMENT, "the result type is u8", NULL, NULL);
  args.result = 0;
  args.reserved[1] = 1;
  FAILS(rigel_epilogue_create(&args, &epilogue), RIGEL_INVALID_ARGUMENT, "args.reserved", NULL, NULL);
  args.reserved[1] = 0;
  OK(rigel_epilogue_create(&args, &epilogue));
  FAILS(rigel_epilogue_set(epilogue, "v", 1), RIGEL_NOT_FOUND, "rigel_epilogue_set: epilogue 'text' has no hyperparameter 'v', expected w", NULL, NULL);
  FAILS(rigel_epilogue_set(NULL, "w", 1), RIGEL_INVALID_ARGUMENT, "epilogue is NULL", NULL, NULL);
  OK(rigel_epilogue_set(epilogue, "w", 1));
  rigel_epilogue_destroy(epilogue);
  rigel_epilogue_destroy(NULL);
}

/* The k of the least a + b: an accumulator of two fields. Then what an epilogue makes of it. */
static void fields(rigel_handle* handle) {
  const rigel_field both[] = {{"value", RIGEL_F32, 0}, {"index", RIGEL_I32, 0}};
  const rigel_parameter ten = {"scale", 10}, hundred = {"scale", 100};
  rigel_semiring_args args;
  rigel_epilogue_args epilogue_args;
  rigel_contract_args call;
  rigel_semiring* nearest = NULL;
  rigel_epilogue* place = NULL;
  float* const a_data = allocate(4 * sizeof(float));
  float* const b_data = allocate(4 * sizeof(float));
  int32_t* const k = allocate(4 * sizeof(int32_t));
  float* const scaled = allocate(4 * sizeof(float));
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F32, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F32, 2, 2),
                     c = RIGEL_ROW_MAJOR(k, RIGEL_I32, 2, 2), d = RIGEL_ROW_MAJOR(scaled, RIGEL_F32, 2, 2);
  char* json = NULL;
  size_t bytes = 0;
  a_data[0] = 1, a_data[1] = 4, a_data[2] = 3, a_data[3] = 2;
  b_data[0] = 5, b_data[1] = 9, b_data[2] = 1, b_data[3] = 7;
  args = nearest_args(both, 2);
  args.name = "c_nearest";
  OK(rigel_semiring_create(&args, &nearest));
  memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.from_text = nearest;
  OK(rigel_contract(handle, &call, &a, &b, &c));
  OK(rigel_synchronize(handle));
  /* {1 + 5, 4 + 1}, {1 + 9, 4 + 7}; {3 + 5, 2 + 1}, {3 + 9, 2 + 7}. */
  CHECK(k[0] == 1 && k[1] == 0 && k[2] == 1 && k[3] == 1);
  OK(rigel_explain_contract(handle, &call, &a, &b, &c, &json));
  CHECK(json && strstr(json, "c_nearest") && strstr(json, "\"facts\": {\"name\": ") && strstr(json, "\"operation\": \"contract\""));
  rigel_free(json);
  call.accumulator = RIGEL_F32;
  FAILS(rigel_contract(handle, &call, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "args.accumulator is", "an accumulator of several fields", NULL);
  call.accumulator = 0;
  call.accumulate = 1;
  FAILS(rigel_contract(handle, &call, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "accumulate is not defined", NULL, NULL);
  call.accumulate = 0;

  memset(&epilogue_args, 0, sizeof epilogue_args);
  epilogue_args.size = sizeof epilogue_args;
  epilogue_args.name = "c_place";
  epilogue_args.body = "x * scale + m";
  epilogue_args.argument = RIGEL_I32;
  epilogue_args.result = RIGEL_F32;
  epilogue_args.parameters = &ten;
  epilogue_args.parameters_count = 1;
  OK(rigel_epilogue_create(&epilogue_args, &place));
  OK(rigel_epilogue_compile(place, handle, nearest, 0));
  call.epilogue_from_text = place;
  OK(rigel_contract_workspace_size(handle, &call, &a, &b, &d, &bytes));
  OK(rigel_contract(handle, &call, &a, &b, &d));
  OK(rigel_synchronize(handle));
  CHECK(scaled[0] == 10 && scaled[1] == 0 && scaled[2] == 11 && scaled[3] == 11);
  call.epilogue_parameters = &hundred;
  call.epilogue_parameters_count = 1;
  OK(rigel_contract(handle, &call, &a, &b, &d));
  OK(rigel_synchronize(handle));
  CHECK(scaled[0] == 100 && scaled[1] == 0 && scaled[2] == 101 && scaled[3] == 101);
  call.epilogue.steps_count = 1;
  call.epilogue.steps[0].kind = RIGEL_RELU;
  FAILS(rigel_contract(handle, &call, &a, &b, &d), RIGEL_INVALID_ARGUMENT, "args.epilogue has 1 steps, expected none", NULL, NULL);
  call.epilogue.steps_count = 0;
  call.epilogue_from_text = NULL;
  FAILS(rigel_contract(handle, &call, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "args.epilogue_parameters_count is 1, expected 0", NULL, NULL);
  call.epilogue_parameters_count = 0;

  /* Of plus_times: (1*5 + 4*1, 1*9 + 4*7; 3*5 + 2*1, 3*9 + 2*7) = (9, 37; 17, 41). */
  rigel_epilogue_destroy(place);
  epilogue_args.argument = 0;
  epilogue_args.result = 0;
  OK(rigel_epilogue_create(&epilogue_args, &place));
  if (tests_host()) OK(rigel_epilogue_compile(place, handle, NULL, RIGEL_F32)); /* seconds on a GPU: a call compiles the one that it runs */
  FAILS(rigel_epilogue_compile(place, handle, nearest, RIGEL_F32), RIGEL_INVALID_ARGUMENT, "element is 3, expected 0 with a semiring", NULL, NULL);
  call.from_text = NULL;
  call.semiring = "plus_times";
  call.epilogue_from_text = place;
  OK(rigel_contract(handle, &call, &a, &b, &d));
  OK(rigel_synchronize(handle));
  CHECK(scaled[0] == 90 && scaled[1] == 370 && scaled[2] == 171 && scaled[3] == 411);
  call.semiring = "min_plus";
  FAILS(rigel_contract(handle, &call, &a, &b, &d), RIGEL_UNSUPPORTED, "an epilogue from text does not go with semiring 'min_plus' of f32", NULL, NULL);
  call.semiring = "plus_times";
  FAILS(rigel_contract(handle, &call, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "the epilogue 'c_place' makes elements of type f32, expected i32", NULL, NULL);
  CHECK(scaled[0] == 90);
  rigel_epilogue_destroy(place);
  rigel_semiring_destroy(nearest);
}

/* Whether each matrix of a C of 2 x 2 is its number. */
static int are(const double* c, const double* numbers, int count) {
  int i;
  for (i = 0; i < 4 * count; ++i)
    if (c[i] != numbers[i / 4]) return 0;
  return 1;
}

/* What is refused of a call with shift and w in memory, in this order; w has stride 2 and 3 numbers. */
static void refusals_of_views(rigel_handle* handle, rigel_contract_args call, rigel_parameter_view* views, const rigel_matrix* a,
                              const rigel_matrix* b, const rigel_matrix* c) {
  void* const w_data = views[1].matrix.data;
  views[1].matrix.batches = 2;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "hyperparameter 'w' of 'c_shifted' has 2 elements, expected 3, one for each matrix of C",
        NULL, NULL);
  views[1].matrix.batches = 3;
  views[1].matrix.batch_stride = -2;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "rigel_contract: parameter_views[1].matrix.batch_stride is -2, expected at least 0", NULL,
        NULL);
  views[1].matrix.batch_stride = 2;
  views[1].matrix.rows = 2;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "parameter_views[1].matrix is 3x2x1, expected 1x1 for each matrix of C", NULL, NULL);
  views[1].matrix.rows = 1;
  views[1].matrix.type = RIGEL_F32;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "rigel_contract: the view that is hyperparameter 'w' of 'c_shifted' holds elements of type f32, expected f64",
        NULL, NULL);
  views[1].matrix.type = RIGEL_F64;
  views[1].matrix.data = NULL;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "hyperparameter 'w' of 'c_shifted' has 3 elements and no data", NULL, NULL);
  views[1].matrix.data = w_data;
  views[0].name = "v";
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_NOT_FOUND, "semiring 'c_shifted' has no hyperparameter 'v', expected w, shift", NULL, NULL);
  views[0].name = NULL;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "parameter_views[0].name is NULL", NULL, NULL);
  call.parameter_views = NULL;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "parameter_views_count is 2, expected the number of parameter_views, which are NULL", NULL,
        NULL);
  call.parameter_views = views + 1;
  call.parameter_views_count = 1;
  call.from_text = NULL;
  call.semiring = "plus_times";
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "args.parameter_views_count is 1, expected 0 without args.from_text", NULL, NULL);
  call.parameter_views_count = 0;
  call.parameters_count = 0;
  call.epilogue_parameter_views = views + 1;
  call.epilogue_parameter_views_count = 1;
  FAILS(rigel_contract(handle, &call, a, b, c), RIGEL_INVALID_ARGUMENT, "args.epilogue_parameter_views_count is 1, expected 0 without args.epilogue_from_text", NULL,
        NULL);
  views[0].name = "shift";
}

/* Hyperparameters in memory: 4*w*|3 - 1| + shift, with a w for each of three matrices and a shift for all. */
static void parameters_in_memory(rigel_handle* handle) {
  const rigel_parameter w = {"w", 1}, both[] = {{"w", 1}, {"shift", 0}};
  const double first[] = {8, 16, -24}, second[] = {9, 17, -23}, third[] = {84, 84, 84}, products[] = {32, 52, -48}, one[] = {12, 12, 12};
  rigel_semiring_args args = l1_args(&w);
  rigel_epilogue_args epilogue_args;
  rigel_contract_args call;
  rigel_semiring* semiring = NULL;
  rigel_epilogue* epilogue = NULL;
  rigel_statistics before = {sizeof before, 0, 0, 0}, after = {sizeof after, 0, 0, 0};
  double* const a_data = allocate(8 * sizeof(double));
  double* const b_data = allocate(8 * sizeof(double));
  double* const c_data = allocate(12 * sizeof(double));
  double* const w_data = allocate(6 * sizeof(double));
  double* const shift_data = allocate(sizeof(double));
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, 2, 4), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F64, 4, 2),
                     c = {sizeof(rigel_matrix), c_data, 3, 2, 2, 4, 2, 1, RIGEL_F64, 0};
  rigel_parameter_view views[2] = {{"shift", RIGEL_ROW_MAJOR(NULL, RIGEL_F64, 1, 1)},
                                   {"w", {sizeof(rigel_matrix), NULL, 3, 1, 1, 2, 1, 1, RIGEL_F64, 0}}};
  size_t bytes = 0;
  char* json = NULL;
  int i;
  views[0].matrix.data = shift_data;
  views[1].matrix.data = w_data;
  for (i = 0; i < 8; ++i) a_data[i] = 3, b_data[i] = 1;
  for (i = 0; i < 6; ++i) w_data[i] = 100;
  w_data[0] = 1, w_data[2] = 2, w_data[4] = -3;
  args.name = "c_shifted";
  args.multiply = "w * abs(a - b)";
  args.result = "x + shift";
  args.parameters = both;
  args.parameters_count = 2;
  OK(rigel_semiring_create(&args, &semiring));
  memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.from_text = semiring;
  call.parameter_views = views;
  call.parameter_views_count = 2;
  OK(rigel_contract(handle, &call, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(are(c_data, first, 3));
  OK(rigel_contract_workspace_size(handle, &call, &a, &b, &c, &bytes));
  CHECK(tests_host() || bytes > 0); /* what a kernel gathers there */
  OK(rigel_explain_contract(handle, &call, &a, &b, &c, &json));
  CHECK(json && strstr(json, "c_shifted"));
  rigel_free(json);

  /* What memory holds at the next call, over a number of that call; then that number. */
  OK(rigel_semiring_statistics(&before));
  *shift_data = 1;
  call.parameters = &w;
  call.parameters_count = 1;
  OK(rigel_contract(handle, &call, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(are(c_data, second, 3));
  *shift_data = 76;
  call.parameter_views_count = 1;
  OK(rigel_contract(handle, &call, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(are(c_data, third, 3));
  OK(rigel_semiring_statistics(&after));
  CHECK(after.compiled == before.compiled && after.from_disk == before.from_disk);
  call.parameter_views_count = 2;

  refusals_of_views(handle, call, views, &a, &b, &c);
  CHECK(are(c_data, third, 3));

  /* 12 + 20*w of plus_times; 12 + 0*w of the semiring, whose own w is 0. */
  memset(&epilogue_args, 0, sizeof epilogue_args);
  epilogue_args.size = sizeof epilogue_args;
  epilogue_args.body = "x + 20 * w";
  epilogue_args.argument = RIGEL_F64;
  epilogue_args.parameters = &w;
  epilogue_args.parameters_count = 1;
  OK(rigel_epilogue_create(&epilogue_args, &epilogue));
  call.from_text = NULL;
  call.semiring = "plus_times";
  call.parameters_count = call.parameter_views_count = 0;
  call.epilogue_from_text = epilogue;
  call.epilogue_parameter_views = views + 1;
  call.epilogue_parameter_views_count = 1;
  OK(rigel_contract(handle, &call, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(are(c_data, products, 3));
  w_data[0] = w_data[2] = w_data[4] = 0;
  *shift_data = 12;
  call.semiring = NULL;
  call.from_text = semiring;
  call.parameter_views = views;
  call.parameter_views_count = 2;
  OK(rigel_contract(handle, &call, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(are(c_data, one, 3));
  views[1].matrix.type = RIGEL_F32;
  call.parameter_views_count = 1;
  FAILS(rigel_contract(handle, &call, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "rigel_contract: the view that is hyperparameter 'w' of 'text' holds elements of type f32, expected f64",
        NULL, NULL);
  rigel_epilogue_destroy(epilogue);
  rigel_semiring_destroy(semiring);
}

void test_texts(rigel_handle* handle) {
  const rigel_parameter w = {"w", 1}, twice = {"w", 2}, q = {"q", 1};
  const rigel_semiring_args created = l1_args(&w);
  rigel_semiring* semiring = NULL;
  rigel_contract_args args;
  rigel_statistics before = {sizeof before, 0, 0, 0}, after = {sizeof after, 0, 0, 0};
  double* const a_data = allocate(4 * sizeof(double));
  double* const b_data = allocate(4 * sizeof(double));
  double* const c_data = allocate(4 * sizeof(double));
  float* const floats = allocate(4 * sizeof(float));
  const rigel_matrix a = RIGEL_ROW_MAJOR(a_data, RIGEL_F64, 2, 2), b = RIGEL_ROW_MAJOR(b_data, RIGEL_F64, 2, 2),
                     c = RIGEL_ROW_MAJOR(c_data, RIGEL_F64, 2, 2), of_floats = RIGEL_ROW_MAJOR(floats, RIGEL_F32, 2, 2);
  size_t bytes = 1;
  char* json = NULL;
  int i;
  refusals();
  refusals_of_fields();
  refusals_of_epilogues();
  for (i = 0; i < 4; ++i) {
    a_data[i] = i + 1; /* (1 2; 3 4) */
    b_data[i] = 5 + i; /* (5 6; 7 8) */
    c_data[i] = -1;
  }
  OK(rigel_semiring_create(&created, &semiring));
  if (!semiring) return;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.from_text = semiring;
  if (!runs(handle, semiring, &args, &a, &b, &c)) {
    rigel_semiring_destroy(semiring);
    return;
  }

  /* sum_k |a - b|: (4 + 5, 5 + 6; 2 + 3, 3 + 4) */
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 9 && c_data[1] == 11 && c_data[2] == 5 && c_data[3] == 7);

  /* Twice as much for one call, and a quarter of that; then as the semiring has it again. */
  OK(rigel_semiring_statistics(&before));
  args.parameters = &twice;
  args.parameters_count = 1;
  args.accumulator = RIGEL_F64;
  args.epilogue.steps_count = 1;
  args.epilogue.steps[0].kind = RIGEL_SCALE;
  args.epilogue.steps[0].x = 0.25;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 4.5 && c_data[1] == 5.5 && c_data[2] == 2.5 && c_data[3] == 3.5);
  args.parameters_count = 0;
  args.epilogue.steps_count = 0;
  args.accumulate = 1;
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 13.5 && c_data[1] == 16.5 && c_data[2] == 7.5 && c_data[3] == 10.5);
  args.accumulate = 0;
  OK(rigel_semiring_set(semiring, "w", 3));
  OK(rigel_contract(handle, &args, &a, &b, &c));
  OK(rigel_synchronize(handle));
  CHECK(c_data[0] == 27 && c_data[1] == 33 && c_data[2] == 15 && c_data[3] == 21);
  OK(rigel_semiring_statistics(&after));
  CHECK(after.compiled == before.compiled && after.from_disk == before.from_disk);
  CHECK(after.compiled + after.from_disk + after.from_memory > 0);

  OK(rigel_contract_workspace_size(handle, &args, &a, &b, &c, &bytes));
  OK(rigel_explain_contract(handle, &args, &a, &b, &c, &json));
  CHECK(json && strstr(json, ".c_l1.f64") && strstr(json, "\"chosen\": true"));
  rigel_free(json);

  FAILS(rigel_semiring_set(semiring, "q", 1), RIGEL_NOT_FOUND, "rigel_semiring_set: semiring 'c_l1' has no hyperparameter 'q', expected w",
        NULL, NULL);
  FAILS(rigel_semiring_set(semiring, NULL, 1), RIGEL_INVALID_ARGUMENT, "name is NULL", NULL, NULL);
  args.parameters = &q;
  args.parameters_count = 1;
  FAILS(rigel_contract(handle, &args, &a, &b, &c), RIGEL_NOT_FOUND, "semiring 'c_l1' has no hyperparameter 'q'", NULL, NULL);
  args.parameters_count = 0;
  args.semiring = "min_plus";
  FAILS(rigel_contract(handle, &args, &a, &b, &c), RIGEL_INVALID_ARGUMENT, "args.semiring is 'min_plus', expected NULL with args.from_text",
        NULL, NULL);
  args.semiring = NULL;
  args.accumulator = RIGEL_F32;
  FAILS(rigel_contract(handle, &args, &a, &b, &c), RIGEL_UNSUPPORTED, "semiring 'c_l1' accumulated in f32", "expected f64", NULL);
  args.accumulator = 0;
  FAILS(rigel_contract(handle, &args, &of_floats, &of_floats, &c), RIGEL_INVALID_ARGUMENT, "A holds elements of type f32",
        "expected f64, that of the semiring 'c_l1'", NULL);
  FAILS(rigel_semiring_compile(NULL, handle), RIGEL_INVALID_ARGUMENT, "semiring is NULL", NULL, NULL);
  FAILS(rigel_semiring_compile(semiring, NULL), RIGEL_INVALID_ARGUMENT, "handle is NULL", NULL, NULL);
  CHECK(c_data[0] == 27);
  rigel_semiring_destroy(semiring);
  fields(handle);
  parameters_in_memory(handle);
}
