/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rigel's C interface, librigel_c.so: contractions, distances, kernel matrices, their gradients, reductions, iterations over these, linear
 * layers, linear systems and closures on raw pointers. C99 and later, C++, and any language that calls C. docs/semirings.md, distances.md, kernels.md,
 * reductions.md and epilogues.md list what there is; docs/numerics.md says what results mean.
 *
 * Errors. A function returns RIGEL_OK or another code, and rigel_last_error() then has the words: the argument, its extents and
 * what was expected. A call that fails writes nothing, except to the message. No exception leaves the library.
 *
 * Structs. Those that begin with `size` hold sizeof(that struct). A member that is 0 or NULL has the default that its comment
 * states. Reserved members are 0. A struct of another size, and a reserved member that is not 0, are refused.
 *
 * Threads. Any thread may call any function. One handle, and one stream, serve one thread at a time; different handles may be used
 * at the same time. Calls on the host take turns. If Kokkos's host space is Threads, host calls come from the thread that
 * initialised Kokkos. Do not call from inside a parallel region of Kokkos.
 *
 * Time. Calls on a GPU are asynchronous on the handle's stream; the current device of the calling thread stays as it is. Calls on a
 * host are complete when they return.
 *
 * Kokkos is linked into the library and invisible outside, so that the caller needs none. If librigel_c.so was built on a shared
 * Kokkos, it is the caller's own. rigel_create() initialises Kokkos if nobody has; the library then finalises it when the program
 * ends.
 */
#ifndef RIGEL_RIGEL_H
#define RIGEL_RIGEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- codes ------------------------------------------------------------------------------------------------------------- */

typedef int32_t rigel_code;
enum {
  RIGEL_OK = 0,
  RIGEL_INVALID_ARGUMENT = 1, /* extents, strides, overlaps, sizes, null pointers, options */
  RIGEL_UNSUPPORTED = 2,      /* no kernel covers the call, or the named one does not */
  RIGEL_NOT_FOUND = 3,        /* no semiring, metric, parameter or kernel has that name; the message lists the names */
  RIGEL_DUPLICATE = 4,        /* of C++'s register_kernel() only */
  RIGEL_OUT_OF_MEMORY = 5,
  RIGEL_DEVICE = 6,            /* the CUDA runtime reported a failure */
  RIGEL_INTERNAL = 100,        /* any other exception */
  RIGEL_UNSUPPORTED_ARCH = 101 /* the GPU is older than sm_80, or the library has no code for it; the message names it */
};

/* The message of this thread's last call that failed; "" if none has. It stays until the next failure in this thread. */
const char* rigel_last_error(void);

/* The version of the library, 10000·major + 100·minor + patch. */
int32_t rigel_version(void);

/* ---- handles ----------------------------------------------------------------------------------------------------------- */

/* Where calls run. */
typedef struct rigel_handle rigel_handle;

/* device   a CUDA device's ordinal, or -1 for the host (Kokkos's default host execution space)
 * stream   a cudaStream_t of that device, which outlives the handle; NULL: the legacy default stream. NULL for the host
 * handle   receives the handle, or NULL if the call fails
 * RIGEL_INVALID_ARGUMENT if there is no such device or the stream is of another one; RIGEL_UNSUPPORTED if device >= 0 and the
 * library was built without CUDA; RIGEL_UNSUPPORTED_ARCH; RIGEL_DEVICE if a library that was built with CUDA finds no GPU. */
rigel_code rigel_create(int32_t device, void* stream, rigel_handle** handle);

/* Destroys a handle; nothing if it is NULL. Work that is on its stream goes on. */
void rigel_destroy(rigel_handle* handle);

/* Waits for the work on the handle's stream. RIGEL_DEVICE if some of it failed. */
rigel_code rigel_synchronize(rigel_handle* handle);

/* Reserves workspace for calls that are captured in a CUDA graph, and releases it: presize() and release_presized() of
 * rigel/presize.hpp. */
rigel_code rigel_presize(rigel_handle* handle, size_t bytes);
rigel_code rigel_release_presized(rigel_handle* handle);

/* Returns the idle memory of the library's pool to the system. */
void rigel_release_workspaces(void);

/* ---- operands ---------------------------------------------------------------------------------------------------------- */

typedef int32_t rigel_type;
enum {
  RIGEL_F16 = 1, /* IEEE 754 binary16 */
  RIGEL_BF16 = 2,
  RIGEL_F32 = 3,
  RIGEL_F64 = 4,
  RIGEL_I8 = 5,
  RIGEL_U8 = 6,
  RIGEL_I16 = 7,
  RIGEL_I32 = 8,
  RIGEL_I64 = 9,
  RIGEL_U32 = 10,
  RIGEL_U64 = 11
};

/* What stands for infinity in integers: no path in min_plus, the empty path in max_min. Floating-point numbers have INFINITY. */
#define RIGEL_I32_INFINITY (INT32_MAX / 2)
#define RIGEL_I64_INFINITY (INT64_MAX / 2)

/* A batch of strided matrices: element (l, i, j) is at data + l*batch_stride + i*row_stride + j*column_stride elements. The memory is
 * accessible from the handle's device, and aligned to its elements. Strides are not negative. */
typedef struct rigel_matrix {
  size_t size;
  void* data;                                    /* inputs are only read */
  int64_t batches;                               /* at least 1; a single matrix serves all batches */
  int64_t rows, columns;                         /* may be 0 */
  int64_t batch_stride, row_stride, column_stride; /* in elements */
  rigel_type type;
  int32_t reserved;
} rigel_matrix;

/* Initialisers of a contiguous matrix: rigel_matrix a = RIGEL_ROW_MAJOR(data, RIGEL_F32, m, k); */
#define RIGEL_ROW_MAJOR(data, type, rows, columns) {sizeof(rigel_matrix), (data), 1, (rows), (columns), 0, (columns), 1, (type), 0}
#define RIGEL_COLUMN_MAJOR(data, type, rows, columns) {sizeof(rigel_matrix), (data), 1, (rows), (columns), 0, 1, (rows), (type), 0}

/* A hyperparameter of a semiring, or a parameter of a metric. */
typedef struct rigel_parameter {
  const char* name;
  double value;
} rigel_parameter;

/* Values of a hyperparameter of a semiring or an epilogue from text that are in memory, from which kernels read them when they run, so that a
 * replayed graph sees new ones: a matrix of 1 x 1 for each matrix of C, or one for all. Their type is that of the sums (of several fields: of
 * a number as accumulator), of an epilogue the wider one of args.argument and args.result, f32 of 16 bits. */
typedef struct rigel_parameter_view {
  const char* name;
  rigel_matrix matrix;
} rigel_parameter_view;

/* ---- epilogues --------------------------------------------------------------------------------------------------------- */

/* What a step makes of a value v with its parameters x and y. */
enum {
  RIGEL_SCALE = 1,        /* v*x */
  RIGEL_ADD = 2,          /* v + x; with x from a row, a column or a matrix: bias, residual */
  RIGEL_POWER = 3,        /* v^x */
  RIGEL_EXPONENTIAL = 4,  /* exp(x*v) */
  RIGEL_LAPLACE = 5,      /* exp(-v/x) */
  RIGEL_GAUSSIAN = 6,     /* exp(-v/(2 x^2)) */
  RIGEL_RECIPROCAL = 7,   /* y/(x + v) */
  RIGEL_CLAMP = 8,        /* min(max(v, x), y), y if x > y */
  RIGEL_THRESHOLD = 9,    /* 0 if |v| < x, else v */
  RIGEL_ADD_DIAGONAL = 10, /* v + x if n - m = offset, else v */
  RIGEL_RELU = 11,
  RIGEL_SIGMOID = 12,
  RIGEL_TANH = 13,
  RIGEL_SILU = 14,
  RIGEL_GELU = 15,
  RIGEL_GELU_TANH = 16,
  RIGEL_ANY_BIT = 17, /* 1 if any bit is set, else 0 */
  RIGEL_PARITY = 18,  /* the number of set bits modulo 2; the first step, of integers */
  RIGEL_MATERN32 = 19, /* (1 + u)*exp(-u), u = sqrt(3)*v/x */
  RIGEL_MATERN52 = 20, /* (1 + u + u^2/3)*exp(-u), u = sqrt(5)*v/x */
  RIGEL_RATIONAL_QUADRATIC = 21 /* (1 + v/x)^-x */
};

enum { RIGEL_MOST_STEPS = 8, RIGEL_MOST_SOURCES = 4 };

