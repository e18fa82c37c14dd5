// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction.hpp"

#include <vector>

namespace rigel::c {
namespace {

std::vector<std::int64_t> numbers_of(const std::int64_t* given, std::int64_t count, const char* argument) {
  if (count < 0) refuse(std::string(argument) + "_count is " + std::to_string(count) + ", expected 0 or more");
  if (count > 0 && !given) refuse(std::string(argument) + " is NULL, expected " + std::to_string(count) + " intervals");
  return count == 0 ? std::vector<std::int64_t>() : std::vector(given, given + count);
}
std::vector<detail::GivenInterval> intervals_of(const std::int64_t* given, std::int64_t count, const char* argument) {
  if (count > std::numeric_limits<std::int64_t>::max() / 2)
    refuse(std::string(argument) + "_count is " + std::to_string(count) + ", which no memory holds");
  const std::vector<std::int64_t> numbers = numbers_of(given, count < 0 ? count : 2 * count, argument);
  std::vector<detail::GivenInterval> list;
  for (std::size_t i = 0; i < numbers.size(); i += 2) list.push_back({numbers[i], numbers[i + 1]});
  return list;
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_ranges_create(rigel_handle* handle, std::int64_t m, std::int64_t n, const std::int64_t* rows,
                               std::int64_t rows_count, const std::int64_t* slices, const std::int64_t* columns,
                               std::int64_t columns_count, rigel_ranges** ranges) {
  return on_handle("rigel_ranges_create", handle, [&](const rigel_handle& h) {
    rigel_ranges*& made = result(ranges, "ranges");
    made = nullptr;
    rigel::detail::RangeTable table =
        rigel::detail::table_of(m, n, intervals_of(rows, rows_count, "rows"), numbers_of(slices, rows_count, "slices"),
                                intervals_of(columns, columns_count, "columns"));
    with_instance(
        h, [&](const auto& exec) { made = new rigel_ranges{h.execution.device, rigel::Ranges(exec, std::move(table))}; });
  });
}

void rigel_ranges_destroy(rigel_ranges* ranges) {
  if (!ranges) return;
  guarded("rigel_ranges_destroy", [&] {
    // Without Kokkos views cannot be destroyed.
    if (!Kokkos::is_initialized()) return;
    const OnDevice current(ranges->device);
#ifdef KOKKOS_ENABLE_CUDA
    // Calls may read them still; cudaFree() waits only as a side effect.
    if (ranges->device >= 0) cudaDeviceSynchronize();
#endif
    delete ranges;
  });
}
