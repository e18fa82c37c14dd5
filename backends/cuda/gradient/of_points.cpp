// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.gradient.euclidean.f32.of_points.*: p = 2 as products of matrices instead of differences,
//
//     Out(o,n,m) = S(o,m)·(D(n,m) − c(n)) − Σ_k C(o,k)·(B(n,k) − c(n))·A(k,m),     S = C·A,
//
// where c(n) is the mean of B's row n. Both sums are one contraction for all o and n, whose left matrix a pass writes. Errors are
// relative to |B − c| + |D − c| instead of |D − B| (docs/numerics.md): only calls with `may_cancel` get these kernels.
#include <rigel/backends/cuda/gradient/gradient.hpp>
#include <rigel/backends/cuda/gradient/register.hpp>
#include <rigel/backends/cuda/inner_products.hpp>
#include <rigel/backends/cuda/runtime.hpp>
#include <rigel/backends/cuda/tensor/accuracy.hpp>
#include <rigel/detail/gradient.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace rigel::backends::gradient {
namespace {

using detail::Strided;
using Functor = gradient_of::euclidean<float>;
using Arguments = detail::GradientArguments<Functor>;

constexpr int threads = 256;

/// The weights of a column of A that are lost: how many, the first and the last one. Of more than two only that is known.
struct Lost {
  int first, last, count;
};
/// Numbers that a product of matrices takes. It would overflow with larger ones.
__device__ __forceinline__ bool fits(float x) { return math::abs(x) < 0x1p120F; }

/// What a batch has in the workspace. `weights` is A with 0 for what does not fit. The first rows of `left` and `sums` are C
/// and S, filled up to fours; the others belong to pairs (o, n), as many as a step has. `lost_rows` tells which of all rows that steps have
/// after each other have a number that does not fit, and so are 0.
struct Memory {
  float* centres;  // of the coordinates n
  Lost* lost;      // of the columns m
  int* lost_rows;  // of the head, and of all pairs
  Marks again;     // the outputs of all batches that are computed again, on CUDA cores
  Strided<float> weights, left, sums;
  std::int64_t head, pairs;  // the first rows, and the pairs of a step
  std::size_t own_bytes;

  Memory(const Gradient& p, const void* data) {
    constexpr std::int64_t most = std::int64_t{1} << 29;  // bytes of a step
    const auto padded = [](std::int64_t x) { return (x + 3) / 4 * 4; };
    const std::int64_t all = p.outputs * p.n,
                       of_row = (padded(p.k) + padded(p.m)) * static_cast<std::int64_t>(sizeof(float));
    pairs = std::clamp<std::int64_t>(most / of_row / 128 * 128, std::min<std::int64_t>(all, 128), all);
    head = padded(p.outputs);
    const std::int64_t rows = head + pairs;
    detail::WorkspaceLayout layout;
    const auto take = [&](std::int64_t count, std::size_t size) {
      return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data) + layout.add(count, size));
    };
    // A matrix by rows, or by columns.
    const auto matrix = [&](std::int64_t of_rows, std::int64_t columns, bool by_rows) {
      const std::int64_t pitch = padded(by_rows ? columns : of_rows), lines = by_rows ? of_rows : columns;
      return Strided<float>{static_cast<float*>(take(lines * pitch, sizeof(float))), 0, by_rows ? pitch : 1,
                            by_rows ? 1 : pitch};
    };
    centres = static_cast<float*>(take(p.n, sizeof(float)));
    lost = static_cast<Lost*>(take(p.m, sizeof(Lost)));
    lost_rows = static_cast<int*>(take(head + all, sizeof(int)));
    again.of_row = (p.m + 31) / 32;
    again.words = static_cast<std::uint32_t*>(take(p.batch * all * again.of_row, sizeof(std::uint32_t)));
    weights = matrix(p.k, p.m, p.a.column_stride <= p.a.row_stride);
    left = matrix(rows, p.k, p.b.column_stride <= p.b.row_stride);
    sums = matrix(rows, p.m, p.out.column_stride <= p.out.row_stride);
    own_bytes = layout.bytes();
  }
};