/* A step of an epilogue: its kind, and its parameters x and y. */
typedef struct rigel_step {
  int32_t kind;
  int32_t x_source, y_source; /* 0: the number x or y; i: sources[i - 1] of the program. y is in memory only if x is */
  int32_t reserved;
  double x, y;
  int64_t offset; /* of RIGEL_ADD_DIAGONAL */
} rigel_step;

/* Steps, applied to each result before it is stored, the first one first. A source is f16, bf16, f32, f64 or i32 numbers in memory,
 * which kernels read when they run: a matrix of C's extents; a row (rows = 1), a column (columns = 1) or one number (both), which serve
 * all others. batches is 1 or C's. Several steps may read one source. A source that is C itself, element by element, is a residual;
 * others do not overlap C. */
typedef struct rigel_program {
  int32_t steps_count, sources_count;
  rigel_step steps[RIGEL_MOST_STEPS];
  rigel_matrix sources[RIGEL_MOST_SOURCES];
} rigel_program;

/* ---- options ----------------------------------------------------------------------------------------------------------- */

/* What a call may require of its kernel: a sum of these. */
enum { RIGEL_REFERENCE_BITS = 1, RIGEL_REPEATABLE = 2, RIGEL_BATCH_INVARIANT = 4 };

/* The least precise terms that a call accepts. */
enum {
  RIGEL_PRECISION_AUTOMATIC = 0,
  RIGEL_PRECISION_ROUNDED = 1,
  RIGEL_PRECISION_ACCUMULATOR = 2,
  RIGEL_PRECISION_EXACT_PRODUCTS = 3,
  RIGEL_PRECISION_PROMOTED = 4,
  RIGEL_PRECISION_SPLIT = 5,
  RIGEL_PRECISION_BF16X3 = 6,
  RIGEL_PRECISION_TF32 = 7,
  RIGEL_PRECISION_OPERANDS = 8
};

/* Options of every call. */
typedef struct rigel_options {
  const char* kernel;     /* a kernel's name or its leading part up to a '.'; NULL: the fastest */
  void* workspace;        /* memory of the handle's device, aligned to 256 bytes, until the work is complete; NULL: from the pool */
  size_t workspace_bytes; /* at least what the function's …_workspace_size says */
  uint32_t require;
  int32_t precision;
  int64_t reserved[2];
} rigel_options;

/* ---- semirings from text ------------------------------------------------------------------------------------------------ */

/* A semiring that is text, compiled in process when a call first needs it. docs/runtime.md describes the language, and its cache. */
typedef struct rigel_semiring rigel_semiring;

/* A field of an accumulator: RIGEL_F32 or RIGEL_I32, of f64 and i64 elements RIGEL_F64 or RIGEL_I64. */
typedef struct rigel_field {
  const char* name;
  rigel_type type;
  int32_t reserved;
} rigel_field;

/* What a semiring from text is. Each text is an expression, or statements that end with `return`. */
typedef struct rigel_semiring_args {
  size_t size;
  const char* name;      /* in explanations and messages: letters, digits and '_'; NULL: "text" */
  rigel_type element;    /* RIGEL_F16, RIGEL_BF16, RIGEL_F32, RIGEL_F64, RIGEL_I32 or RIGEL_I64; 0: RIGEL_F32 */
  int32_t commutative;   /* 1: a (x) b = b (x) a, which lets kernels compute the transpose */
  const char* multiply;  /* a (x) b, over a and b */
  const char* add;       /* x (+) y, over x and y */
  const char* identity;  /* the identity of (+), a constant; NULL if add is x + y, min(x, y) or max(x, y) */
  const char* step;      /* x (+) (a (x) b) in one, over x, a and b; NULL: add of multiply */
  const char* result;    /* what C receives of an accumulator x; NULL: x, if that is a number */
  const rigel_parameter* parameters; /* hyperparameters, which all texts but identity may read, and their first values: at most 16 */
  int32_t parameters_count;
  int32_t fields_count;
  const rigel_field* fields; /* 2 to 4, of which the accumulator consists; none: it is a number of the element's type, f32 of 16 bits */
  rigel_type result_type;    /* of result, one that a field may have; 0: that of a number as accumulator */
  int32_t reserved_flags;
  int64_t reserved[2];
} rigel_semiring_args;

/* Reads and checks the texts; nothing is compiled yet. semiring receives the object, or NULL if the call fails. RIGEL_INVALID_ARGUMENT, with the
 * line, the column and a caret under the place in the text, if one is none of the language. */
rigel_code rigel_semiring_create(const rigel_semiring_args* args, rigel_semiring** semiring);

/* Destroys it; nothing if it is NULL. No call that uses it runs. */
void rigel_semiring_destroy(rigel_semiring* semiring);

/* Sets a hyperparameter, which compiles nothing. No call that uses the semiring runs. RIGEL_NOT_FOUND if it has none of that name. */
rigel_code rigel_semiring_set(rigel_semiring* semiring, const char* name, double value);

/* Compiles it for the handle's device, so that no call has to. RIGEL_UNSUPPORTED if librigel_runtime.so, which compiles texts, is
 * missing, or if texts do not run on the device; the message says which. */
rigel_code rigel_semiring_compile(rigel_semiring* semiring, rigel_handle* handle);

/* An epilogue that is text: what C receives of each result x of a sum. */
typedef struct rigel_epilogue rigel_epilogue;

/* What an epilogue from text is. */
typedef struct rigel_epilogue_args {
  size_t size;
  const char* name;    /* in messages: letters, digits and '_'; NULL: "text" */
  const char* body;    /* an expression, or statements that end with `return`, over x, its place m, n and batch in C, and hyperparameters */
  rigel_type argument; /* of x: RIGEL_F32, also for 16-bit results, RIGEL_F64, RIGEL_I32 or RIGEL_I64; 0: RIGEL_F32 */
  rigel_type result;   /* of C's elements: one of these, or RIGEL_F16 or RIGEL_BF16, rounded once; 0: that of x */
  const rigel_parameter* parameters; /* hyperparameters and their first values, at most 16 */
  int32_t parameters_count;
  int32_t reserved_flags;
  int64_t reserved[4];
} rigel_epilogue_args;

/* As of semirings. rigel_epilogue_compile() compiles what calls with this semiring, or if it is NULL with plus_times of elements of this type,
 * need on the handle's device; with a semiring, `element` is 0. */
rigel_code rigel_epilogue_create(const rigel_epilogue_args* args, rigel_epilogue** epilogue);
void rigel_epilogue_destroy(rigel_epilogue* epilogue);
rigel_code rigel_epilogue_set(rigel_epilogue* epilogue, const char* name, double value);
rigel_code rigel_epilogue_compile(rigel_epilogue* epilogue, rigel_handle* handle, const rigel_semiring* semiring, rigel_type element);

/* How texts became kernels since the program started: by LLVM, from the disk cache, or found in memory by an equal text. */
typedef struct rigel_statistics {
  size_t size;
  uint64_t compiled, from_disk, from_memory;
} rigel_statistics;

rigel_code rigel_semiring_statistics(rigel_statistics* statistics);

/* ---- contract ---------------------------------------------------------------------------------------------------------- */

/* Arguments of rigel_contract() other than operands. */
typedef struct rigel_contract_args {
  size_t size;
  const char* semiring;
  const rigel_parameter* parameters; /* hyperparameters; those that are not named have their defaults */
  int32_t parameters_count;
  rigel_type accumulator; /* 0: the element type's usual one */
  int32_t accumulate;     /* 1: the sum starts with the value in C */
  int32_t may_cancel;     /* 1: l2_squared's errors may be relative to the norms of the rows */
  rigel_program epilogue;
  rigel_options options;
  const rigel_semiring* from_text; /* a semiring from text, and `semiring` is NULL; else NULL. Hyperparameters that are not named have
                                      their values in it. The first call compiles it: RIGEL_UNSUPPORTED as of rigel_semiring_compile() */
  const rigel_epilogue* epilogue_from_text; /* of a semiring from text or of plus_times, and `epilogue` is empty; else NULL */
  const rigel_parameter* epilogue_parameters; /* its hyperparameters; those that are not named have their values in it */
  int32_t epilogue_parameters_count;
  int32_t parameter_views_count;
  const rigel_parameter_view* parameter_views; /* hyperparameters of from_text that are in memory */
  const rigel_parameter_view* epilogue_parameter_views; /* those of epilogue_from_text */
  int32_t epilogue_parameter_views_count;
  int32_t reserved;
} rigel_contract_args;

