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

rigel_code rigel_ranges_create(rigel_handle* handle, int64_t m, int64_t n, const int64_t* rows, int64_t rows_count, const int64_t* slices,
                               const int64_t* columns, int64_t columns_count, rigel_ranges** ranges) {
  rigel_code (*create)(rigel_handle*, int64_t, int64_t, const int64_t*, int64_t, const int64_t*, const int64_t*, int64_t, rigel_ranges**) =
      function("rigel_ranges_create");
  for (int i = count; i-- > 0;)  /* the last one: others at this address are gone */
    if (known[i].handle == handle) {
      note("ranges", known[i].name);
      break;
    }
  return create(handle, m, n, rows, rows_count, slices, columns, columns_count, ranges);
}

void rigel_ranges_destroy(rigel_ranges* ranges) {
  void (*destroy)(rigel_ranges*) = function("rigel_ranges_destroy");
  note("destroy", "ranges");
  destroy(ranges);
}
