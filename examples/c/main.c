/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Nearest neighbours of 1797 handwritten digits, in C: which metric finds the right digit most often? The program is compiled by a
 * plain C compiler, and knows of Rigel only rigel.h and librigel_c.so.
 *
 * usage: digits_c <digits.csv> [<metric> <images that must be right>]… */
#include <rigel/rigel.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { features = 64, most_images = 2000 };

static float pixels[most_images][features];
static int digits[most_images];
static float distances[most_images * most_images];

static void stop(const char* what, const char* why) {
  fprintf(stderr, "digits_c: %s: %s\n", what, why);
  exit(1);
}

/* Each line has the pixels of an image, then its digit. Returns the number of images. */
static int read_images(const char* path) {
  FILE* const file = fopen(path, "r");
  int images = 0, k = 0, value = 0;
  if (!file) stop(path, "cannot be read");
  while (images < most_images && fscanf(file, "%d%*[,\n]", &value) == 1) {
    if (k < features) {
      pixels[images][k++] = (float)value;
    } else {
      digits[images++] = value;
      k = 0;
    }
  }
  fclose(file);
  if (images == 0 || k != 0) stop(path, "does not hold lines of 65 integers");
  return images;
}

/* The number of images whose nearest other image, the first one of a tie, shows the same digit. */
static int count_right(rigel_handle* handle, int images, const char* metric) {
  const rigel_matrix x = RIGEL_ROW_MAJOR(pixels, RIGEL_F32, images, features);
  const rigel_matrix d = RIGEL_ROW_MAJOR(distances, RIGEL_F32, images, images);
  rigel_cdist_args args = {0};
  int i, j, right = 0;

  args.size = sizeof args;
  args.metric = metric;
  args.epilogue.steps_count = 1; /* an image is not its own neighbour */
  args.epilogue.steps[0].kind = RIGEL_ADD_DIAGONAL;
  args.epilogue.steps[0].x = INFINITY;
  if (rigel_cdist(handle, &args, &x, &x, &d) != RIGEL_OK) stop(metric, rigel_last_error());
  if (rigel_synchronize(handle) != RIGEL_OK) stop(metric, rigel_last_error());

  for (i = 0; i < images; ++i) {
    const float* const row = distances + (size_t)i * (size_t)images;
    int nearest = 0;
    for (j = 1; j < images; ++j)
      if (row[j] < row[nearest]) nearest = j;
    right += digits[nearest] == digits[i];
  }
  return right;
}

int main(int argc, char** argv) {
  rigel_handle* handle = NULL;
  rigel_code code;
  int images, i, wrong = 0;
  if (argc < 2 || argc % 2 != 0) stop("usage", "digits_c <digits.csv> [<metric> <images that must be right>]...");
  images = read_images(argv[1]);

  code = rigel_create(-1, NULL, &handle);
  if (code == RIGEL_DEVICE) {
    printf("skipped: %s\n", rigel_last_error());
    return 77;
  }
  if (code != RIGEL_OK) stop("the host", rigel_last_error());
  for (i = 2; i < argc; i += 2) {
    const int right = count_right(handle, images, argv[i]);
    printf("%-12s %d of %d\n", argv[i], right, images);
    wrong += right != atoi(argv[i + 1]);
  }
  rigel_destroy(handle);
  return wrong != 0;
}
