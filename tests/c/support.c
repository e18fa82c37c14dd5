/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int checks = 0, failures = 0;

static int device = -1;

void check(int condition, const char* text, const char* message, const char* file, int line) {
  ++checks;
  if (condition) return;
  ++failures;
  printf("%s:%d: failed on device %d: %s %s\n", file, line, device, text, message);
}

void check_ok(rigel_code code, const char* call, const char* file, int line) {
  check(code == RIGEL_OK, call, rigel_last_error(), file, line);
}

void check_failure(rigel_code actual, rigel_code code, const char* call, const char* first, const char* second, const char* third,
                   const char* file, int line) {
  const char* const texts[] = {first, second, third};
  int i;
  check(actual == code, call, rigel_last_error(), file, line);
  for (i = 0; i < 3; ++i)
    if (texts[i]) check(strstr(rigel_last_error(), texts[i]) != NULL, texts[i], rigel_last_error(), file, line);
}

/* Functions of the CUDA driver, by name: the tests are built without CUDA. */
typedef int (*integers)(void*, int);
typedef int (*allocates)(unsigned long long*, size_t, unsigned);

static void* driver = NULL;

static void find(void* function, const char* name) {
  void* const symbol = dlsym(driver, name);
  memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast between objects and functions */
}

int use_device(int which) {
  int (*initialise)(unsigned), (*count)(int*), (*get)(int*, int), (*retain)(void**, int), (*make_current)(void*);
  int devices = 0, ordinal = 0;
  void* context = NULL;
  device = which;
  if (which < 0) return 1;
  if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return 0;
  find(&initialise, "cuInit");
  find(&count, "cuDeviceGetCount");
  find(&get, "cuDeviceGet");
  find(&retain, "cuDevicePrimaryCtxRetain");
  find(&make_current, "cuCtxSetCurrent");
  if (!initialise || !count || !get || !retain || !make_current) return 0;
  return initialise(0) == 0 && count(&devices) == 0 && which < devices && get(&ordinal, which) == 0 &&
         retain(&context, ordinal) == 0 && make_current(context) == 0;
}

int tests_host(void) { return device < 0; }

void* allocate(size_t bytes) {
  allocates managed;
  unsigned long long address = 0;
  char* memory;
  if (device < 0) {
    memory = calloc(bytes + 256, 1);
    if (!memory) abort();
    return memory + (256 - (size_t)memory % 256) % 256;
  }
  find(&managed, "cuMemAllocManaged");
  if (!managed || managed(&address, bytes, 1) != 0) abort();
  memory = (char*)(size_t)address;
  memset(memory, 0, bytes);
  return memory;
}

void* new_stream(void) {
  integers create;
  void* stream = NULL;
  if (device < 0) return NULL;
  find(&create, "cuStreamCreate");
  if (!create || create(&stream, 1) != 0) abort();
  return stream;
}

double next_random(void) {
  static unsigned long long state = 1;
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (double)(state >> 11) / 9007199254740992.0;
}
