// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "operands.hpp"
#include "semirings.hpp"

#include <rigel/transitive_closure.hpp>

namespace rigel::c {
namespace {

// What the driver takes, handed to `use`.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_transitive_closure_args* given,
                        const rigel_matrix* d, const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_transitive_closure_args& args = checked(given, "args");
    require_zero(args.reserved, "args");
    Contraction p = problem_of(h, args.options, function);
    p.c = operand_of(d, "D");
    if (p.c.type != Scalar::u32 && p.c.type != Scalar::u64)
      refuse(std::string("D.type is ") + name(p.c.type) + ", expected u32 or u64, words of packed bits");
    const Semiring semiring = semiring_of("or_and", p.c.type, 0, {});
    const epilogue::Program as_it_is;
    semiring.set_in(p);
    p.program = &as_it_is;
    p.epilogue_object = &as_it_is;
    p.accumulate = true;
    p.batch = p.c.batches;
    p.m = p.c.rows;
    p.n = p.c.columns;
    use(std::move(p), args.block == 0 ? TransitiveClosureOptions().block : args.block);
  });
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;

rigel_code rigel_transitive_closure(rigel_handle* handle, const rigel_transitive_closure_args* args, const rigel_matrix* d) {
  return with_problem("rigel_transitive_closure", handle, args, d, [](rigel::Contraction p, std::int64_t block) {
    rigel::detail::run_transitive_closure(std::move(p), block, nullptr);
  });
}

rigel_code rigel_transitive_closure_workspace_size(rigel_handle* handle, const rigel_transitive_closure_args* args,
                                                   const rigel_matrix* d, std::size_t* bytes) {
  return with_problem("rigel_transitive_closure_workspace_size", handle, args, d,
                      [&](rigel::Contraction p, std::int64_t block) {
                        result(bytes, "bytes") = rigel::detail::transitive_closure_bytes(std::move(p), block, nullptr);
                      });
}