/// c(n), a block for each; a mean that is not finite counts as 0. And nothing of batch l is lost or computed again yet.
__global__ void __launch_bounds__(threads)
    find_centres(const __grid_constant__ Arguments g, std::int64_t l, std::int64_t rows, float* centres, Lost* lost,
                 int* lost_rows, Marks again) {
  const int n = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (int i = thread; i < g.k; i += threads) sum += g.b.at(l, n, i);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lanes);
  __shared__ double of_warps[threads / 32];
  if (thread % 32 == 0) of_warps[thread / 32] = sum;
  __syncthreads();
  if (thread == 0) {
    sum = 0;
    for (const double x : of_warps) sum += x;
    const auto mean = static_cast<float>(sum / static_cast<double>(g.k));
    centres[n] = finite(mean) ? mean : 0;
  }
  const auto fill = [&](auto* to, std::int64_t count, auto x) {
    for (std::int64_t i = std::int64_t{n} * threads + thread; i < count; i += std::int64_t{gridDim.x} * threads) to[i] = x;
  };
  fill(lost, g.m, Lost{std::numeric_limits<int>::max(), -1, 0});
  fill(lost_rows, rows, 0);
  fill(&again.at(g, l, 0, 0, 0), g.outputs * g.n * again.of_row, std::uint32_t{0});
}

/// x / y and x % y, of numbers below 2^32 faster.
struct Quotient {
  std::int64_t whole, rest;
  __device__ __forceinline__ Quotient(std::int64_t x, std::int64_t y)
      : whole((x | y) >> 32 == 0 ? static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(y) : x / y),
        rest(x - whole * y) {}
};

/// Four neighbours in a line, a row or a column, of a matrix in the workspace.
struct Four {
  std::int64_t row, column;  // of the first
  int count;                 // of those that exist
  bool by_rows;
  __device__ __forceinline__ std::int64_t row_of(int v) const { return by_rows ? row : row + v; }
  __device__ __forceinline__ std::int64_t column_of(int v) const { return by_rows ? column + v : column; }
  __device__ __forceinline__ float4& in(const Strided<float>& s) const {
    return reinterpret_cast<float4&>(s.at(0, row, column));
  }
};
/// A thread's part of such a matrix: four neighbours of each of four lines, which are padded to fours.
constexpr int lines_of_thread = 4;
constexpr std::int64_t fours(std::int64_t length) { return (length + 3) / 4; }
std::int64_t parts_of(const Strided<float>& s, std::int64_t rows, std::int64_t columns) {
  const std::int64_t lines = s.column == 1 ? rows : columns, length = s.column == 1 ? columns : rows;
  return (lines + lines_of_thread - 1) / lines_of_thread * fours(length);
}
/// Calls use(Four) for those that exist, line after line.
template <class Use>
__device__ __forceinline__ void for_each_four(const Strided<float>& s, std::int64_t rows, std::int64_t columns,
                                              const Use& use) {
  const bool by_rows = s.column == 1;
  const std::int64_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows, of_line = fours(length);
  const Quotient part(std::int64_t{blockIdx.x} * threads + threadIdx.x, of_line);
  const std::int64_t first_line = part.whole * lines_of_thread, first = part.rest * 4;
  const int count = static_cast<int>(std::min<std::int64_t>(length - first, 4));
#pragma unroll
  for (int line = 0; line < lines_of_thread; ++line)
    if (first_line + line < lines)
      use(by_rows ? Four{first_line + line, first, count, true} : Four{first, first_line + line, count, false});
}
/// x[v] = element (four.row_of(v), four.column_of(v)) of matrix l.
__device__ __forceinline__ void read(float (&x)[4], const Strided<const float>& s, std::int64_t l, const Four& four) {
  const float* const from = &s.at(l, four.row, four.column);
  const std::int64_t apart = four.by_rows ? s.column : s.row;
  if (apart == 1 && four.count == 4 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
    const float4 all = *reinterpret_cast<const float4*>(from);
    x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
    return;
  }
#pragma unroll
  for (int v = 0; v < 4; ++v) x[v] = v < four.count ? from[v * apart] : 0;
}
/// The pair (o, n) with a number.
struct Pair {
  std::int64_t o, n;
  __device__ __forceinline__ Pair(const Arguments& g, std::int64_t number) {
    const Quotient q(number, g.n);
    o = q.whole, n = q.rest;
  }
  __device__ __forceinline__ void advance(const Arguments& g) {
    if (++n == g.n) n = 0, ++o;
  }
};

