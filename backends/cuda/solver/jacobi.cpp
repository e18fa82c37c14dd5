// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda.solver.eigen.*.jacobi: eigenvectors of small symmetric matrices by Jacobi's method, a block for each matrix, in one launch. A
// stage rotates n/2 disjoint pairs of rows and columns at a time: the pairs of a round-robin tournament, so that n − 1 stages meet
// every pair once (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 8.5.4). The matrix is in shared memory; V is
// there too, or in the workspace if there is no room.
#include <rigel/backends/cuda/costs/solver.hpp>
#include <rigel/backends/cuda/solver/launches.hpp>
#include <rigel/backends/cuda/solver/register.hpp>
#include <rigel/detail/solve.hpp>
#include <rigel/detail/workspace.hpp>

#include <algorithm>

namespace rigel::backends::solver {
namespace {

constexpr int threads = 512, max_sweeps = 60;

/// The bytes of shared memory of a block: A, perhaps V, a rotation and a pair for each two rows, the ranks of the eigenvalues.
template <class T>
constexpr std::size_t shared_bytes(std::int64_t n, bool with_vectors) {
  const auto matrix = static_cast<std::size_t>(n * (n | 1)) * sizeof(T), half = static_cast<std::size_t>((n + 1) / 2);
  return matrix * (with_vectors ? 2 : 1) + half * 2 * (sizeof(T) + sizeof(int)) + 32 * sizeof(T) +
         static_cast<std::size_t>(n) * sizeof(int);
}

/// Σ or max of a value of each thread, in all threads.
template <class T, class Join>
__device__ T joined(T value, T* partial, const Join& join) {
  for (int distance = 16; distance > 0; distance /= 2) value = join(value, __shfl_xor_sync(~0u, value, distance));
  __syncthreads();  // what `partial` held before has been read
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int warp = 1; warp < threads / 32; ++warp) value = join(value, partial[warp]);
  return value;
}

/// x and y after a rotation by φ, as a change: `ratio` is sin φ/(1 + cos φ) (H. Rutishauser, The Jacobi Method for Real Symmetric
/// Matrices, Numerische Mathematik 9, 1966). With a rounded cosine thousands of small rotations would stretch the vectors.
template <class T>
__device__ __forceinline__ void rotate(T ratio, T sine, T& x, T& y) {
  const T old = x;
  x -= sine * (y + ratio * x);
  y += sine * (old - ratio * y);
}

/// Finds this thread's pair of rows in a stage, and its rotation. Returns whether it rotates.
template <class T>
__device__ __forceinline__ bool find_rotation(const T* a, int n, int leading, int stage, T small, T* rotations, int* pairs) {
  const int players = (n + 1) / 2 * 2, me = static_cast<int>(threadIdx.x);
  const int first = (stage + me) % (players - 1);
  const int second = me == 0 ? players - 1 : (stage - me + players - 1) % (players - 1);
  const int p = min(first, second), q = max(first, second);
  T ratio = 0, sine = 0;
  bool rotates = false;
  if (q < n) {  // of an odd number of rows, one has no partner
    const T pq = a[q * leading + p];
    if (abs(pq) > small) {
      const T cotangent = (a[q * leading + q] - a[p * leading + p]) / (2 * pq);
      const T tangent = (cotangent < 0 ? T(-1) : T(1)) / (abs(cotangent) + sqrt(1 + cotangent * cotangent));
      const T cosine = 1 / sqrt(1 + tangent * tangent);
      sine = tangent * cosine;
      ratio = sine / (1 + cosine);
      rotates = true;
    }
  }
  rotations[2 * me] = ratio;
  rotations[2 * me + 1] = sine;
  pairs[2 * me] = p;
  pairs[2 * me + 1] = q;
  return rotates;
}

/// Rotates the 2 × 2 elements of A in which two pairs meet: rows of pair i, columns of pair j.
template <class T>
__device__ __forceinline__ void rotate_blocks(T* a, int n, int leading, const T* rotations, const int* pairs) {
  const int half = (n + 1) / 2;
  for (int block = static_cast<int>(threadIdx.x); block < half * half; block += threads) {
    const int i = block % half, j = block / half;
    const int p = pairs[2 * i], q = pairs[2 * i + 1], r = pairs[2 * j], s = pairs[2 * j + 1];
    const T ri = rotations[2 * i], si = rotations[2 * i + 1], rj = rotations[2 * j], sj = rotations[2 * j + 1];
    if (si == 0 && sj == 0) continue;
    const bool has_q = q < n, has_s = s < n;
    T pr = a[r * leading + p], ps = has_s ? a[s * leading + p] : T(0), qr = has_q ? a[r * leading + q] : T(0),
      qs = has_q && has_s ? a[s * leading + q] : T(0);
    rotate(rj, sj, pr, ps);
    rotate(rj, sj, qr, qs);
    rotate(ri, si, pr, qr);
    rotate(ri, si, ps, qs);
    if (i == j) ps = qr = 0;
    a[r * leading + p] = pr;
    if (has_s) a[s * leading + p] = ps;
    if (has_q) a[r * leading + q] = qr;
    if (has_q && has_s) a[s * leading + q] = qs;
  }
}

template <class T>
__global__ void __launch_bounds__(threads, sizeof(T) == 4 ? 3 : 2)
    jacobi(const __grid_constant__ detail::SolveArguments<T> g, T* workspace) {
  extern __shared__ __align__(16) unsigned char bytes[];
  const std::int64_t l = blockIdx.x;
  const int n = static_cast<int>(g.n), leading = n | 1, half = (n + 1) / 2, me = static_cast<int>(threadIdx.x);
  T* const a = reinterpret_cast<T*>(bytes);
  T* const rotations = a + n * leading;  // of each pair: sin φ/(1 + cos φ) and sin φ
  T* const partial = rotations + 2 * half;
  int* const pairs = reinterpret_cast<int*>(partial + 32);
  int* const ranks = pairs + 2 * half;
  T* const v = workspace ? workspace + l * n * leading
                         : reinterpret_cast<T*>(bytes + shared_bytes<T>(n, false) +
                                                (sizeof(T) - shared_bytes<T>(n, false) % sizeof(T)) % sizeof(T));

  T largest = 0, scale = 1;  // a power of two, so that nothing but an eigenvalue can overflow
  bool finite = true;
  for (int i = me; i < n * n; i += threads) {
    const int row = i % n, column = i / n;
    const T value = row >= column ? g.a.at(l, row, column) : g.a.at(l, column, row);
    a[column * leading + row] = value;
    v[column * leading + row] = row == column ? 1 : 0;
    finite = finite && value - value == 0;
    largest = max(largest, abs(value));
  }
  bool converged = false;
  const bool usable = !__syncthreads_or(!finite);
  if (usable) {
    largest = joined(largest, partial, [](T x, T y) { return max(x, y); });
    if (largest > 0) scale = detail::scale_to_one(largest);
    T squares = 0;
    for (int i = me; i < n * n; i += threads) {
      T& element = a[i / n * leading + i % n];
      element *= scale;
      squares += element * element;
    }
    squares = joined(squares, partial, [](T x, T y) { return x + y; });
    // Elements below u·‖A‖/n are left.
    const T small = std::numeric_limits<T>::epsilon() / 2 * sqrt(squares) / static_cast<T>(n);
    const int players = 2 * half;
    for (int sweep = 0; sweep < max_sweeps && !converged; ++sweep) {
      bool rotated = false;
      for (int stage = 0; stage < players - 1; ++stage) {
        if (me < half) rotated |= find_rotation(a, n, leading, stage, small, rotations, pairs);
        __syncthreads();
        rotate_blocks(a, n, leading, rotations, pairs);
        for (int i = me; i < half * n; i += threads) {
          const int j = i / n, row = i % n, r = pairs[2 * j], s = pairs[2 * j + 1];
          if (rotations[2 * j + 1] != 0)
            rotate(rotations[2 * j], rotations[2 * j + 1], v[r * leading + row], v[s * leading + row]);
        }
        __syncthreads();
      }
      converged = !__syncthreads_or(rotated);
    }
  }
  __syncthreads();
  // Where each eigenvalue comes in ascending order; of equal ones the first comes first.
  for (int k = me; k < n; k += threads) {
    const T value = a[k * leading + k];
    int rank = 0;
    for (int i = 0; i < n; ++i) {
      const T other = a[i * leading + i];
      rank += other < value || (other == value && i < k);
    }
    ranks[k] = converged ? rank : k;
  }
  __syncthreads();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (int i = me; i < n * n; i += threads) g.x.at(l, i % n, ranks[i / n]) = converged ? v[i / n * leading + i % n] : nan;
  for (int k = me; k < n; k += threads) g.values.at(l, ranks[k], 0) = converged ? a[k * leading + k] / scale : nan;
  if (g.infos.data && me == 0) g.infos.at(l, 0, 0) = converged ? 0 : 1;
}

template <class T>
bool vectors_in_shared(const Solve& p) {
  return shared_bytes<T>(p.n, true) + sizeof(T) <= static_cast<std::size_t>(p.execution.shared_memory);
}

template <class T>
Status supports(const Kernel<Solve>&, const Solve& p) {
  if (p.n < 1 || p.n > 512) return {Decline::extents, "takes n from 1 to 512, if a block has room for a matrix"};
  if (p.batch > cuda::max_grid) return {Decline::batches, "takes a block for each matrix, and a launch that many"};
  if (shared_bytes<T>(p.n, false) > static_cast<std::size_t>(p.execution.shared_memory))
    return {Decline::memory, "needs " + std::to_string(shared_bytes<T>(p.n, false)) + " bytes of shared memory"};
  return {};
}

template <class T>
Kernel<Solve> kernel() {
  Kernel<Solve> k;
  k.info = detail::solve_info("cuda.solver", "jacobi", Factorisation::eigen, scalar_of<T>, bit(Space::cuda));
  k.info.min_compute_capability = 80;
  k.info.timed_on = 90;
  k.info.threads = threads;
  k.info.promises = Promise::repeatable | Promise::batch_invariant;
  k.info.raw_launch = true;
  k.supports = supports<T>;
  k.cost = [](const Kernel<Solve>&, const Solve& p, Plan&) {
    return costs::jacobi_seconds(p, sizeof(T), vectors_in_shared<T>(p));
  };
  k.workspace = [](const Kernel<Solve>&, const Solve& p, const Plan&) {
    const std::size_t bytes = static_cast<std::size_t>(p.batch * p.n * (p.n | 1)) * sizeof(T);
    return WorkspaceSize{.bytes = vectors_in_shared<T>(p) ? 0 : bytes};
  };
  k.run = [](const Kernel<Solve>& kernel, const Solve& p, const Plan&, const Workspace& workspace) {
    const cuda::CurrentDevice device(p.execution.device);
    const bool shared = vectors_in_shared<T>(p);
    const std::size_t bytes = shared_bytes<T>(p.n, shared) + (shared ? sizeof(T) : 0);
    Launches(kernel, p)(jacobi<T>, p.batch, threads, static_cast<int>(bytes), detail::solve_arguments<T>(p),
                        shared ? nullptr : static_cast<T*>(workspace.data));
  };
  return k;
}

}  // namespace

void add_jacobi(Registry<Solve>& registry) {
  registry.add(kernel<float>());
  registry.add(kernel<double>());
}

}  // namespace rigel::backends::solver