/* C(l,m,n) = epilogue( (+)_k A(l,m,k) (x) B(l,k,n) ). a: M x K and b: K x N, of one type; c: M x N, which overlaps neither. */
rigel_code rigel_contract(rigel_handle* handle, const rigel_contract_args* args, const rigel_matrix* a, const rigel_matrix* b,
                          const rigel_matrix* c);
rigel_code rigel_contract_workspace_size(rigel_handle* handle, const rigel_contract_args* args, const rigel_matrix* a,
                                         const rigel_matrix* b, const rigel_matrix* c, size_t* bytes);

/* The type that a semiring's results have before an epilogue, of elements and an accumulator as in rigel_contract_args. C may have it, or
 * another one. */
rigel_code rigel_result_type(const char* semiring, rigel_type element, rigel_type accumulator, rigel_type* result);

/* ---- cdist ------------------------------------------------------------------------------------------------------------- */

/* Arguments of rigel_cdist() other than operands. */
typedef struct rigel_cdist_args {
  size_t size;
  /* Of all numbers: manhattan, euclidean, squared_euclidean, chebyshev, minkowski, inner_product, cosine, correlation, hamming,
   * mahalanobis, hellinger, jensenshannon, jaccard, dice, rogerstanimoto, russellrao, sokalsneath, yule.
   * Of packed words, u8, u32 or u64: bit_hamming, bit_jaccard; of u32: bit_dice, bit_rogerstanimoto, bit_russellrao, bit_sokalsneath,
   * bit_yule.
   * Of f32 and f64: seuclidean, weighted_minkowski, minkowski_with_epsilon, haversine, canberra, braycurtis, kl_divergence. */
  const char* metric;
  const rigel_parameter* parameters; /* p of minkowski, weighted_minkowski and minkowski_with_epsilon, 2 if it is not named; epsilon of
                                        the last, 0 if it is not named */
  int32_t parameters_count;
  int32_t skip_epilogue; /* 1: without the metric's own last step, as a root */
  int32_t may_cancel;    /* 1: errors of Euclidean distances may be relative to the norms of the rows */
  int32_t reserved_flags;
  rigel_program epilogue; /* after the metric's own */
  rigel_options options;
  /* What a metric reads when it runs, of f32, or f64 if x holds f64, i32 or i64; d does not overlap it. mahalanobis: L, K x R, of the
   * inverse covariance matrix L*transposed(L). seuclidean: 1 x K variances. weighted_minkowski: 1 x K weights, none negative. NULL for
   * all others. */
  const rigel_matrix* metric_matrix;
  int64_t reserved[3];
} rigel_cdist_args;

/* D(l,m,n) = epilogue( metric(X(l,m,:), Z(l,n,:)) ). x: M x K and z: N x K, of one type; d: M x N, which overlaps neither.
 * Distances of integers do not wrap, unless d holds integers (docs/numerics.md). X from itself, the same data twice, is symmetric with a
 * diagonal of 0, of codes too. */
rigel_code rigel_cdist(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x, const rigel_matrix* z,
                       const rigel_matrix* d);
rigel_code rigel_cdist_workspace_size(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x,
                                      const rigel_matrix* z, const rigel_matrix* d, size_t* bytes);

/* ---- kernel matrices --------------------------------------------------------------------------------------------------- */

/* Arguments of rigel_kernel_matrix() other than operands. d is a distance, and q = x.z or, of "cosine", 1 less the metric's distance:
 *
 *   laplace, matern12    exp(-d/length)
 *   gaussian             exp(-d^2/(2 bandwidth^2))
 *   matern32             (1 + u)*exp(-u), u = sqrt(3)*d/length
 *   matern52             (1 + u + u^2/3)*exp(-u), u = sqrt(5)*d/length
 *   rational_quadratic   (1 + d^2/(2 alpha length^2))^-alpha
 *   polynomial           (scale*q + offset)^degree; scale and offset are 1 if they are not named
 *   sigmoid              tanh(scale*q + offset); offset is 0 if it is not named
 *   cosine               q
 *
 * Lengths, bandwidths, alpha and degrees are positive. */
typedef struct rigel_kernel_matrix_args {
  size_t size;
  const char* kernel;
  const rigel_parameter* hyperparameters; /* the kernel's; those without a default are named */
  const char* metric; /* as in rigel_cdist_args, which the kernel is one of: inner_product of polynomial and sigmoid, cosine or
                         correlation of cosine; else any but inner_product and squared_euclidean */
  const rigel_parameter* parameters; /* the metric's */
  int32_t hyperparameters_count;
  int32_t parameters_count;
  double regularisation; /* is added to the outputs on the diagonal, */
  int64_t m0, n0;        /* m + m0 = n + n0: where D lies in a larger matrix */
  double threshold;      /* kernels of a smaller magnitude become 0, before regularisation */
  int32_t may_cancel;    /* 1: as in rigel_cdist_args */
  int32_t reserved_flags;
  rigel_options options;
  const rigel_matrix* metric_matrix; /* as in rigel_cdist_args */
  int64_t reserved[3];
} rigel_kernel_matrix_args;

/* D(l,m,n) = k(X(l,m,:), Z(l,n,:)), then threshold and regularisation. x, z: as in rigel_cdist(); z may be NULL: X itself, with m0 = n0.
   d: M x N of floating-point numbers. RIGEL_INVALID_ARGUMENT if a hyperparameter is out of its range, or so small that distances divided
   by it overflow. */
rigel_code rigel_kernel_matrix(rigel_handle* handle, const rigel_kernel_matrix_args* args, const rigel_matrix* x,
                               const rigel_matrix* z, const rigel_matrix* d);
rigel_code rigel_kernel_matrix_workspace_size(rigel_handle* handle, const rigel_kernel_matrix_args* args, const rigel_matrix* x,
                                              const rigel_matrix* z, const rigel_matrix* d, size_t* bytes);

/* ---- reductions -------------------------------------------------------------------------------------------------------- */

/* What becomes of a row of scores s(n), n = 0 ... N - 1. docs/reductions.md says what NaN does. */
enum {
  RIGEL_MINIMUM = 1,     /* min s(n), and its n, of equal ones the smallest; of no scores infinity and -1 */
  RIGEL_MAXIMUM = 2,     /* max s(n), and its n */
  RIGEL_SMALLEST = 3,    /* the k smallest in ascending order, and their n; infinity and -1 follow if there are fewer */
  RIGEL_LARGEST = 4,     /* the k largest in descending order, and their n */
  RIGEL_SUM = 5,         /* the sum, in double or in 64 bits that wrap */
  RIGEL_LOG_SUM_EXP = 6, /* log sum exp(s(n)), relative to the maximum; of no scores -infinity */
  RIGEL_COUNT_BELOW = 7, /* how many s(n) < threshold */
  RIGEL_ALL_BELOW = 8    /* all s(n) < threshold by ascending n, and their n, row after row: a compressed sparse row matrix */
};

/* A reducer, and what is its own. */
typedef struct rigel_reduction {
  int32_t reducer;
  int32_t or_equal;            /* of counts and lists, 1: scores that equal the threshold count */
  int32_t exclude_self;        /* 1: the score of n = m is left out, of a set with itself: M = N */
  int32_t reserved;
  int64_t k;                   /* of RIGEL_SMALLEST and RIGEL_LARGEST: 1 to 4096; else 0 */
  double threshold;            /* of counts and lists; else 0 */
  const rigel_matrix* offsets; /* of lists, (M + 1) x 1 of i64, ascending, read when the kernel runs: row m's results are from its offset
                                  to the next one. Else NULL */
  const char* score_kernel;    /* a kernel of rigel_contract() that computes the scores, as options.kernel is one of reductions */
  size_t workspace_limit;      /* bytes that the workspace should not exceed; 0: 64 MiB, of a host less */
} rigel_reduction;

/* Which pairs (m, n) of M x N scores a reduction takes, as intervals of rows and for each the intervals of columns that they meet. KeOps calls
 * the arrays ranges_i, slices_i and redranges_j. The result of all other pairs is that of no scores. */
typedef struct rigel_ranges rigel_ranges;

/* Checks ranges and copies them to memory of the handle's device; calls of that device take them, of any stream. The arrays, on the host, are
 * read before this returns.
 * rows            rows_count x 2: number r has rows rows[2r] to before rows[2r + 1]. They do not overlap
 * slices          rows_count numbers, ascending: number r meets the column intervals slices[r - 1] (0 of the first) to before slices[r]
 * columns         columns_count x 2, as rows; those of one row interval do not overlap. The last of slices is columns_count
 * Intervals may be in any order and empty. ranges receives the object, or NULL if the call fails. Not while the stream is captured. */