/// Writes A(l) without what does not fit, and where that was.
__global__ void __launch_bounds__(threads)
    copy_weights(const __grid_constant__ Arguments g, std::int64_t l, Strided<float> weights, Lost* lost) {
  for_each_four(weights, g.k, g.m, [&](const Four& four) {
    float a[4];
    read(a, g.a, l, four);
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (fits(a[v])) continue;
      a[v] = 0;
      Lost& of_column = lost[four.column_of(v)];
      if (of_column.count > 2) continue;
      atomicAdd(&of_column.count, 1);
      atomicMin(&of_column.first, static_cast<int>(four.row_of(v)));
      atomicMax(&of_column.last, static_cast<int>(four.row_of(v)));
    }
    four.in(weights) = {a[0], a[1], a[2], a[3]};
  });
}

/// Rows of `left` from `first` on, of all that steps have after each other: the head, then C(o,k)·(B(n,k) − c(n)) of the pairs (o, n).
/// Without what does not fit.
__global__ void __launch_bounds__(threads)
    write_left(const __grid_constant__ Arguments g, std::int64_t l, std::int64_t head, std::int64_t first, std::int64_t rows,
               const float* centres, Strided<float> left, int* lost_rows) {
  for_each_four(left, rows, g.k, [&](const Four& four) {
    float x[4] = {}, b[4];
    std::int64_t row = first + four.row;
    Pair pair(g, std::max<std::int64_t>(row - head, 0));
    if (four.by_rows) {
      const bool of_pair = row >= head;
      if (of_pair || row < g.outputs) read(x, g.c, l, {of_pair ? pair.o : row, four.column, four.count, true});
      if (of_pair) {
        read(b, g.b, l, {pair.n, four.column, four.count, true});
#pragma unroll
        for (int v = 0; v < 4; ++v) x[v] = math::multiply(x[v], math::subtract(b[v], centres[pair.n]));
      }
    } else {
#pragma unroll
      for (int v = 0; v < 4; ++v, ++row) {
        if (v >= four.count) break;
        if (row >= head) {
          x[v] = math::multiply(g.c.at(l, pair.o, four.column),
                                math::subtract(g.b.at(l, pair.n, four.column), centres[pair.n]));
          pair.advance(g);
        } else if (row < g.outputs) {
          x[v] = g.c.at(l, row, four.column);
        }
      }
    }
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (fits(x[v])) continue;
      x[v] = 0;
      lost_rows[first + four.row_of(v)] = 1;
    }
    four.in(left) = {x[0], x[1], x[2], x[3]};
  });
}

/// Stores the outputs of `rows` pairs (o, n) from `first` on. Those that are not finite, or have a term with a lost number that is not 0,
/// are added to `again`, so that what is infinite or NaN is what the functor makes so.
__global__ void __launch_bounds__(threads)
    store_outputs(const __grid_constant__ Arguments g, std::int64_t l, std::int64_t head, std::int64_t first,
                  std::int64_t rows, const float* centres, const Lost* lost, const int* lost_rows, Marks again,
                  Strided<float> of_weights, Strided<float> sums) {
  for_each_four(sums, rows, g.m, [&](const Four& four) {
    Pair pair(g, first + four.row);
    const float4 all = four.in(sums);
    const float of_rows[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v >= four.count) break;
      const std::int64_t o = pair.o, n = pair.n, m = four.column_of(v);
      const float d = g.d.at(l, n, m), start = g.start(g.functor, l, o, n, m);
      const float x = math::fma(of_weights.at(0, o, m), math::subtract(d, centres[n]), -of_rows[v]);
      const Lost& of_column = lost[m];
      const auto differs = [&](int k) { return !(math::abs(math::subtract(d, g.b.at(l, n, k))) < g.functor.least); };
      if (!finite(x) || of_column.count > 2 ||
          (of_column.count > 0 && (differs(of_column.first) || differs(of_column.last))) || lost_rows[o] != 0 ||
          lost_rows[head + first + four.row_of(v)] != 0)
        atomicOr(&again.at(g, l, o, n, m / 32), std::uint32_t{1} << m % 32);
      else
        g.store(g.functor, g.functor.add(start, x), l, o, n, m);
      if (!four.by_rows) pair.advance(g);
    }
  });
}

