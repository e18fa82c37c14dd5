/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * closure() and transitive_closure(): against graphs worked out by hand, and loops. */
#include "support.h"

#include <math.h>
#include <string.h>

static rigel_closure_args closure_args(const char* semiring) {
  rigel_closure_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.semiring = semiring;
  return args;
}

static rigel_closure_report empty_report(void) {
  rigel_closure_report report;
  memset(&report, 0, sizeof report);
  report.size = sizeof report;
  return report;
}

/* Arcs 0 -> 1 of 4, 0 -> 2 of 1, 2 -> 1 of 2, 1 -> 3 of 5. */
static void by_hand(rigel_handle* handle) {
  static const float far = INFINITY;
  const float arcs[] = {far, 4, 1, far, far, far, far, 5, far, 2, far, far, far, far, far, far};
  const float paths[] = {0, 3, 1, 8, far, 0, far, 5, far, 2, 0, 7, far, far, far, 0};
  static const int32_t before[] = {-1, 2, 0, 1, -1, -1, -1, 1, -1, 2, -1, 1, -1, -1, -1, -1};
  float* const d_data = allocate(sizeof arcs);
  int32_t* const p_data = allocate(sizeof before);
  rigel_matrix d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, 4, 4);
  const rigel_matrix p = RIGEL_ROW_MAJOR(p_data, RIGEL_I32, 4, 4);
  rigel_closure_args args = closure_args("min_plus");
  rigel_closure_report report = empty_report();

  memcpy(d_data, arcs, sizeof arcs);
  OK(rigel_closure(handle, &args, &d, NULL, NULL));
  OK(rigel_synchronize(handle));
  CHECK(memcmp(d_data, paths, sizeof paths) == 0);

  memcpy(d_data, arcs, sizeof arcs);
  OK(rigel_closure(handle, &args, &d, &p, &report));
  CHECK(memcmp(d_data, paths, sizeof paths) == 0);
  CHECK(memcmp(p_data, before, sizeof before) == 0);
  CHECK(report.negative_cycle == 0 && report.vertex == -1 && report.batch == -1);

  /* With 3 -> 0 of -9 the cycle 0, 2, 1, 3 has the weight -1. */
  memcpy(d_data, arcs, sizeof arcs);
  d_data[12] = -9;
  OK(rigel_closure(handle, &args, &d, NULL, &report));
  CHECK(report.negative_cycle == 1 && report.vertex >= 0 && report.vertex < 4 && report.batch == 0);

  args = closure_args("max_min");
  d.type = RIGEL_I32;
  CHECK(sizeof(int32_t) == sizeof(float));
  {
    /* Widths: 0 -> 1 of 3, 1 -> 2 of 2, 0 -> 2 of 1: from 0 to 2 the wider way has 2. */
    static const int32_t widths[] = {0, 3, 1, 0, 0, 2, 0, 0, 0};
    int32_t* const w = (int32_t*)d_data;
    memcpy(w, widths, sizeof widths);
    d.rows = d.columns = d.row_stride = 3;
    OK(rigel_closure(handle, &args, &d, NULL, NULL));
    OK(rigel_synchronize(handle));
    CHECK(w[1] == 3 && w[2] == 2 && w[5] == 2 && w[3] == 0);
    CHECK(w[0] == RIGEL_I32_INFINITY && w[4] == w[0] && w[8] == w[0]); /* the empty path */
  }
}

/* Integers beyond half of the largest one are no arc; 0 -> 1 of 7, 1 -> 0 of -3. */
static void no_arcs_of_integers(rigel_handle* handle) {
  static const int32_t none = RIGEL_I32_INFINITY;
  int32_t* const d_data = allocate(9 * sizeof(int32_t));
  int32_t* const p_data = allocate(9 * sizeof(int32_t));
  const rigel_matrix d = RIGEL_ROW_MAJOR(d_data, RIGEL_I32, 3, 3), p = RIGEL_ROW_MAJOR(p_data, RIGEL_I32, 3, 3);
  const int32_t paths[] = {0, 7, none, -3, 0, none, none, none, 0};
  static const int32_t before[] = {-1, 0, -1, 1, -1, -1, -1, -1, -1};
  rigel_closure_args args = closure_args("min_plus");
  int tracks, i;
  for (tracks = 0; tracks < 2; ++tracks) {
    rigel_closure_report report = empty_report();
    for (i = 0; i < 9; ++i) d_data[i] = 2147483647;
    d_data[1] = 7;
    d_data[3] = -3;
    OK(rigel_closure(handle, &args, &d, tracks ? &p : NULL, &report));
    CHECK(report.negative_cycle == 0);
    CHECK(memcmp(d_data, paths, sizeof paths) == 0);
    if (tracks) CHECK(memcmp(p_data, before, sizeof before) == 0);
  }
}

