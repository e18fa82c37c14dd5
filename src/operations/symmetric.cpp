// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block rows of the lower triangle, and the pass that mirrors it.
//
// D(l,m,n) and D(l,n,m) are chains of ⊗(x_mk, x_nk) and ⊗(x_nk, x_mk). Those of the zoo commute, so every kernel whose sums depend on k
// alone gives both the same bits. Products on tensor cores and of a BLAS do not: they cut the two factors otherwise, or cut C into
// parts. So these are mirrored, too, where all of D is computed.
#include "symmetric.hpp"

#include "driver.hpp"

#include <rigel/card.hpp>
#include <rigel/cpu.hpp>
#include <rigel/detail/block_rows.hpp>
#include <rigel/detail/kernel.hpp>
#include <rigel/detail/mirror.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace rigel::detail {
namespace {

bool is_symmetric(const epilogue::Program& program) {
  for (int i = 0; i < program.size(); ++i) {
    const epilogue::Step& step = program[i];
    if (step.offset != 0) return false;
    for (const int from : {int{step.x_from}, int{step.y_from}})
      if (from >= 0 && (program.source(from).rows != 1 || program.source(from).columns != 1)) return false;
  }
  return true;
}

// Whether B is A transposed, and D symmetric. Elements of D that are no Scalar get kernels to which the Program is a functor: these
// would see places in a block row.
bool is_self(const Contraction& p) {
  const bool can_mirror = p.execution.space != Space::other && !p.semiring.type && p.c.type != Scalar::other && p.program &&
                          is_symmetric(*p.program);
  return can_mirror && p.a.data == p.b.data && p.m == p.n && p.a.batches == p.b.batches &&
         p.a.batch_stride == p.b.batch_stride && p.a.row_stride == p.b.column_stride && p.a.column_stride == p.b.row_stride;
}

// How a call is computed.
struct Course {
  const Kernel<Contraction>* kernel = nullptr;
  std::vector<std::int64_t> heights;  // of block rows; none: all of D at once
  bool mirrors = false;               // all of D
};

Contraction block_row(const Contraction& p, std::int64_t first, std::int64_t height) {
  return part_of(p, {0, p.batch}, {first, height}, {0, first + height});
}

template <class Use>
void for_each_block_row(const Contraction& p, const std::vector<std::int64_t>& heights, const Use& use) {
  std::int64_t first = 0;
  for (const std::int64_t height : heights) {
    use(block_row(p, first, height));
    first += height;
  }
}

// Seconds in which memory delivers and takes half of D.
double mirror_seconds(const Contraction& p) {
  constexpr double waits = 7.3e-6, share = 2 / 4.8;  // after a launch, on an H200; of memory's bandwidth
  constexpr double launches_of_host = 10, share_of_host = 0.4;
  const double bytes =
      static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.m) * static_cast<double>(p.c.size);
  if (p.execution.space != Space::cuda) {
    const Cpu& cpu = cpu_of(p.execution);
    return launches_of_host * cpu.launch_seconds + bytes / (share_of_host * cpu.memory_bytes_per_second);
  }
  const Card& card = card_of(p.execution);
  return card.launch_seconds + waits * slowness(p.execution) + bytes / (share * card.memory_bytes_per_second);
}

// The heights of block rows with the least predicted time, or none. On a GPU they also go by waves of tiles.
std::vector<std::int64_t> heights_of(const Contraction& p, const Kernel<Contraction>& kernel) {
  constexpr double least_seconds = 5e-4, least_gain = 0.95;
  constexpr std::int64_t multiple = 128;  // keeps the alignment of X and D, and whole tiles
  const double all = predicted_seconds(kernel, p);
  if (all < least_seconds) return {};
  const auto seconds = [&](std::int64_t first, std::int64_t height) {
    const Contraction part = block_row(p, first, height);
    return supports(kernel, part) ? predicted_seconds(kernel, part) : std::numeric_limits<double>::infinity();
  };
  BlockRows best{.heights = {}, .seconds = least_gain * all - mirror_seconds(p)};
  const auto consider = [&](BlockRows rows) {
    if (rows.seconds < best.seconds) best = std::move(rows);
  };
  for (const int count : {2, 4, 8, 16}) consider(equal_block_rows(p.m, multiple, count, seconds));
  if (p.execution.space == Space::cuda) consider(block_rows_by_waves(p.m, multiple, seconds));
  return best.heights;
}