/// Rows `first` to first + rows of a matrix in the workspace.
Strided<float> rows_from(const Strided<float>& s, std::int64_t first) { return {&s.at(0, first, 0), 0, s.row, s.column}; }

/// What a step computes: `rows` rows of sums from `first` on of all, which are in the workspace from row `at` on.
struct Step {
  std::int64_t first, rows, at;
};
/// Calls use(count, Step) for steps that follow each other and are alike: the first one, which has S besides its pairs, those of as many
/// pairs, which leave S where it is, and the last one.
template <class Use>
void for_each_kind_of_step(const Gradient& p, const Memory& w, const Use& use) {
  const std::int64_t all = p.outputs * p.n, whole = w.pairs > 0 ? all / w.pairs : 0;
  if (whole > 0) use(std::int64_t{1}, Step{0, w.head + w.pairs, 0});
  if (whole > 1) use(whole - 1, Step{w.head + w.pairs, w.pairs, w.head});
  if (all > whole * w.pairs) use(std::int64_t{1}, Step{w.head + whole * w.pairs, all - whole * w.pairs, w.head});
}
/// Calls use(Step) for all steps.
template <class Use>
void for_each_step(const Gradient& p, const Memory& w, const Use& use) {
  for_each_kind_of_step(p, w, [&](std::int64_t count, Step step) {
    for (; count > 0; --count, step.first += step.rows) use(step);
  });
}

/// The contraction of a step.
Contraction product(const Gradient& p, const Kernel<Gradient>& kernel, const Memory& w, const Step& step) {
  const auto part = [](const Strided<float>& s, std::int64_t row, std::int64_t rows, std::int64_t columns) {
    return cuda::part_of_workspace(s, 1, row, 0, rows, columns);
  };
  Contraction q = cuda::inner_product<float>(p, part(w.left, step.at, step.rows, p.k), part(w.weights, 0, p.k, p.m),
                                             part(w.sums, step.at, step.rows, p.m));
  q.precision = kernel.info.precision;
  q.kernel = "cuda.hopper|cuda.mma";  // those whose bounds the kernel's is made of
  return q;
}

/// Memory as the workspace will lie, for questions to the engine: aligned alike, and far from all other operands, which may be nominal.
Memory nominal_memory(const Gradient& p) { return {p, reinterpret_cast<void*>(std::uintptr_t{1} << 60)}; }

Status supports(const Kernel<Gradient>&, const Gradient& p) {
  if (!p.may_cancel) return {Decline::accuracy, "may cancel, which takes options.may_cancel"};
  if (static_cast<const Functor*>(p.functor_object)->least > Functor{}.least)
    return {Decline::accuracy, "knows no differences, which an epsilon is compared with"};
  if (p.k == 0) return {Decline::extents, "takes K from 1 on"};
  constexpr std::int64_t most = 1 << 29;  // as the kernels of the contraction
  if (p.m >= most || p.n >= most || p.outputs >= most || p.k >= most) return {Decline::extents, "takes extents below 2^29"};
  const Memory w = nominal_memory(p);
  const std::int64_t rows = w.head + w.pairs;
  const std::int64_t tiles = with_cut<Functor>(p.outputs, [&]<class C>(C) { return blocks_of(p, grid_of<C>(p, false)); });
  if (std::max({p.k * p.m, rows * p.k, rows * p.m}) / threads >= cuda::max_grid || tiles > cuda::max_grid)
    return {Decline::extents, "needs more blocks than a launch can have"};
  return {};
}

/// Predicted seconds: for each batch the passes' bytes and the contractions, and a launch for what is computed again.
double cost(const Kernel<Gradient>& kernel, const Gradient& p, Plan&) {
  const Memory w = nominal_memory(p);
  const auto elements = [](std::int64_t x, std::int64_t y) { return static_cast<double>(x) * static_cast<double>(y); };
  constexpr double bytes = 2 * sizeof(float);  // of an element that is read and written
  double one = costs::pass_seconds(p.execution, 2, bytes * elements(p.k, p.m));
  for_each_kind_of_step(p, w, [&](std::int64_t count, const Step& step) {
    const Contraction q = product(p, kernel, w, step);
    one += static_cast<double>(count) *
           (predicted_seconds(select(q), q) +
            costs::pass_seconds(p.execution, 2, bytes * (elements(step.rows, p.k) + elements(step.rows, p.m))));
  });
  return static_cast<double>(p.batch) * one + costs::pass_seconds(p.execution, 1, 0);
}