/* The least product of 0 -> 1 of 0 and 1 -> 2 of 2 is 0; 2 reaches nothing, and 0 times infinity is no path. */
static void least_products(rigel_handle* handle) {
  static const float far = INFINITY;
  const float arcs[] = {far, 0, far, far, far, 2, far, far, far}, paths[] = {1, 0, 0, far, 1, 2, far, far, 1};
  float* const d_data = allocate(sizeof arcs);
  const rigel_matrix d = RIGEL_ROW_MAJOR(d_data, RIGEL_F32, 3, 3);
  rigel_closure_args args = closure_args("min_times");
  memcpy(d_data, arcs, sizeof arcs);
  OK(rigel_closure(handle, &args, &d, NULL, NULL));
  OK(rigel_synchronize(handle));
  CHECK(memcmp(d_data, paths, sizeof paths) == 0);
}

/* R. W. Floyd, Algorithm 97, on weights that are exact in any order. */
static void against_loops(rigel_handle* handle) {
  enum { n = 130 };
  static double expected[n * n];
  double* const d_data = allocate(n * n * sizeof(double));
  const rigel_matrix d = RIGEL_COLUMN_MAJOR(d_data, RIGEL_F64, n, n);
  rigel_closure_args args = closure_args("min_plus");
  size_t bytes = 0;
  int i, j, k, wrong = 0;
  for (i = 0; i < n * n; ++i) expected[i] = next_random() < 0.1 ? floor(next_random() * 1000) : INFINITY;
  memcpy(d_data, expected, sizeof expected);
  for (i = 0; i < n; ++i) expected[i * n + i] = 0;
  for (k = 0; k < n; ++k)
    for (i = 0; i < n; ++i)
      for (j = 0; j < n; ++j)
        if (expected[i * n + k] + expected[k * n + j] < expected[i * n + j])
          expected[i * n + j] = expected[i * n + k] + expected[k * n + j];
  args.block = 50;
  OK(rigel_closure_workspace_size(handle, &args, &d, NULL, &bytes));
  CHECK(bytes > 0);
  args.options.workspace = allocate(bytes);
  args.options.workspace_bytes = bytes;
  OK(rigel_closure(handle, &args, &d, NULL, NULL));
  OK(rigel_synchronize(handle));
  for (i = 0; i < n * n; ++i) wrong += d_data[i] != expected[i];
  CHECK(wrong == 0);
}

/* A path 0 -> 1 -> … -> 69: i reaches j exactly if i <= j. */
static void reachability(rigel_handle* handle) {
  enum { n = 70, words = 3 };
  uint32_t* const d_data = allocate(n * words * sizeof(uint32_t));
  const rigel_matrix d = RIGEL_ROW_MAJOR(d_data, RIGEL_U32, n, words);
  rigel_transitive_closure_args args;
  size_t bytes = 0;
  int i, j, wrong = 0;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.block = 32;
  for (i = 0; i + 1 < n; ++i) d_data[i * words + (i + 1) / 32] |= (uint32_t)1 << (i + 1) % 32;
  OK(rigel_transitive_closure_workspace_size(handle, &args, &d, &bytes));
  CHECK(bytes > 0);
  OK(rigel_transitive_closure(handle, &args, &d));
  OK(rigel_synchronize(handle));
  for (i = 0; i < n; ++i)
    for (j = 0; j < 32 * words; ++j) wrong += (d_data[i * words + j / 32] >> j % 32 & 1) != (i <= j && j < n);
  CHECK(wrong == 0);
}

void test_closures(rigel_handle* handle) {
  by_hand(handle);
  no_arcs_of_integers(handle);
  least_products(handle);
  against_loops(handle);
  reachability(handle);
}
