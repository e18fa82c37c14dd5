// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels' facts, and the provider that makes them.
#include "loops.hpp"
#include "tiles.hpp"

#include <rigel/outside_kernels.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace {

using rigel::Contraction, rigel::Kernel, rigel::KernelOwner, rigel::Layout, rigel::Status;

double tiles_of(const Contraction& p, int tile) {
  const std::int64_t rows = (p.m + tile - 1) / tile, columns = (p.n + tile - 1) / tile;
  return static_cast<double>(rows) * static_cast<double>(columns);
}

// What the kernel's info does not say already.
Status supports(const Kernel<Contraction>& kernel, const Contraction& p) {
  if (!p.program || !p.program->empty()) return {rigel::Decline::epilogue, "this kernel has no epilogue"};
  if (p.c.type != rigel::Scalar::f64) return {rigel::Decline::result, std::string("C holds ") + rigel::name(p.c.type)};
  if (tiles_of(p, kernel.info.tile.m) > 0x7fffffff) return {rigel::Decline::extents, "C has 2^31 tiles or more"};
  return {};
}

// Whole tiles are computed.
double cost(const Kernel<Contraction>& kernel, const Contraction& p, rigel::Plan&) {
  const int tile = kernel.info.tile.m;
  const double steps =
      static_cast<double>(p.batch) * tiles_of(p, tile) * tile * tile * static_cast<double>(std::max<std::int64_t>(p.k, 1));
  return 1e-6 + steps / tiles::steps_per_second(tile, p.execution);
}

// All but its loop.
Kernel<Contraction> facts(int tile, const tiles::Layouts& layouts) {
  using rigel::Promise;
  Kernel<Contraction> k;
  k.info.family = "tiles";
  for (const Layout one : layouts) k.info.variant += one == Layout::row_major ? 'r' : 'c';
  const std::string extent = std::to_string(tile);
  k.info.name = "tiles.plus_times.f64." + k.info.variant + '.' + extent + 'x' + extent;
  k.info.semiring = "plus_times";
  k.info.element = k.info.accumulator = rigel::Scalar::f64;
  for (std::size_t i = 0; i < layouts.size(); ++i) k.info.operands[i].layout = layouts[i];
  k.info.spaces = tiles::spaces();
  k.info.raw_launch = k.info.spaces == rigel::bit(rigel::Space::cuda);
  k.info.tile = {tile, tile, 1};
  k.info.promises = Promise::reference_bits | Promise::repeatable | Promise::batch_invariant;
  k.info.accuracy = {2, 1};
  k.supports = supports;
  k.cost = cost;
  return k;
}

// Those of the sixteen that are wanted, each of which is made once. A kernel that has to be compiled would be compiled here, and keep what came of
// it as its `state`.
std::vector<KernelOwner> kernels(const Contraction&, const rigel::KernelPredicate& wanted) {
  static std::mutex mutex;
  static std::map<std::string, KernelOwner> made;
  std::vector<KernelOwner> list;
  constexpr Layout both[] = {Layout::row_major, Layout::column_major};
  for (const int tile : {16, 32})
    for (const Layout a : both)
      for (const Layout b : both)
        for (const Layout c : both) {
          Kernel<Contraction> kernel = facts(tile, {a, b, c});
          if (!wanted(kernel.info)) continue;
          const std::lock_guard lock(mutex);
          KernelOwner& one = made[kernel.info.name];
          if (!one) {
            kernel.run = tiles::loop(tile, {a, b, c});
            one = rigel::make_kernel(kernel);
          }
          list.push_back(one);
        }
  return list;
}

}  // namespace

void tiles::provide() { rigel::register_provider("tiles", kernels); }
