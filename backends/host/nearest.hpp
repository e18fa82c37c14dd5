// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// host.nearest: the least or the k least Euclidean distances, and where they are. One product of floats tells for certain which few
// distances can be among them; these are computed by subtraction, in the reference's chains.
#pragma once

#include <rigel/backends/host/nearest_search.hpp>

namespace rigel::backends::host::nearest {

/// How a problem is cut: rows in groups whose states are in the workspace, columns in parts that are packed there.
struct Cut {
  std::int64_t group, part;
  int block_rows, capacity, workers;
};
Cut cut_of(const Reduction& p, const Geometry& geometry);
WorkspaceSize workspace_of(const Reduction& p, const Geometry& geometry, const Cut& cut);

/// What is wrong with a problem, if the loops do not serve it.
Status supports(const Reduction& p, const Geometry& geometry);
/// Predicted seconds, with loops on vectors of so many bytes.
double seconds_of(const Reduction& p, const Cut& cut, int vector_bytes);

/// Runs a loop on the threads of the call's execution space instance.
template <class Element>
void run(const Reduction& p, const std::string& label, const Loop& loop, const Cut& cut, void* workspace);

/// The kernel for elements of a type at a level.
template <class Level, class Element>
Kernel<Reduction> kernel(Spaces spaces) {
  Kernel<Reduction> k;
  k.info = detail::info_of<l2_squared<Element>>("host", std::string("nearest.") + Level::name, {}, spaces);
  k.info.tile = {compiled_loop<Level, Element>().geometry.rows, compiled_loop<Level, Element>().geometry.columns, 0};
  k.info.promises = Promise::repeatable | Promise::batch_invariant | Promise::reference_bits;
  k.cost = [](const Kernel<Reduction>&, const Reduction& p, Plan& plan) {
    const Cut cut = cut_of(p, compiled_loop<Level, Element>().geometry);
    plan.keep(cut);
    return seconds_of(p, cut, Level::vector_bytes);
  };
  k.workspace = [](const Kernel<Reduction>&, const Reduction& p, const Plan& plan) {
    return workspace_of(p, compiled_loop<Level, Element>().geometry, plan.get<Cut>());
  };
  k.run = [](const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
    run<Element>(p, "rigel::reduce/" + kernel.info.name, compiled_loop<Level, Element>(), plan.get<Cut>(), workspace.data);
  };
  return k;
}

}  // namespace rigel::backends::host::nearest
