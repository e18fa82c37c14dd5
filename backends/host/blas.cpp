// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// plus_times of float and double by the machine's BLAS: single-threaded gemm calls on strips of C, which the threads of the
// execution space instance share. The BLAS chooses the order of summation, so the kernel promises neither the reference's bits
// nor batch invariance.
#include <rigel/backends/host/blas.hpp>
#include <rigel/backends/host/blas_threads.hpp>
#include <rigel/config.hpp>

#if RIGEL_HAS_BLAS

#include <rigel/cpu.hpp>
#include <rigel/detail/execution.hpp>
#include <rigel/detail/kernel.hpp>

#include <strings.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

// CBLAS, whose enumerations are ints.
extern "C" {
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc);
}

namespace rigel::backends::host {

namespace {

constexpr int row_major = 101, column_major = 102, as_is = 111, transposed = 112;
constexpr std::int64_t most = std::numeric_limits<int>::max();

void gemm(int order, int ta, int tb, int m, int n, int k, const float* a, int lda, const float* b, int ldb, float beta,
          float* c, int ldc) {
  cblas_sgemm(order, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}
void gemm(int order, int ta, int tb, int m, int n, int k, const double* a, int lda, const double* b, int ldb, double beta,
          double* c, int ldc) {
  cblas_dgemm(order, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

/// A matrix as BLAS takes it: contiguous along one index, with a leading dimension. leading = 0 if it is contiguous along
/// neither.
struct Layout {
  bool by_rows = false;
  std::int64_t leading = 0;
};
Layout layout_of(const Operand& o) {
  const auto fits = [](std::int64_t stride, std::int64_t other, std::int64_t extent, std::int64_t count) {
    return (stride == 1 || extent <= 1) && (other >= extent || count <= 1) && other <= most;
  };
  if (fits(o.column_stride, o.row_stride, o.columns, o.rows))
    return {true, std::max({o.row_stride, o.columns, std::int64_t(1)})};
  if (fits(o.row_stride, o.column_stride, o.rows, o.columns))
    return {false, std::max({o.column_stride, o.rows, std::int64_t(1)})};
  return {};
}

// C is cut along its longer index, into strips of a multiple of 16 (a cache line of floats).
struct Strips {
  bool along_m;
  std::int64_t extent, of_strip, count;
};
Strips strips_of(const Contraction& p) {
  const bool along_m = p.m >= p.n;
  const std::int64_t extent = along_m ? p.m : p.n, of_strip = (extent / p.execution.concurrency + 15) / 16 * 16 + 16;
  return {along_m, extent, of_strip, (extent + of_strip - 1) / of_strip};
}

template <class T>
void multiply(const KernelInfo& info, const Contraction& p) {
  const Layout la = layout_of(p.a), lb = layout_of(p.b), lc = layout_of(p.c);
  const int order = lc.by_rows ? row_major : column_major;
  const int ta = la.by_rows == lc.by_rows ? as_is : transposed, tb = lb.by_rows == lc.by_rows ? as_is : transposed;

  const auto [along_m, extent, strip, strips] = strips_of(p);

  const auto compute = [=](std::int64_t task) {
    const std::int64_t l = task / strips, first = task % strips * strip, count = std::min(strip, extent - first);
    const auto* const a = static_cast<const T*>(p.a.data) + l * p.a.batch_stride + (along_m ? first * p.a.row_stride : 0);
    const auto* const b = static_cast<const T*>(p.b.data) + l * p.b.batch_stride + (along_m ? 0 : first * p.b.column_stride);
    auto* const c =
        static_cast<T*>(p.c.data) + l * p.c.batch_stride + first * (along_m ? p.c.row_stride : p.c.column_stride);
    gemm(order, ta, tb, static_cast<int>(along_m ? count : p.m), static_cast<int>(along_m ? p.n : count),
         static_cast<int>(p.k), a, static_cast<int>(la.leading), b, static_cast<int>(lb.leading), p.accumulate ? 1 : 0, c,
         static_cast<int>(lc.leading));
  };
  const BlasThreads single(1);
  detail::with_instance(detail::compiled_host_spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
    // A host launch is complete when Kokkos returns from it, so the pointer stays valid.
    Kokkos::parallel_for(detail::label_of(info), Policy(exec, 0, p.batch * strips, Kokkos::ChunkSize(1)),
                         [run = &compute](const std::int64_t task) { (*run)(task); });
  });
}

Status supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  if (const Status s = detail::finish_supports<detail::ProgramFinish>(p); !s) return s;
  if (!p.program->empty()) return {Decline::epilogue, "BLAS stores results as they are, there is an epilogue"};
  if (p.c.type != kernel.info.element) return {Decline::result, "C's type is not that of A and B"};
  if (p.k == 0) return {Decline::extents, "K is 0"};
  if (std::max({p.m, p.n, p.k}) > most) return {Decline::extents, "an extent is beyond BLAS's int"};
  for (const Operand* o : {&p.a, &p.b, &p.c})
    if (layout_of(*o).leading == 0) return {Decline::layout, "a matrix is contiguous along neither index"};
  return {};
}

// The vectors of the BLAS's loops. OpenBLAS says for which processor these are: on processors newer than itself it takes its oldest ones,
// without fused operations.
int bytes_of_vectors() {
#if defined(__x86_64__)
  if (!openblas_get_corename) return 32;
  const char* const core = openblas_get_corename();
  const auto is_one_of = [&](std::initializer_list<const char*> cores) {
    return std::ranges::any_of(cores, [&](const char* name) { return strcasecmp(core, name) == 0; });
  };
  if (is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids"})) return 64;
  if (!is_one_of({"Haswell", "Zen", "Excavator"})) return 16;
#endif
  return 32;
}

template <class T>
Kernel<Contraction> kernel() {
  Kernel<Contraction> k;
  k.info = detail::info_of<plus_times<T>>("host.blas", {}, {}, detail::bits_of(detail::compiled_host_spaces{}));
  k.info.promises = Promise::repeatable;
  k.info.accuracy = detail::chain_accuracy<plus_times<T>>();
  k.supports = supports;
  // A gemm's pairs, and so many cycles for each of a batch.
  k.cost = [](const Kernel<Contraction>&, const Contraction& p, Plan&) {
    static const int bytes = bytes_of_vectors();
    constexpr double begin = 4000;
    const Cpu& cpu = cpu_of(p.execution);
    const double products = cpu.products(bytes) * sizeof(float) / sizeof(T);
    const double tasks = static_cast<double>(p.batch * strips_of(p).count);
    const double idle = std::max(1., p.execution.concurrency / std::max(1., tasks));
    return cpu.seconds(begin * static_cast<double>(p.batch)) + detail::seconds_on_host(p, products / idle);
  };
  k.run = [](const Kernel<Contraction>& kernel, const Contraction& p, const Plan&, const Workspace&) {
    multiply<T>(kernel.info, p);
  };
  for (OperandNeeds& needs : k.info.operands) needs.layout = rigel::Layout::contiguous;
  return k;
}

}  // namespace

void add_blas(Registry<Contraction>& registry) {
  registry.add(kernel<float>());
  registry.add(kernel<double>());
}

}  // namespace rigel::backends::host

#else

namespace rigel::backends::host {
void add_blas(Registry<Contraction>&) {}
}  // namespace rigel::backends::host

#endif
