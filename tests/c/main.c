/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of the C interface, in C: on the host and on the first GPU.
 * With --json it prints an array of the library's JSON texts instead, which listings.py reads. */
#include "support.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static int print_json(void) {
  rigel_handle* handle = NULL;
  float numbers[4][4] = {{0}};
  const rigel_matrix a = RIGEL_ROW_MAJOR(numbers[0], RIGEL_F32, 2, 2), b = RIGEL_ROW_MAJOR(numbers[1], RIGEL_F32, 2, 2),
                     c = RIGEL_ROW_MAJOR(numbers[2], RIGEL_F32, 2, 2), d = RIGEL_ROW_MAJOR(numbers[3], RIGEL_F32, 2, 2);
  static const rigel_parameter length = {"length", 1};
  rigel_contract_args contract;
  rigel_cdist_args cdist;
  rigel_kernel_matrix_args kernel;
  rigel_kernel_matrix_gradient_args gradient;
  rigel_cdist_gradient_args of_distances;
  rigel_solve_args solve;
  rigel_reduce_args reduce;
  rigel_reduce_distances_args distances;
  enum { count = 10 };
  char* texts[count] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  int i;
  setlocale(LC_ALL, "");  /* listings.py chooses one with decimal commas */
  memset(&contract, 0, sizeof contract);
  contract.size = sizeof contract;
  contract.semiring = "plus_times";
  memset(&cdist, 0, sizeof cdist);
  cdist.size = sizeof cdist;
  cdist.metric = "cosine";
  memset(&kernel, 0, sizeof kernel);
  kernel.size = sizeof kernel;
  kernel.kernel = "laplace";
  kernel.metric = "manhattan";
  kernel.hyperparameters = &length;
  kernel.hyperparameters_count = 1;
  memset(&gradient, 0, sizeof gradient);
  gradient.size = sizeof gradient;
  gradient.kernel = "laplace";
  gradient.metric = "manhattan";
  gradient.hyperparameters = &length;
  gradient.hyperparameters_count = 1;
  memset(&of_distances, 0, sizeof of_distances);
  of_distances.size = sizeof of_distances;
  memset(&solve, 0, sizeof solve);
  solve.size = sizeof solve;
  memset(&reduce, 0, sizeof reduce);
  reduce.size = sizeof reduce;
  reduce.semiring = "min_plus";
  reduce.reduction.reducer = RIGEL_SMALLEST;
  reduce.reduction.k = 2;
  memset(&distances, 0, sizeof distances);
  distances.size = sizeof distances;
  distances.metric = "cosine";
  distances.reduction = reduce.reduction;
  if (rigel_create(-1, NULL, &handle) != RIGEL_OK) {
    printf("skipped: %s\n", rigel_last_error());
    return 77;
  }
  OK(rigel_kernels(NULL, &texts[0]));
  OK(rigel_kernels("reference", &texts[1]));
  OK(rigel_explain_contract(handle, &contract, &a, &b, &c, &texts[2]));
  OK(rigel_explain_cdist(handle, &cdist, &a, &b, &c, &texts[3]));
  OK(rigel_explain_kernel_matrix(handle, &kernel, &a, &b, &c, &texts[4]));
  OK(rigel_explain_cdist_gradient(handle, &of_distances, &a, &a, &a, &b, &c, &texts[5]));
  OK(rigel_explain_lu_solve(handle, &solve, &a, &b, &c, NULL, &texts[6]));
  OK(rigel_explain_kernel_matrix_gradient(handle, &gradient, &a, &a, &b, NULL, &c, &d, &texts[7]));
  OK(rigel_explain_reduce(handle, &reduce, &a, &b, &c, NULL, &texts[8]));
  OK(rigel_explain_reduce_distances(handle, &distances, &a, &b, &c, NULL, &texts[9]));
  for (i = 0; i < count; ++i) {
    printf("%c%s\n", i == 0 ? '[' : ',', texts[i] ? texts[i] : "null");
    rigel_free(texts[i]);
  }
  printf("]\n");
  rigel_destroy(handle);
  return failures != 0;
}

int main(int argc, char** argv) {
  int device;
  if (argc > 1 && strcmp(argv[1], "--json") == 0) return print_json();
  CHECK(strcmp(rigel_last_error(), "") == 0);
  CHECK(rigel_version() >= 100);
  for (device = -1; device <= 0; ++device) {
    rigel_handle* handle = NULL;
    rigel_code code;
    if (!use_device(device)) {
      printf("skipped: device %d: no GPU here\n", device);
      continue;
    }
    code = rigel_create(device, new_stream(), &handle);
    if (device < 0 && code == RIGEL_DEVICE) {
      printf("skipped: %s\n", rigel_last_error());
      return 77;
    }
    if (device == 0 && code == RIGEL_UNSUPPORTED) {
      printf("skipped: device 0: %s\n", rigel_last_error());
      continue;
    }
    OK(code);
    if (!handle) continue;
    test_calls(handle);
    test_distances(handle);
    test_kernels(handle);
    test_gradients(handle);
    test_linear(handle);
    test_reductions(handle);
    test_iterations(handle);
    test_solves(handle);
    test_closures(handle);
    test_texts(handle);
    test_derivatives(handle);
    test_errors(handle);
    rigel_destroy(handle);
    test_handles(device);
  }
  printf("%d of %d checks failed\n", failures, checks);
  return failures != 0;
}
