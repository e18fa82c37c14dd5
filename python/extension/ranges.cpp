// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ranges.hpp"

#include <utility>

namespace rigel::python {
namespace {

std::vector<std::int64_t> numbers_of(nb::handle given, const char* name) {
  const Array array = input(given, name, 1);
  std::int64_t count = 1;
  bool is_contiguous = array.type == RIGEL_I64 && array.place.device < 0;
  for (int i = array.dimensions; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    is_contiguous = is_contiguous && (array.shape[at] <= 1 || array.strides[at] == count);
    count *= array.shape[at];
  }
  if (!is_contiguous) refuse(described(array, name) + ", expected contiguous int64 on the host");
  const auto* const data = static_cast<const std::int64_t*>(array.data);
  return count == 0 ? std::vector<std::int64_t>() : std::vector(data, data + count);
}

struct Discarded {
  std::int32_t device;
  rigel_ranges* ranges;
};
// Ranges on GPUs that nobody refers to.
std::vector<Discarded>& discarded() {
  static std::vector<Discarded>& all = *new std::vector<Discarded>;  // never destroyed: CUDA may be gone before
  return all;
}

// Takes those of a device from the list.
std::vector<rigel_ranges*> discarded_on(std::int32_t device) {
  std::vector<rigel_ranges*> taken;
  std::erase_if(discarded(), [&](const Discarded& one) {
    if (one.device == device) taken.push_back(one.ranges);
    return one.device == device;
  });
  return taken;
}

}  // namespace

Ranges::Ranges(nb::handle m, nb::handle n, nb::handle rows, nb::handle slices, nb::handle columns)
    : m_(number_of<std::int64_t>(m, "m")),
      n_(number_of<std::int64_t>(n, "n")),
      rows_(numbers_of(rows, "rows")),
      slices_(numbers_of(slices, "slices")),
      columns_(numbers_of(columns, "columns")) {
  if (rows_.size() != 2 * slices_.size())
    refuse("Ranges: slices has " + std::to_string(slices_.size()) + " numbers, expected " +
           std::to_string(rows_.size() / 2) + ", one for each of rows");
  on(Array{});  // checks them
}

Ranges::~Ranges() {
  for (const Made& one : made_) {
    if (one.device < 0)
      rigel_ranges_destroy(one.ranges);
    else
      discarded().push_back({one.device, one.ranges});
  }
}

const rigel_ranges* Ranges::find(std::int32_t device) const {
  for (const Made& one : made_)
    if (one.device == device) return one.ranges;
  return nullptr;
}

const rigel_ranges* Ranges::on(const Array& array) {
  const std::int32_t device = array.place.device;
  if (const rigel_ranges* const found = find(device)) return found;
  if (device >= 0 && nb::cast<bool>(package().is_capturing(array.object)))
    refuse("ranges are not on CUDA device " + std::to_string(device) +
           " yet, whose stream is being captured in a graph, expected a call with them before the capture");
  const std::shared_ptr<StreamHandle> of_stream = handle_of(array);
  rigel_handle* const handle = of_stream ? of_stream->handle : thread_handle();
  const std::vector<rigel_ranges*> old = discarded_on(device);
  rigel_ranges* fresh = nullptr;
  const rigel_code code = [&] {
    const nb::gil_scoped_release without_gil;
    const Running running;
    std::unique_lock<std::recursive_mutex> turn;
    if (of_stream) turn = std::unique_lock(of_stream->turn);
    for (rigel_ranges* const one : old) rigel_ranges_destroy(one);
    const auto size = [](const std::vector<std::int64_t>& list) { return static_cast<std::int64_t>(list.size()); };
    return rigel_ranges_create(handle, m_, n_, rows_.data(), size(slices_), slices_.data(), columns_.data(),
                               size(columns_) / 2, &fresh);
  }();
  if (code != RIGEL_OK) raise(code, without_function(rigel_last_error()));
  // Another thread may have made them meanwhile.
  const rigel_ranges* const found = find(device);
  if (found)
    rigel_ranges_destroy(fresh);
  else
    made_.push_back({device, fresh});
  return found ? found : fresh;
}

const rigel_ranges* ranges_of(nb::handle given, const Array& array) {
  return given.is_none() ? nullptr : nb::cast<Ranges&>(given).on(array);
}

void define_ranges(nb::module_& m) {
  nb::class_<Ranges>(m, "Ranges")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(), nb::arg().none(), nb::arg().none(),
           nb::arg(), nb::arg(), nb::arg());
}

}  // namespace rigel::python
