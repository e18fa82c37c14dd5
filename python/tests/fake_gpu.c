/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loaded before librigel_c.so, whose name is LIBRARY: handles of CUDA devices 0 to 3 are handles of the host, and a log says which were made, and which were
 * waited for. */
#include <dlfcn.h>
#include <rigel/rigel.h>
#include <stdio.h>
#include <string.h>

enum { most = 256 };
static struct {
  rigel_handle* handle;
  char name[48];
} known[most];
static int count;
static char text[8192];

const char* fake_gpu_log(void) { return text; }
void fake_gpu_clear(void) { text[0] = 0; }

/* A function of the library, which is not in the scope that RTLD_NEXT searches. */
static void* function(const char* name) { return dlsym(dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD), name); }

static void note(const char* what, const char* name) {
  if (strlen(text) + 100 < sizeof text) sprintf(text + strlen(text), "%s %s;", what, name);
}

rigel_code rigel_create(int32_t device, void* stream, rigel_handle** handle) {
  rigel_code (*create)(int32_t, void*, rigel_handle**) = function("rigel_create");
  if (device < 0 || device > 3) return create(device, stream, handle);
  const rigel_code code = create(-1, NULL, handle);
  if (code == RIGEL_OK && count < most) {
    known[count].handle = *handle;
    sprintf(known[count].name, "%d:%ld", (int)device, (long)stream);
    note("create", known[count++].name);
  }
  return code;
}

rigel_code rigel_synchronize(rigel_handle* handle) {
  for (int i = 0; i < count; ++i)
    if (known[i].handle == handle) note("wait", known[i].name);
  rigel_code (*synchronize)(rigel_handle*) = function("rigel_synchronize");
  return synchronize(handle);
}
