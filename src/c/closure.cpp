// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "closures.hpp"
#include "operands.hpp"
#include "semirings.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace rigel::c {
namespace {

// The closure of this name for these elements.
const Closed& find(std::span<const std::span<const Closed>> lists, const char* name, Scalar element, const char* what) {
  std::vector<std::string_view> names;
  std::vector<Scalar> types;  // of this name
  for (const auto list : lists)
    for (const Closed& one : list) {
      if (std::ranges::find(names, one.semiring) == names.end()) names.push_back(one.semiring);
      if (!name || one.semiring != name) continue;
      if (one.element == element) return one;
      types.push_back(one.element);
    }
  if (types.empty()) refuse_name(name, what, names);
  throw Error(Code::unsupported, std::string(what) + " '" + name + "' of " + rigel::name(element) +
                                     " is not to be had, expected one of " +
                                     listed(types, [](Scalar type) { return rigel::name(type); }));
}

const Closed& closed_semiring(const char* name, Scalar element, bool tracks) {
  const std::array lists = {sums_of_paths(), bottlenecks(), products_along_paths(), least_products()};
  const std::array tracking = {with_predecessors()};
  const Closed& plain = find(lists, name, element, "semiring with closures");
  return tracks ? find(tracking, name, element, "semiring with predecessors") : plain;
}

// The closure and its arguments, handed to `use`.
template <class Use>
rigel_code with_call(const char* function, rigel_handle* handle, const rigel_closure_args* given, const rigel_matrix* d,
                     const rigel_matrix* predecessors, bool report, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_closure_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    require_zero(args.options.precision, "args.options.precision");
    const Contraction p = problem_of(h, args.options, function);
    const Operand of_d = operand_of(d, "D"), of_p = predecessors ? operand_of(predecessors, "P") : Operand{};
    if (predecessors && of_p.type != Scalar::i32) refuse(std::string("P.type is ") + name(of_p.type) + ", expected i32");
    const ClosureOptions options{.block = args.block == 0 ? ClosureOptions().block : args.block,
                                 .report = report,
                                 .require = p.require,
                                 .kernel = p.kernel,
                                 .workspace = p.workspace};
    use(h, closed_semiring(args.semiring, of_d.type, predecessors != nullptr), of_d, of_p, options);
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::ClosureOptions, rigel::Operand;

rigel_code rigel_closure(rigel_handle* handle, const rigel_closure_args* args, const rigel_matrix* d,
                         const rigel_matrix* predecessors, rigel_closure_report* report) {
  return with_call("rigel_closure", handle, args, d, predecessors, report != nullptr,
                   [&](const rigel_handle& h, const Closed& closed, const Operand& of_d, const Operand& of_p,
                       const ClosureOptions& options) {
                     if (report) {
                       checked(report, "report");
                       require_zero(report->reserved, "report.reserved");
                     }
                     const rigel::ClosureReport found = closed.run(h, of_d, of_p, options);
                     if (report) *report = {sizeof *report, found.negative_cycle ? 1 : 0, 0, found.vertex, found.batch};
                   });
}

rigel_code rigel_closure_workspace_size(rigel_handle* handle, const rigel_closure_args* args, const rigel_matrix* d,
                                        const rigel_matrix* predecessors, std::size_t* bytes) {
  return with_call("rigel_closure_workspace_size", handle, args, d, predecessors, false,
                   [&](const rigel_handle& h, const Closed& closed, const Operand& of_d, const Operand& of_p,
                       const ClosureOptions& options) { result(bytes, "bytes") = closed.bytes(h, of_d, of_p, options); });
}
