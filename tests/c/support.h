/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the tests in C share: checks, memory that host and device can access, and the device that is tested. */
#ifndef RIGEL_TESTS_C_SUPPORT_H
#define RIGEL_TESTS_C_SUPPORT_H

#include <rigel/rigel.h>

#include <stddef.h>

extern int checks, failures;

#define CHECK(condition) check((condition) != 0, #condition, "", __FILE__, __LINE__)
/* A call that must succeed. */
#define OK(call) check_ok((call), #call, __FILE__, __LINE__)
/* A call that must fail with this code, and with a message that has all of up to three texts; NULL: no text. */
#define FAILS(call, code, first, second, third) check_failure((call), (code), #call, first, second, third, __FILE__, __LINE__)

void check(int condition, const char* text, const char* message, const char* file, int line);
void check_ok(rigel_code code, const char* call, const char* file, int line);
void check_failure(rigel_code actual, rigel_code code, const char* call, const char* first, const char* second, const char* third,
                   const char* file, int line);

/* Makes -1 (the host) or a GPU the tested device. 0 if there is no such device. */
int use_device(int device);
/* Whether the tested device is the host. */
int tests_host(void);
/* Memory of zeros that the host and the tested device can access, aligned to 256 bytes, until the program ends. */
void* allocate(size_t bytes);
/* A new stream of the tested device; NULL on the host. */
void* new_stream(void);

/* Numbers from 0 to 1, always the same ones. */
double next_random(void);

/* The groups of tests. */
void test_calls(rigel_handle* handle);
void test_distances(rigel_handle* handle);
void test_kernels(rigel_handle* handle);
void test_gradients(rigel_handle* handle);
void test_linear(rigel_handle* handle);
void test_reductions(rigel_handle* handle);
void test_iterations(rigel_handle* handle);
void test_solves(rigel_handle* handle);
void test_closures(rigel_handle* handle);
void test_texts(rigel_handle* handle);
void test_derivatives(rigel_handle* handle);
void test_errors(rigel_handle* handle);
void test_handles(int device);

#endif