WorkspaceSize workspace(const Kernel<Gradient>& kernel, const Gradient& p, const Plan&) {
  const Memory w = nominal_memory(p);
  std::size_t most = 0;
  for_each_kind_of_step(p, w, [&](std::int64_t, const Step& step) {
    most = std::max(most, workspace_size(product(p, kernel, w, step)).bytes);
  });
  return {.bytes = w.own_bytes + most};
}

void run(const Kernel<Gradient>& kernel, const Gradient& p, const Plan&, const Workspace& workspace) {
  const cuda::CurrentDevice device(p.execution.device);
  const auto stream = static_cast<cudaStream_t>(p.execution.stream);
  const Arguments g = detail::gradient_arguments<Functor>(p);
  const Memory w(p, workspace.data);
  const auto launch = [&]<class... Parameters>(void (*function)(Parameters...), std::int64_t all, const auto&... arguments) {
    function<<<static_cast<unsigned>((all + threads - 1) / threads), threads, 0, stream>>>(arguments...);
    cuda::check(cudaGetLastError(), std::string(p.function) + ": launch of " + kernel.info.name);
  };
  for (std::int64_t l = 0; l < p.batch; ++l) {
    launch(find_centres, p.n * threads, g, l, w.head + p.outputs * p.n, w.centres, w.lost, w.lost_rows, w.again);
    launch(copy_weights, parts_of(w.weights, p.k, p.m), g, l, w.weights, w.lost);
    for_each_step(p, w, [&](const Step& step) {
      const Strided<float> left = rows_from(w.left, step.at), sums = rows_from(w.sums, w.head);
      launch(write_left, parts_of(left, step.rows, p.k), g, l, w.head, step.first, step.rows, w.centres, left, w.lost_rows);
      cuda::run_in(workspace, w.own_bytes, product(p, kernel, w, step));
      const std::int64_t first_pair = step.first - step.at, pairs = step.rows - (w.head - step.at);
      launch(store_outputs, parts_of(sums, pairs, p.m), g, l, w.head, first_pair, pairs, w.centres, w.lost, w.lost_rows,
             w.again, w.sums, sums);
    });
  }
  with_cut<Functor>(p.outputs, [&]<class C>(C) {
    const Grid grid = grid_of<C>(p, false);
    contract_gradient_tile<Functor, C, true>
        <<<static_cast<unsigned>(blocks_of(p, grid)), C::threads, 0, stream>>>(g, grid, nullptr, w.again);
    cuda::check(cudaGetLastError(), std::string(p.function) + ": launch of " + kernel.info.name);
  });
}

/// The bound of a product at a precision: by the kernels of cuda.mma and cuda.hopper that it admits, whichever they are. Nine products of
/// bfloat16 truncate most often, two parts of tf32, or two planes, lose most of a product. And five roundings.
constexpr Accuracy accuracy_at(Precision precision) {
  using tensor::Decomposition;
  Accuracy accuracy = tensor::accuracy_of(Decomposition{1, 3, 32}, 8);
  if (precision != Precision::promoted)
    accuracy = tensor::truncating_accuracy(
        16, 9, tensor::accuracy_of(precision == Precision::split ? Decomposition{1, 3} : Decomposition{2, 3}, 0).constant);
  accuracy.constant += 5;
  return accuracy;
}

Kernel<Gradient> kernel(Precision precision) {
  Kernel<Gradient> k;
  k.info = detail::gradient_info<Functor>("cuda.gradient", std::string("of_points.") + name(precision), bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.precision = precision;  // no raw_launch: the contraction reports itself to Kokkos Tools, within the call's region
  k.info.promises = Promise::repeatable;
  k.info.accuracy = accuracy_at(precision);
  k.supports = supports;
  k.cost = cost;
  k.workspace = workspace;
  k.run = run;
  return k;
}

}  // namespace

void add_of_points(Registry<Gradient>& registry) {
  for (const Precision precision : {Precision::promoted, Precision::split, Precision::bf16x3})
    registry.add(kernel(precision));
}

}  // namespace rigel::backends::gradient
