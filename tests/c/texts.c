/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Semirings from text: results worked out by hand, hyperparameters by name, and what is refused. */
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
  args.reserved[3] = 1;
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
}