rigel_code rigel_ranges_create(rigel_handle* handle, int64_t m, int64_t n, const int64_t* rows, int64_t rows_count, const int64_t* slices,
                               const int64_t* columns, int64_t columns_count, rigel_ranges** ranges);

/* Destroys it, after it has waited for the work of its device; nothing if it is NULL. No graph of calls that use it is replayed any more, and no
 * stream of the device is captured. */
void rigel_ranges_destroy(rigel_ranges* ranges);

/* Arguments of rigel_reduce() other than operands. */
typedef struct rigel_reduce_args {
  size_t size;
  const char* semiring;
  const rigel_parameter* parameters; /* as in rigel_contract_args */
  int32_t parameters_count;
  rigel_type accumulator; /* 0: the element type's usual one */
  int32_t may_cancel;     /* 1: as in rigel_contract_args */
  int32_t reserved_flags;
  rigel_reduction reduction;
  rigel_program epilogue; /* sources have the scores' extents, M x N, in place of C's, and overlap no output */
  rigel_options options;
  const rigel_ranges* ranges; /* which pairs, of each matrix of a batch; NULL: all */
  int64_t reserved[3];
} rigel_reduce_args;

/* Of each row of scores s(l,m,n) = epilogue( (+)_k A(l,m,k) (x) B(l,k,n) ), which are never stored as a whole, what args->reduction says.
 * a, b      M x K and K x N, of one type
 * values    M x 1, of RIGEL_SMALLEST and RIGEL_LARGEST M x k, of lists as many rows as there are results x 1, or fewer: what finds no
 *           place is left out. Of floating-point numbers if the scores are; counts go to numbers that hold N. NULL: not wanted
 * indices   as values, of i32 or i64; of minimum, maximum, smallest, largest and lists. NULL: not wanted
 * Both overlap neither an operand nor each other. Lists are of single matrices. */
rigel_code rigel_reduce(rigel_handle* handle, const rigel_reduce_args* args, const rigel_matrix* a, const rigel_matrix* b,
                        const rigel_matrix* values, const rigel_matrix* indices);
rigel_code rigel_reduce_workspace_size(rigel_handle* handle, const rigel_reduce_args* args, const rigel_matrix* a,
                                       const rigel_matrix* b, const rigel_matrix* values, const rigel_matrix* indices, size_t* bytes);

/* Arguments of the reductions of distances other than operands. */
typedef struct rigel_reduce_distances_args {
  size_t size;
  const char* metric; /* as in rigel_cdist_args */
  const rigel_parameter* parameters;
  const char* kernel; /* as in rigel_kernel_matrix_args: scores are kernels of distances; of rigel_reduce_distances(). NULL: distances */
  const rigel_parameter* hyperparameters;
  int32_t parameters_count;
  int32_t hyperparameters_count;
  int32_t may_cancel; /* 1: as in rigel_cdist_args */
  int32_t reserved_flags;
  rigel_reduction reduction;
  rigel_program epilogue; /* after the metric's, or the kernel's; as in rigel_reduce_args */
  rigel_options options;
  const rigel_matrix* metric_matrix; /* as in rigel_cdist_args */
  const rigel_ranges* ranges; /* as in rigel_reduce_args */
  int64_t reserved[2];
} rigel_reduce_distances_args;

/* rigel_reduce() of s(l,m,n) = epilogue( metric(X(l,m,:), Z(l,n,:)) ), or of kernels of them. x: M x K and z: N x K, of one type; values
 * and indices as in rigel_reduce(). Scores are f32 if x holds f16, bf16 or f32, else f64. */
rigel_code rigel_reduce_distances(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                  const rigel_matrix* z, const rigel_matrix* values, const rigel_matrix* indices);
rigel_code rigel_reduce_distances_workspace_size(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                                 const rigel_matrix* z, const rigel_matrix* values, const rigel_matrix* indices,
                                                 size_t* bytes);

/* Those that have a name. They choose the reducer, so args->reduction.reducer is 0; args->kernel is NULL, and args->epilogue empty but for
 * rigel_logsumexp(). rigel_reduce_distances_workspace_size() and rigel_explain_reduce_distances() of the reducer have their workspace and
 * candidates. */

/* The k nearest rows of Z for each row of X, k of args->reduction, by ascending distance: RIGEL_SMALLEST; of inner_product RIGEL_LARGEST.
 * indices, distances: M x k. NULL: not wanted. */
rigel_code rigel_nearest(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x, const rigel_matrix* z,
                         const rigel_matrix* indices, const rigel_matrix* distances);
/* The nearest row of Z for each row of X: RIGEL_MINIMUM; of inner_product RIGEL_MAXIMUM. indices, distances: M x 1. NULL: not wanted. */
rigel_code rigel_assign(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x, const rigel_matrix* z,
                        const rigel_matrix* indices, const rigel_matrix* distances);
/* How many rows of Z are within the radius args->reduction.threshold of each row of X, added up: offsets(0) = 0, offsets(m + 1) =
 * offsets(m) + #{n: distance(m,n) <= radius}. RIGEL_COUNT_BELOW, or_equal. offsets: (M + 1) x 1 of i64. The metric is no inner_product. */
rigel_code rigel_radius_offsets(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                const rigel_matrix* z, const rigel_matrix* offsets);
/* These rows of Z, with the offsets that are args->reduction.offsets: RIGEL_ALL_BELOW, or_equal. indices, distances: offsets(M) x 1.
 * NULL: not wanted. */
rigel_code rigel_radius_neighbors(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                  const rigel_matrix* z, const rigel_matrix* indices, const rigel_matrix* distances);
/* log sum_n exp( epilogue( metric(X(l,m,:), Z(l,n,:)) ) ), RIGEL_LOG_SUM_EXP. values: M x 1. */
rigel_code rigel_logsumexp(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                           const rigel_matrix* z, const rigel_matrix* values);

/* Kernel matrices and softmaxes of distances, times V, never stored. args are those of the reductions above; args->reduction has no reducer.
 * v: N x D of f16, bf16, f32 or f64, 1 <= D <= 512, of as many batches as out or one. out: M x D of floating-point numbers, which overlaps
 * nothing. Scores are f32 if x holds f16, bf16 or f32 and v no f64, else f64; those of floats are computed in floats. */

/* Out(l,m,:) = sum_n k(X(l,m,:), Z(l,n,:))*V(l,n,:), k = args->kernel over args->metric. args->epilogue is empty. */
rigel_code rigel_kernel_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                               const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out);
rigel_code rigel_kernel_matvec_workspace_size(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                              const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out, size_t* bytes);
/* Out(l,m,:) = sum_n w(n)*V(l,n,:) / sum_n w(n), w(n) = exp(s(l,m,n)), relative to the row's maximum; s as in rigel_reduce_distances(). */
rigel_code rigel_softmax_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out);
rigel_code rigel_softmax_matvec_workspace_size(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                               const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out, size_t* bytes);

/* ---- iterations -------------------------------------------------------------------------------------------------------- */

/* Calls that repeat reductions until they have what they look for. They wait for the handle's stream in each step, are complete when they
 * return, and refuse a stream that is being captured. */

/* Arguments of rigel_kmeans() other than operands. */
typedef struct rigel_kmeans_args {
  size_t size;
  uint64_t seed;             /* of the random numbers that choose the first centres */
  double tolerance;          /* stops when an update reduces the inertia by no more than this part of it; 0: 1e-4 */
  int32_t iterations;        /* at most so many updates of the centres; 0: 100 */
  int32_t from_centres;      /* 1: starts from what centres hold, without seeds */
  int32_t may_cancel;        /* 1: as in rigel_cdist_args */
  int32_t reserved_flags;
  const char* score_kernel;  /* as in rigel_reduction */
  size_t workspace_limit;    /* the same */
  rigel_options options;
  int64_t reserved[4];
} rigel_kmeans_args;

/* What rigel_kmeans() finds besides centres and labels. */
typedef struct rigel_kmeans_result {
  size_t size;
  double inertia;     /* the sum of squared distances of points from their centres */
  int32_t iterations; /* updates of the centres */
  int32_t converged;  /* 1: the last update reduced it by no more than the tolerance */
} rigel_kmeans_result;

/* Centres of the rows of X, and the nearest one of each row, by k-means++ seeds and Lloyd's updates: labels(m) = argmin_c |X(m,:) -
 * centres(c,:)|^2. A seed chooses the same points on every device. A centre without points becomes the point that is farthest from its own.
 * x        M x K of f32 or f64
 * centres  k x K of the same type, 1 <= k <= M
 * labels   M x 1 of i32 or i64
 * result   NULL: not wanted
 * RIGEL_INVALID_ARGUMENT if outputs overlap something, or points are not finite (where seeds are chosen). */