// A kernel of the caller's choice computes all of D, and so does one whose bits depend on M. Under batch_invariant a row's bits may not
// come from a column: nothing is mirrored.
Course course_of(const Contraction& p) {
  Course course{.kernel = &select(p), .heights = {}};
  if (covers(p.require, Promise::batch_invariant)) return course;
  const KernelInfo& info = course.kernel->info;
  const bool is_product = p.semiring.name == "plus_times";
  const bool halves_by_itself = info.family == "cuda.mma" && p.semiring.name == "l2_squared";
  course.mirrors = is_product && !covers(info.promises, Promise::reference_bits);
  if (p.kernel.empty() && covers(info.promises, Promise::batch_invariant) && !halves_by_itself)
    course.heights = heights_of(p, *course.kernel);
  return course;
}

void mirror(const Contraction& p) {
  const auto with_words = [&]<class Word>(Word) {
    with_instance(compiled_spaces{}, p.execution, [&]<class Exec>(const Exec& exec) {
      constexpr std::int64_t side = Mirror<Exec, Word>::side;
      Mirror<Exec, Word>{.d = strided_in<Word>(p.c),
                         .batches = p.batch,
                         .n = p.m,
                         .tiles = (p.m + side - 1) / side,
                         .by_rows = p.c.column_stride <= p.c.row_stride}
          .launch(exec);
    });
  };
  switch (p.c.size) {
    case 1: return with_words(std::uint8_t{});
    case 2: return with_words(std::uint16_t{});
    case 4: return with_words(std::uint32_t{});
    case 8: return with_words(std::uint64_t{});
    default: break;  // is_self() admits Scalars alone, of these sizes
  }
}

std::size_t bytes_of(const Course& course, const Contraction& p) {
  if (course.heights.empty()) return workspace_of(*course.kernel, p);
  std::size_t most = 0;
  for_each_block_row(p, course.heights,
                     [&](const Contraction& part) { most = std::max(most, workspace_of(*course.kernel, part)); });
  return most;
}

// One workspace serves all block rows, so that none is refused after another has been written.
void run_block_rows(const Course& course, Contraction p) {
  const std::size_t bytes = bytes_of(course, p);
  const CallMemory memory(p.function, p.execution, p.workspace, bytes, {&p.a, &p.b, &p.c});
  p.workspace = {.data = reinterpret_cast<void*>(memory.address()), .bytes = bytes};
  for_each_block_row(p, course.heights, [&](const Contraction& part) { run(*course.kernel, part); });
}

}  // namespace

void run_symmetric(const Contraction& p) {
  if (p.is_empty() || !is_self(p)) return run(p);
  p.check();
  const Course course = course_of(p);
  if (course.heights.empty())
    run(*course.kernel, p);
  else
    run_block_rows(course, p);
  if (!course.heights.empty() || course.mirrors) mirror(p);
}

std::string listing_symmetric(const Contraction& p) {
  std::string all = listing(p);
  if (p.is_empty() || !is_self(p)) return all;
  const auto listed = candidates(p);
  const bool is_covered = std::ranges::any_of(listed, [](const Candidate<Contraction>& one) { return one.chosen; });
  if (!is_covered) return all;
  const Course course = course_of(p);
  if (course.heights.empty()) return all;
  const auto [least, most] = std::ranges::minmax(course.heights);
  return "the lower triangle in " + std::to_string(course.heights.size()) + " block rows of " + std::to_string(least) +
         " to " + std::to_string(most) + ", then mirrored; all of D at once:\n" + all;
}

std::size_t bytes_symmetric(const Contraction& p) {
  if (p.is_empty()) return 0;
  return is_self(p) ? bytes_of(course_of(p), p) : workspace_of(p);
}

}  // namespace rigel::detail