rigel_code rigel_kmeans(rigel_handle* handle, const rigel_kmeans_args* args, const rigel_matrix* x, const rigel_matrix* centres,
                        const rigel_matrix* labels, rigel_kmeans_result* result);
rigel_code rigel_kmeans_workspace_size(rigel_handle* handle, const rigel_kmeans_args* args, const rigel_matrix* x,
                                       const rigel_matrix* centres, const rigel_matrix* labels, size_t* bytes);

/* Arguments of rigel_sinkhorn() and rigel_sinkhorn_barycentre() other than operands. */
typedef struct rigel_sinkhorn_args {
  size_t size;
  const char* metric; /* of the costs, as in rigel_cdist_args; not kl_divergence, which is not symmetric */
  const rigel_parameter* parameters;
  const rigel_matrix* metric_matrix;
  int32_t parameters_count;
  int32_t iterations;   /* at most so many updates of both potentials; 0: 1000 */
  double epsilon;       /* the regularisation, in the units of the costs: above 0 */
  double tolerance;     /* of the sums of the plan's marginals' errors; 0: 1e-6 */
  double scaling;       /* epsilon begins at the largest cost and is multiplied by this for each update; 1: it is constant; 0: 0.5 */
  int32_t alternating;  /* 1: one potential is updated after the other; 0: both at the same time, and averaged with the former ones */
  int32_t may_cancel;   /* 1: as in rigel_cdist_args */
  const char* score_kernel; /* as in rigel_reduction */
  size_t workspace_limit;   /* the same */
  rigel_options options;    /* kernel is NULL */
  int64_t reserved[4];
} rigel_sinkhorn_args;

/* What rigel_sinkhorn() finds besides potentials. */
typedef struct rigel_sinkhorn_result {
  size_t size;
  double error;       /* of the marginals of f's and g's plan: the larger of both sums */
  double value;       /* sum a*f + sum b*g, the dual value of a plan whose marginals are right */
  int32_t iterations; /* updates of both potentials */
  int32_t converged;  /* 1: error <= tolerance */
} rigel_sinkhorn_result;

/* Potentials of the transport plan between points X of weights a and points Z of weights b that has the least cost plus epsilon times its
 * relative entropy: P(m,n) = a(m)*b(n)*exp((f(m) + g(n) - metric(X(m,:), Z(n,:)))/epsilon), with a and b divided by their sums.
 * x, z    M x K and N x K, of one type
 * a, b    M x 1 and N x 1 weights of f32 or f64, 0 or more, not all 0
 * f, g    M x 1 and N x 1 of f32 or f64, written; they overlap nothing
 * result  NULL: not wanted */
rigel_code rigel_sinkhorn(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x, const rigel_matrix* z,
                          const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* f, const rigel_matrix* g,
                          rigel_sinkhorn_result* result);
rigel_code rigel_sinkhorn_workspace_size(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x,
                                         const rigel_matrix* z, const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* f,
                                         const rigel_matrix* g, size_t* bytes);
/* The barycentre of V's rows for each row of X by that plan, Out(m,:) = sum_n P(m,n)*V(n,:) / sum_n P(m,n), from b and g of the same call
 * of rigel_sinkhorn(): where X's points go to, if V is Z. v, out: N x D and M x D, as in rigel_softmax_matvec(). It is asynchronous. */
rigel_code rigel_sinkhorn_barycentre(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x,
                                     const rigel_matrix* z, const rigel_matrix* b, const rigel_matrix* g, const rigel_matrix* v,
                                     const rigel_matrix* out);
rigel_code rigel_sinkhorn_barycentre_workspace_size(rigel_handle* handle, const rigel_sinkhorn_args* args, const rigel_matrix* x,
                                                    const rigel_matrix* z, const rigel_matrix* b, const rigel_matrix* g,
                                                    const rigel_matrix* v, const rigel_matrix* out, size_t* bytes);

/* Arguments of rigel_kernel_solve() other than operands. */
typedef struct rigel_kernel_solve_args {
  size_t size;
  const char* kernel; /* as in rigel_kernel_matrix_args, with all that follows */
  const rigel_parameter* hyperparameters;
  const char* metric;
  const rigel_parameter* parameters;
  const rigel_matrix* metric_matrix;
  int32_t hyperparameters_count;
  int32_t parameters_count;
  double regularisation; /* lambda, 0 or more */
  double tolerance;      /* of |y - (K + lambda I) alpha| / |y| for each right side; 0: 1e-6 */
  int32_t iterations;    /* at most so many steps; 0: 1000 */
  int32_t rank;          /* of the preconditioner, 8*rank*M bytes; 0: 100; -1: none */
  /* Called after each step with its number from 1, the largest residual, and `user`: returns 1 to go on, 0 to stop. NULL: nothing is. */
  int32_t (*progress)(int32_t iteration, double residual, void* user);
  void* user;
  int32_t may_cancel; /* 1: as in rigel_cdist_args */
  int32_t reserved_flags;
  const char* score_kernel; /* as in rigel_reduction */
  size_t workspace_limit;   /* the same */
  rigel_options options;    /* kernel is NULL */
  int64_t reserved[4];
} rigel_kernel_solve_args;

/* What rigel_kernel_solve() says of its steps. */
typedef struct rigel_kernel_solve_result {
  size_t size;
  double residual; /* the largest |y - (K + lambda I) alpha| / |y| of a right side, of alpha as it is stored */
  int32_t iterations;
  int32_t rank;      /* of the preconditioner */
  int32_t converged; /* 1: residual <= tolerance */
  int32_t reserved;
} rigel_kernel_solve_result;

/* alpha with (K + lambda I)*alpha = y, K(m,n) = k(X(m,:), X(n,:)), without K, by conjugate gradients: kernel ridge regression, and the means
 * of Gaussian processes. K + lambda I has to be positive definite; else the result has not converged.
 * x         M x K
 * y, alpha  M x R of f32 or f64, of one type, 1 <= R <= 512; alpha overlaps nothing
 * result    NULL: not wanted */
rigel_code rigel_kernel_solve(rigel_handle* handle, const rigel_kernel_solve_args* args, const rigel_matrix* x,
                              const rigel_matrix* y, const rigel_matrix* alpha, rigel_kernel_solve_result* result);
rigel_code rigel_kernel_solve_workspace_size(rigel_handle* handle, const rigel_kernel_solve_args* args, const rigel_matrix* x,
                                             const rigel_matrix* y, const rigel_matrix* alpha, size_t* bytes);

/* ---- gradients --------------------------------------------------------------------------------------------------------- */

/* Arguments of rigel_cdist_gradient() other than operands. */
typedef struct rigel_cdist_gradient_args {
  size_t size;
  double p;                   /* a finite number above 0; 0: 2 */
  const rigel_matrix* powers; /* p in memory, read when the kernel runs: 1 x 1 of Out's type for each batch or for all; p is then 0 */
  double epsilon;             /* differences |D(l,n,m) - B(l,n,k)| below it count as 0 */
  int64_t output_stride;      /* elements of Out from one o to the next; 0: N*M */
  int32_t accumulate;         /* 1: adds to what is in Out */
  int32_t may_cancel;         /* 1: p = 2 of f32 may be matrix products, whose errors are relative to distances from a mean point */
  rigel_options options;
  int64_t reserved[4];
} rigel_cdist_gradient_args;

/* Out(l,o,n,m) = sum_k C(l,o,k)*A(l,k,m)*sign(t)*|t|^(p-1), t = D(l,n,m) - B(l,n,k); where t or A(l,k,m) is 0 the term is 0. It is the
 * gradient by coordinate n of point m of sum_k C(o,k)*f(|x_m - z_k|_p), if column m of D is x_m, column k of B is z_k and A(k,m) =
 * f'(r)*r^(1-p), r = |x_m - z_k|_p.
 * a, b, c, d   K x M, N x K, O x K and N x M, of one type, f32 or f64
 * out          N x M of the same type, which overlaps no input: the matrix of o = 0; those of other o follow at args->output_stride */
rigel_code rigel_cdist_gradient(rigel_handle* handle, const rigel_cdist_gradient_args* args, const rigel_matrix* a,
                                const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d, const rigel_matrix* out);
rigel_code rigel_cdist_gradient_workspace_size(rigel_handle* handle, const rigel_cdist_gradient_args* args, const rigel_matrix* a,
                                               const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                                               const rigel_matrix* out, size_t* bytes);

/* A functor of gradients that is text, compiled in process when a call first needs it. docs/runtime.md describes the language. */
typedef struct rigel_derivative rigel_derivative;

/* What it is. Each text is an expression, or statements that end with `return`, and all but identity may read hyperparameters. */
typedef struct rigel_derivative_args {
  size_t size;
  const char* name;       /* in explanations and messages: letters, digits and '_'; NULL: "text" */
  const char* multiply;   /* v: the derivative of one distance by one coordinate, times a weight, over d, b and a */
  const char* accumulate; /* x (+) c*v, over x, c and v; NULL: fma(c, v, x) */
  const char* add;        /* x (+) y, over x and y, for sums of parts of K; NULL: x + y if accumulate is NULL, else no kernel cuts K */
  const char* identity;   /* the identity of (+), a constant; NULL if accumulate and add are, or if add is x + y, min(x, y) or max(x, y) */
  const char* result;     /* what Out receives of a sum x; NULL: x */
  rigel_type element;     /* RIGEL_F16, RIGEL_BF16, RIGEL_F32, RIGEL_F64, RIGEL_I32 or RIGEL_I64; 0: RIGEL_F32 */
  int32_t parameters_count;
  const rigel_parameter* parameters; /* hyperparameters and their first values: at most 16 */
  int64_t reserved[4];
} rigel_derivative_args;

/* As of semirings. */
rigel_code rigel_derivative_create(const rigel_derivative_args* args, rigel_derivative** derivative);
void rigel_derivative_destroy(rigel_derivative* derivative);
rigel_code rigel_derivative_set(rigel_derivative* derivative, const char* name, double value);
rigel_code rigel_derivative_compile(rigel_derivative* derivative, rigel_handle* handle);

/* Arguments of rigel_contract_gradient() other than operands. */
typedef struct rigel_contract_gradient_args {
  size_t size;
  const rigel_derivative* derivative;
  const rigel_parameter* parameters; /* its hyperparameters; those that are not named have their values in it */
  int32_t parameters_count;
  int32_t accumulate;    /* 1: each sum starts with the value in Out */
  int64_t output_stride; /* elements of Out from one o to the next; 0: N*M */
  rigel_options options;
  int64_t reserved[4];
} rigel_contract_gradient_args;

/* Out(l,o,n,m) = result( (+)_k accumulate(C(l,o,k), multiply(D(l,n,m), B(l,n,k), A(l,k,m))) ).
 * a, b, c, d   K x M, N x K, O x K and N x M, of the derivative's element type
 * out          N x M of that type, RIGEL_F32 of 16 bits, which overlaps no input: the matrix of o = 0; those of other o follow at
 *              args->output_stride */
rigel_code rigel_contract_gradient(rigel_handle* handle, const rigel_contract_gradient_args* args, const rigel_matrix* a,
                                   const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d, const rigel_matrix* out);
rigel_code rigel_contract_gradient_workspace_size(rigel_handle* handle, const rigel_contract_gradient_args* args, const rigel_matrix* a,
                                                  const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                                                  const rigel_matrix* out, size_t* bytes);

/* Where the gradient by a hyperparameter goes: 1 x 1 of f32 or f64 for each batch. */
typedef struct rigel_hyperparameter_gradient {
  const char* name;
  rigel_matrix matrix;
} rigel_hyperparameter_gradient;

/* Arguments of rigel_kernel_matrix_gradient() other than operands. */
typedef struct rigel_kernel_matrix_gradient_args {
  size_t size;
  const char* kernel;                     /* as in rigel_kernel_matrix_args, but for cosine */
  const rigel_parameter* hyperparameters; /* the same */
  const char* metric; /* euclidean, manhattan or minkowski of kernels of distances; inner_product of polynomial and sigmoid */
  const rigel_parameter* parameters; /* the metric's */
  int32_t hyperparameters_count;
  int32_t parameters_count;
  const rigel_hyperparameter_gradient* gradients; /* those by hyperparameters that are wanted */
  int32_t gradients_count;
  int32_t accumulate; /* 1: adds to what is in dX, dZ and the gradients by hyperparameters */
  int32_t may_cancel; /* 1: as in rigel_cdist_gradient_args */
  int32_t reserved_flags;
  double epsilon;     /* of distances: differences |x_k - z_k| below it count as 0 in dX and dZ */
  int64_t block_rows; /* rows of X at a time; 0: as many as 256 MiB of weights have. Bits depend on it */
  rigel_options options; /* kernel is NULL, and require 0: two runs give the same bits */
  int64_t reserved[4];
} rigel_kernel_matrix_gradient_args;

/* The gradients of a loss whose gradient by rigel_kernel_matrix() is G: dX(l,m,:) = sum_n G(l,m,n)*dk/dx, dZ(l,n,:) = sum_m
 * G(l,m,n)*dk/dz and, by a hyperparameter, sum_mn G(l,m,n)*dk/dtheta. Points that coincide have the subgradient 0.
 * x, z     M x K and N x K, of f32 or f64, as all matrices. z may be NULL: X with itself, dX then is the sum of both gradients
 * g, v     G: M x N, and v is NULL. Or M x 1 and N x 1: G is g times transposed v
 * dx, dz   M x K and N x K, written; they overlap nothing. NULL: not wanted */
rigel_code rigel_kernel_matrix_gradient(rigel_handle* handle, const rigel_kernel_matrix_gradient_args* args, const rigel_matrix* x,
                                        const rigel_matrix* z, const rigel_matrix* g, const rigel_matrix* v, const rigel_matrix* dx,
                                        const rigel_matrix* dz);
rigel_code rigel_kernel_matrix_gradient_workspace_size(rigel_handle* handle, const rigel_kernel_matrix_gradient_args* args,
                                                       const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* g,
                                                       const rigel_matrix* v, const rigel_matrix* dx, const rigel_matrix* dz,
                                                       size_t* bytes);

/* Arguments of rigel_contract_backward() other than operands. */
typedef struct rigel_contract_backward_args {
  size_t size;
  const char* semiring; /* plus_times, log_plus, min_plus, max_plus, max_min, min_max, l1, l2_squared or lp */
  const rigel_parameter* parameters; /* hyperparameters; those that are not named have their defaults */
  int32_t parameters_count;
  int32_t accumulate; /* 1: adds to what is in dA and dB */
  int32_t may_cancel; /* 1: as in rigel_cdist_gradient_args, of l2_squared */
  int32_t reserved_flags;
  rigel_options options; /* kernel is NULL. Two runs give the same bits */
  int64_t reserved[4];
} rigel_contract_backward_args;

/* The gradients of a loss whose gradient by C = rigel_contract() is dC, without an epilogue: dA(l,m,k) = sum_n dC(l,m,n)*dC(l,m,n)/dA(l,m,k) and
 * dB(l,k,n) likewise by m. Of min_plus, max_plus, max_min and min_max the k that won has the derivative, the smallest one of a tie.
 * a, b     M x K and K x N, of one type: f16, bf16, f32 or f64
 * c        M x N: the result, which log_plus needs. NULL with other semirings
 * dc       M x N. It and c, da, db have the type of a, or f32 if that has 16 bits
 * da, db   as a and b, written; they overlap nothing. Of a factor that serves all batches the sum of their gradients. NULL: not wanted */
rigel_code rigel_contract_backward(rigel_handle* handle, const rigel_contract_backward_args* args, const rigel_matrix* a,
                                   const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* dc, const rigel_matrix* da,
                                   const rigel_matrix* db);
rigel_code rigel_contract_backward_workspace_size(rigel_handle* handle, const rigel_contract_backward_args* args, const rigel_matrix* a,
                                                  const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* dc,
                                                  const rigel_matrix* da, const rigel_matrix* db, size_t* bytes);

/* Arguments of rigel_kernel_matvec_gradient(), rigel_softmax_matvec_gradient() and rigel_logsumexp_gradient() other than operands. */
typedef struct rigel_matvec_gradient_args {
  size_t size;
  const char* metric; /* as in rigel_kernel_matrix_gradient_args; of scores squared_euclidean, too */
  const rigel_parameter* parameters; /* the metric's */
  const char* kernel;                     /* of rigel_kernel_matvec_gradient(), as in rigel_kernel_matrix_gradient_args; else NULL */
  const rigel_parameter* hyperparameters; /* the kernel's */
  int32_t parameters_count;
  int32_t hyperparameters_count;
  double scale;                  /* of scores(l,m,n) = scale*metric(X(l,m,:), Z(l,n,:)) + of_rows(l,m) + of_columns(l,n); 0 with a kernel */
  const rigel_matrix* of_rows;   /* M x 1. NULL: none */
  const rigel_matrix* of_columns; /* N x 1. NULL: none */
  const rigel_matrix* dof_rows;   /* their gradients, written. NULL: not wanted */
  const rigel_matrix* dof_columns;
  const rigel_hyperparameter_gradient* gradients; /* those that are wanted: by the kernel's hyperparameters, or by "scale" */
  int32_t gradients_count;
  int32_t accumulate;     /* 1: adds to what is in the results */
  int32_t may_cancel;     /* 1: as in rigel_cdist_gradient_args */
  int32_t reserved_flags;
  double epsilon;         /* of distances: differences |x_k - z_k| below it count as 0 in dX and dZ */
  int64_t block_rows;     /* rows of X at a time; 0: as many as workspace_limit takes. Bits depend on it */
  size_t workspace_limit; /* bytes of strips, of at least one row; 0: 64 MiB */
  rigel_options options;  /* kernel is NULL, and require 0: two runs give the same bits */
  int64_t reserved[4];
} rigel_matvec_gradient_args;

/* The gradients of a loss whose gradient by out(l,m,d) = sum_n W(l,m,n)*V(l,n,d) is G; W is computed again for some rows of X at a time, and
 * never stored as a whole. kernel_matvec: W is the kernel matrix of X and Z. softmax_matvec: W(m,:) is the softmax of a row of scores; where it is
 * 0, as for scores of -infinity, so are all derivatives.
 * x, z         M x K and N x K, of f32 or f64, as all matrices
 * v, g         N x D and M x D
 * dx, dz, dv   as x, z and v, written; they overlap nothing. NULL: not wanted. L batches if an input has L */
rigel_code rigel_kernel_matvec_gradient(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                        const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* g, const rigel_matrix* dx,
                                        const rigel_matrix* dz, const rigel_matrix* dv);
rigel_code rigel_kernel_matvec_gradient_workspace_size(rigel_handle* handle, const rigel_matvec_gradient_args* args,
                                                       const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* v,
                                                       const rigel_matrix* g, const rigel_matrix* dx, const rigel_matrix* dz,
                                                       const rigel_matrix* dv, size_t* bytes);
rigel_code rigel_softmax_matvec_gradient(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                         const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* g, const rigel_matrix* dx,
                                         const rigel_matrix* dz, const rigel_matrix* dv);
rigel_code rigel_softmax_matvec_gradient_workspace_size(rigel_handle* handle, const rigel_matvec_gradient_args* args,
                                                        const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* v,
                                                        const rigel_matrix* g, const rigel_matrix* dx, const rigel_matrix* dz,
                                                        const rigel_matrix* dv, size_t* bytes);
/* The same of values(l,m) = log sum_n exp(scores(l,m,n)), with g, M x 1, the loss's gradient by them. */
rigel_code rigel_logsumexp_gradient(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                    const rigel_matrix* z, const rigel_matrix* g, const rigel_matrix* dx, const rigel_matrix* dz);
rigel_code rigel_logsumexp_gradient_workspace_size(rigel_handle* handle, const rigel_matvec_gradient_args* args, const rigel_matrix* x,
                                                   const rigel_matrix* z, const rigel_matrix* g, const rigel_matrix* dx,
                                                   const rigel_matrix* dz, size_t* bytes);

/* ---- the linear layer -------------------------------------------------------------------------------------------------- */

/* What a layer promises of its bits (docs/numerics.md). */
enum {
  RIGEL_TIER_SCALAR = 0, /* one chain of fused multiply-adds per output, k ascending: the same bits on every host and every GPU */
  RIGEL_TIER_TENSOR = 1  /* tensor cores: bits that depend neither on M, nor on other rows, nor on the run */
};

enum {
  RIGEL_ACTIVATION_NONE = 0,
  RIGEL_ACTIVATION_RELU = 1,
  RIGEL_ACTIVATION_GELU = 2,
  RIGEL_ACTIVATION_GELU_TANH = 3,
  RIGEL_ACTIVATION_SILU = 4
};

/* Arguments of the linear layer's calls other than operands. */
typedef struct rigel_linear_args {
  size_t size;
  int32_t tier;
  int32_t activation;     /* of forward; of backward_input that of the layer before; else RIGEL_ACTIVATION_NONE */
  rigel_program epilogue; /* forward only, and without an activation */
  rigel_options options;  /* require is 0: the tier makes the promises. Precisions that round terms are for RIGEL_TIER_TENSOR only */
  int64_t overwrite;      /* backward_weight: 1 if dW and db become the sums, whatever they hold; 0: these are added. Else 0 */
  int64_t reserved[3];
} rigel_linear_args;

/* Matrices below hold f16, bf16 or f32 numbers, the two factors of a product one type. Sums are f32; results are rounded once to the
 * type of what is written. A matrix N x K, as PyTorch stores weights, is passed as K x N with its strides exchanged. An input of one
 * batch serves all batches. RIGEL_UNSUPPORTED if the tier does not cover the call, with the reason: RIGEL_TIER_TENSOR on a host, and
 * of f32 unless options.precision admits it. */

/* Y(l,m,n) = epilogue( sum_k X(l,m,k) W(l,k,n) + bias(l,n) ), where the epilogue is args->epilogue or args->activation.
 * x, w, y   M x K, K x N and M x N; y overlaps no input
 * bias      1 x N, added once after the sum; one row for each batch, or for all. NULL: none
 * z         M x N, written: the values before the epilogue, which backward needs. It overlaps no other matrix. NULL: not kept */
rigel_code rigel_linear_forward(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x, const rigel_matrix* w,
                                const rigel_matrix* bias, const rigel_matrix* y, const rigel_matrix* z);
rigel_code rigel_linear_forward_workspace_size(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x,
                                               const rigel_matrix* w, const rigel_matrix* bias, const rigel_matrix* y,
                                               const rigel_matrix* z, size_t* bytes);

/* dW(l,k,n) += sum_m X(l,m,k) dY(l,m,n) and db(l,n) += sum_m dY(l,m,n), or with args->overwrite = in place of +=.
 * x, dy   M x K and M x N
 * dw      K x N
 * db      1 x N. NULL: none
 * dw and db are f32; with args->overwrite each may also be f16 or bf16, to which its sums are rounded once.
 * If dw or db has one batch and dy has several, it sums them all, in order. By RIGEL_TIER_SCALAR a batch that is cut into
 * micro-batches, one call each in order, gives the bits of one call. By RIGEL_TIER_TENSOR such cuts change bits, and batches that dw
 * sums follow each other at the distance of rows. So they do if dw or db is not f32. */
rigel_code rigel_linear_backward_weight(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x,
                                        const rigel_matrix* dy, const rigel_matrix* dw, const rigel_matrix* db);
rigel_code rigel_linear_backward_weight_workspace_size(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* x,
                                                       const rigel_matrix* dy, const rigel_matrix* dw, const rigel_matrix* db,
                                                       size_t* bytes);

/* dX(l,m,k) = act'(Z(l,m,k)) sum_n dY(l,m,n) W(l,k,n), where act' is the derivative of args->activation.
 * dy, w, dx   M x N, K x N and M x K; dx overlaps neither dy nor w
 * z           M x K: what the activation was applied to; it may be dx. NULL if there is no activation */
rigel_code rigel_linear_backward_input(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* dy,
                                       const rigel_matrix* w, const rigel_matrix* dx, const rigel_matrix* z);
rigel_code rigel_linear_backward_input_workspace_size(rigel_handle* handle, const rigel_linear_args* args, const rigel_matrix* dy,
                                                      const rigel_matrix* w, const rigel_matrix* dx, const rigel_matrix* z,
                                                      size_t* bytes);

/* ---- linear systems and eigenvectors ----------------------------------------------------------------------------------- */

enum { RIGEL_LOWER = 0, RIGEL_UPPER = 1 };

/* Arguments of the solves other than operands. */
typedef struct rigel_solve_args {
  size_t size;
  int32_t triangle;    /* of a symmetric A, or of its factor: the other one is not read */
  int32_t overwrite_a; /* 1: A's memory is used: a factor or eigenvectors may go to A itself, else A is unspecified afterwards */
  int32_t overwrite_b; /* 1: X may be B itself */
  int32_t check;       /* 1: waits for the result; RIGEL_INVALID_ARGUMENT if a matrix has no factorisation */
  int32_t refine;      /* of f32, cholesky_solve and lu_solve: sweeps of refinement in double */
  int32_t reserved_flags;
  rigel_options options; /* precision is 0 */
  int64_t reserved[4];
} rigel_solve_args;

/* Matrices below hold f32 or f64 numbers, all of one type and with the same batches. A matrix without a factorisation is data, not an
 * error: its batch's info is not 0 and its results are NaN; those of other batches are right.
 * info   1 x 1 of i32 for each batch, written. NULL: not wanted */

/* X(l) = inverse(A(l))*B(l), A symmetric positive definite, by Cholesky's factorisation. a: n x n; b, x: n x m. info: 0, or the order of
 * the first leading minor that is not positive and finite. */
rigel_code rigel_cholesky_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* b,
                                const rigel_matrix* x, const rigel_matrix* info);
rigel_code rigel_cholesky_solve_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                               const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info, size_t* bytes);

/* L(l)*transposed(L(l)) = A(l). l: n x n as A, lower triangular with zeros above the diagonal; with RIGEL_UPPER its transpose. info as for
 * rigel_cholesky_solve(). */
rigel_code rigel_cholesky_factor(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* l,
                                 const rigel_matrix* info);
rigel_code rigel_cholesky_factor_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                                const rigel_matrix* l, const rigel_matrix* info, size_t* bytes);

/* X(l) = inverse(L(l)*transposed(L(l)))*B(l), L from rigel_cholesky_factor() with the same triangle. info: 0, or the place, from 1, of the
 * first element on L's diagonal that is not positive and finite. */
rigel_code rigel_cholesky_solve_factored(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* l,
                                         const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info);
rigel_code rigel_cholesky_solve_factored_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* l,
                                                        const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info,
                                                        size_t* bytes);

/* d(l) = log det(L(l)*transposed(L(l))), L from rigel_cholesky_factor(). d: 1 x 1 of L's type for each batch. It needs no workspace. */
rigel_code rigel_log_determinant(rigel_handle* handle, const rigel_matrix* l, const rigel_matrix* d);

/* X(l) = inverse(A(l))*B(l) for any square A, by LU with partial pivoting. info: 0, or the number, from 1, of a pivot that is 0 or not
 * finite. */
rigel_code rigel_lu_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* b,
                          const rigel_matrix* x, const rigel_matrix* info);
rigel_code rigel_lu_solve_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                         const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info, size_t* bytes);

/* A(l) = V(l)*diag(w(l))*transposed(V(l)), A symmetric: eigenvalues in ascending order, and orthonormal eigenvectors in the columns of V.
 * w: n x 1; v: n x n. info: not 0 if A is not finite or the iteration did not converge. */
rigel_code rigel_eigh(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* w,
                      const rigel_matrix* v, const rigel_matrix* info);
rigel_code rigel_eigh_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* w,
                                     const rigel_matrix* v, const rigel_matrix* info, size_t* bytes);

/* ---- closures ---------------------------------------------------------------------------------------------------------- */

/* Arguments of rigel_closure() other than operands. */
typedef struct rigel_closure_args {
  size_t size;
  const char* semiring; /* min_plus, max_plus, max_min, min_max of f16, bf16, f32, f64, i32, i64; max_times of the same; min_times of
                           f16, bf16, f32, f64; or_and of u8, u32, u64 */
  int64_t block;        /* vertices eliminated at a time; 0: 64 */
  rigel_options options;
  int64_t reserved[4];
} rigel_closure_args;

/* What rigel_closure() found in addition to the paths. */
typedef struct rigel_closure_report {
  size_t size;
  int32_t negative_cycle; /* 1: some closed walk is better than the empty path; D is then unspecified */
  int32_t reserved;
  int64_t vertex, batch; /* on such a cycle, and its graph; -1 if there is none */
} rigel_closure_report;

/* D <- D*: all-pairs paths, in place. d: n x n.
 * predecessors   n x n of i32, written only: the vertex before j on an optimal path from i to j, -1 if there is none. NULL: not kept.
 *                For min_plus of f32, f64 and i32
 * report         NULL: the call is asynchronous. Else it waits for the result */
rigel_code rigel_closure(rigel_handle* handle, const rigel_closure_args* args, const rigel_matrix* d,
                         const rigel_matrix* predecessors, rigel_closure_report* report);
rigel_code rigel_closure_workspace_size(rigel_handle* handle, const rigel_closure_args* args, const rigel_matrix* d,
                                        const rigel_matrix* predecessors, size_t* bytes);

/* Arguments of rigel_transitive_closure() other than operands. */
typedef struct rigel_transitive_closure_args {
  size_t size;
  int64_t block; /* vertices eliminated at a time, a multiple of a word's bits up to 512; 0: 256 */
  rigel_options options;
  int64_t reserved[4];
} rigel_transitive_closure_args;

/* D <- D* on packed bits, in place. d: n x ceil(n/w) words of w bits, u32 or u64; bit j mod w of word j/w of row i is the arc from i to
 * j. */
rigel_code rigel_transitive_closure(rigel_handle* handle, const rigel_transitive_closure_args* args, const rigel_matrix* d);
rigel_code rigel_transitive_closure_workspace_size(rigel_handle* handle, const rigel_transitive_closure_args* args,
                                                   const rigel_matrix* d, size_t* bytes);

/* ---- listings, as JSON ------------------------------------------------------------------------------------------------- */

/* Each gives a text in UTF-8 that the caller frees by rigel_free(). */

/* All registered kernels, or those whose name is `name` or begins with it up to a '.': an array of their facts. */
rigel_code rigel_kernels(const char* name, char** json);

/* The candidates of the same call: {"problem": …, "candidates": [{"kernel": …, "chosen": …, "covers": …, then "seconds" (predicted),
 * "workspace_bytes" and "admission", or "reason", and "facts", as of rigel_kernels()}, …]}. */
rigel_code rigel_explain_contract(rigel_handle* handle, const rigel_contract_args* args, const rigel_matrix* a,
                                  const rigel_matrix* b, const rigel_matrix* c, char** json);
rigel_code rigel_explain_cdist(rigel_handle* handle, const rigel_cdist_args* args, const rigel_matrix* x, const rigel_matrix* z,
                               const rigel_matrix* d, char** json);
rigel_code rigel_explain_kernel_matrix(rigel_handle* handle, const rigel_kernel_matrix_args* args, const rigel_matrix* x,
                                       const rigel_matrix* z, const rigel_matrix* d, char** json);
rigel_code rigel_explain_reduce(rigel_handle* handle, const rigel_reduce_args* args, const rigel_matrix* a, const rigel_matrix* b,
                                const rigel_matrix* values, const rigel_matrix* indices, char** json);
rigel_code rigel_explain_reduce_distances(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                          const rigel_matrix* z, const rigel_matrix* values, const rigel_matrix* indices, char** json);
rigel_code rigel_explain_kernel_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                       const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out, char** json);
rigel_code rigel_explain_softmax_matvec(rigel_handle* handle, const rigel_reduce_distances_args* args, const rigel_matrix* x,
                                        const rigel_matrix* z, const rigel_matrix* v, const rigel_matrix* out, char** json);
rigel_code rigel_explain_cdist_gradient(rigel_handle* handle, const rigel_cdist_gradient_args* args, const rigel_matrix* a,
                                        const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d, const rigel_matrix* out,
                                        char** json);
rigel_code rigel_explain_contract_gradient(rigel_handle* handle, const rigel_contract_gradient_args* args, const rigel_matrix* a,
                                           const rigel_matrix* b, const rigel_matrix* c, const rigel_matrix* d,
                                           const rigel_matrix* out, char** json);
rigel_code rigel_explain_cholesky_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                        const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info, char** json);
rigel_code rigel_explain_cholesky_factor(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                         const rigel_matrix* l, const rigel_matrix* info, char** json);
rigel_code rigel_explain_cholesky_solve_factored(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* l,
                                                 const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info,
                                                 char** json);
rigel_code rigel_explain_lu_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* b,
                                  const rigel_matrix* x, const rigel_matrix* info, char** json);
rigel_code rigel_explain_eigh(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* w,
                              const rigel_matrix* v, const rigel_matrix* info, char** json);

/* The parts of the same call, of the first block of rows: {"bytes": …, "block_rows": …, "parts": [{"part": …, "problem": …,
 * "candidates": …}, …]}. */
rigel_code rigel_explain_kernel_matrix_gradient(rigel_handle* handle, const rigel_kernel_matrix_gradient_args* args,
                                                const rigel_matrix* x, const rigel_matrix* z, const rigel_matrix* g,
                                                const rigel_matrix* v, const rigel_matrix* dx, const rigel_matrix* dz, char** json);

/* Frees a text; nothing if it is NULL. */
void rigel_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
