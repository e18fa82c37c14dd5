// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listing.hpp"
#include "operands.hpp"

#include <rigel/linalg.hpp>

namespace rigel::c {
namespace {

static_assert(RIGEL_LOWER == int(Triangle::lower) && RIGEL_UPPER == int(Triangle::upper));

// What a function solves, and its matrices as the caller gives them: A or L, B unless it factorises, and what is written.
struct Given {
  Factorisation factorisation;
  Solve::Task task;
  const rigel_matrix *a, *b, *x;
  const char *a_name, *x_name;
  const rigel_matrix *values, *info;
};

Triangle triangle_of(std::int32_t triangle) {
  if (triangle != RIGEL_LOWER && triangle != RIGEL_UPPER)
    refuse("args.triangle is " + std::to_string(triangle) + ", expected 0 (RIGEL_LOWER) or 1 (RIGEL_UPPER)");
  return static_cast<Triangle>(triangle);
}

Operand infos_of(const rigel_matrix* info) {
  if (!info) return {.argument = "info"};
  const Operand o = operand_of(info, "info");
  if (o.type != Scalar::i32) refuse(std::string("info.type is ") + name(o.type) + ", expected i32");
  return o;
}

// The problem of a call, handed to `use` with the handle and whether its result is checked.
template <class Use>
rigel_code with_problem(const char* function, rigel_handle* handle, const rigel_solve_args* given_args, const Given& given,
                        const Use& use) {
  return on_handle(function, handle, [&](const rigel_handle& h) {
    const rigel_solve_args& args = checked(given_args, "args");
    require_zero(args.reserved, "args");
    require_zero(args.reserved_flags, "args.reserved_flags");
    require_zero(args.options.precision, "args.options.precision");
    Solve p;
    static_cast<Call&>(p) = call_of(h, args.options, function);
    p.factorisation = given.factorisation;
    p.task = given.task;
    p.triangle = triangle_of(args.triangle);
    p.a = operand_of(given.a, given.a_name);
    require_f32_or_f64(p.a);
    if (p.task != Solve::Task::factor) {
      p.b = operand_of(given.b, "B");
      require_same_type(p.b, p.a);
    }
    if (p.factorisation == Factorisation::eigen) {
      p.values = operand_of(given.values, "w");
      require_same_type(p.values, p.a);
    }
    p.x = operand_of(given.x, given.x_name);
    require_same_type(p.x, p.a);
    p.infos = infos_of(given.info);
    p.element = p.a.type;
    p.batch = p.x.batches;
    p.n = p.a.rows;
    p.right_sides = p.task == Solve::Task::factor ? 0 : p.x.columns;
    const bool overwrite_a = flag(args.overwrite_a, "args.overwrite_a");
    p.overwrite_a = overwrite_a && p.task != Solve::Task::substitute;  // L is never written
    p.overwrite_b = flag(args.overwrite_b, "args.overwrite_b");
    p.refine = args.refine;
    use(h, p, flag(args.check, "args.check"));
  });
}

constexpr auto run = [](const rigel_handle& handle, const Solve& p, bool check) {
  with_instance(handle, [&](const auto& exec) { detail::run_solve(exec, p, check); });
};

// Stores the bytes of workspace that a call needs.
auto store_bytes(std::size_t* bytes) {
  return [=](const rigel_handle&, const Solve& p, bool) { result(bytes, "bytes") = workspace_size(p).bytes; };
}

// Stores the candidates of a call.
auto store_candidates(char** json) {
  return [=](const rigel_handle&, const Solve& p, bool) {
    p.check();
    result(json, "json") = text_of(json_of(p.summary(), candidates(p)));
  };
}

Given cholesky_solve(const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info) {
  return {Factorisation::cholesky, Solve::Task::solve, a, b, x, "A", "X", nullptr, info};
}
Given cholesky_factor(const rigel_matrix* a, const rigel_matrix* l, const rigel_matrix* info) {
  return {Factorisation::cholesky, Solve::Task::factor, a, nullptr, l, "A", "L", nullptr, info};
}
Given cholesky_solve_factored(const rigel_matrix* l, const rigel_matrix* b, const rigel_matrix* x,
                              const rigel_matrix* info) {
  return {Factorisation::cholesky, Solve::Task::substitute, l, b, x, "L", "X", nullptr, info};
}
Given lu_solve(const rigel_matrix* a, const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info) {
  return {Factorisation::lu, Solve::Task::solve, a, b, x, "A", "X", nullptr, info};
}
Given eigh(const rigel_matrix* a, const rigel_matrix* w, const rigel_matrix* v, const rigel_matrix* info) {
  return {Factorisation::eigen, Solve::Task::factor, a, nullptr, v, "A", "V", w, info};
}

// A view of an operand's matrices, or of the first element of each.
template <class T, class Exec>
auto matrices_of(const Exec&, const Operand& o) {
  const auto extent = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const Kokkos::LayoutStride layout(extent(o.batches), extent(o.batch_stride), extent(o.rows), extent(o.row_stride),
                                    extent(o.columns), extent(o.column_stride));
  return Kokkos::View<T***, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      static_cast<T*>(o.data), layout);
}
template <class T, class Exec>
auto numbers_of(const Exec&, const Operand& o) {
  const Kokkos::LayoutStride layout(static_cast<std::size_t>(o.batches), static_cast<std::size_t>(o.batch_stride));
  return Kokkos::View<T*, Kokkos::LayoutStride, typename Exec::memory_space, Kokkos::MemoryUnmanaged>(
      static_cast<T*>(o.data), layout);
}

}  // namespace
}  // namespace rigel::c

using namespace rigel::c;
using rigel::Operand, rigel::Scalar;

rigel_code rigel_cholesky_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info) {
  return with_problem("rigel_cholesky_solve", handle, args, cholesky_solve(a, b, x, info), run);
}
rigel_code rigel_cholesky_solve_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                               const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info,
                                               std::size_t* bytes) {
  return with_problem("rigel_cholesky_solve_workspace_size", handle, args, cholesky_solve(a, b, x, info),
                      store_bytes(bytes));
}
rigel_code rigel_explain_cholesky_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                        const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info,
                                        char** json) {
  return with_problem("rigel_explain_cholesky_solve", handle, args, cholesky_solve(a, b, x, info), store_candidates(json));
}

rigel_code rigel_cholesky_factor(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                 const rigel_matrix* l, const rigel_matrix* info) {
  return with_problem("rigel_cholesky_factor", handle, args, cholesky_factor(a, l, info), run);
}
rigel_code rigel_cholesky_factor_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                                const rigel_matrix* l, const rigel_matrix* info, std::size_t* bytes) {
  return with_problem("rigel_cholesky_factor_workspace_size", handle, args, cholesky_factor(a, l, info), store_bytes(bytes));
}
rigel_code rigel_explain_cholesky_factor(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                         const rigel_matrix* l, const rigel_matrix* info, char** json) {
  return with_problem("rigel_explain_cholesky_factor", handle, args, cholesky_factor(a, l, info), store_candidates(json));
}

rigel_code rigel_cholesky_solve_factored(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* l,
                                         const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info) {
  return with_problem("rigel_cholesky_solve_factored", handle, args, cholesky_solve_factored(l, b, x, info), run);
}
rigel_code rigel_cholesky_solve_factored_workspace_size(rigel_handle* handle, const rigel_solve_args* args,
                                                        const rigel_matrix* l, const rigel_matrix* b, const rigel_matrix* x,
                                                        const rigel_matrix* info, std::size_t* bytes) {
  return with_problem("rigel_cholesky_solve_factored_workspace_size", handle, args, cholesky_solve_factored(l, b, x, info),
                      store_bytes(bytes));
}
rigel_code rigel_explain_cholesky_solve_factored(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* l,
                                                 const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info,
                                                 char** json) {
  return with_problem("rigel_explain_cholesky_solve_factored", handle, args, cholesky_solve_factored(l, b, x, info),
                      store_candidates(json));
}

rigel_code rigel_lu_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* b,
                          const rigel_matrix* x, const rigel_matrix* info) {
  return with_problem("rigel_lu_solve", handle, args, lu_solve(a, b, x, info), run);
}
rigel_code rigel_lu_solve_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                         const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info,
                                         std::size_t* bytes) {
  return with_problem("rigel_lu_solve_workspace_size", handle, args, lu_solve(a, b, x, info), store_bytes(bytes));
}
rigel_code rigel_explain_lu_solve(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                  const rigel_matrix* b, const rigel_matrix* x, const rigel_matrix* info, char** json) {
  return with_problem("rigel_explain_lu_solve", handle, args, lu_solve(a, b, x, info), store_candidates(json));
}

rigel_code rigel_eigh(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a, const rigel_matrix* w,
                      const rigel_matrix* v, const rigel_matrix* info) {
  return with_problem("rigel_eigh", handle, args, eigh(a, w, v, info), run);
}
rigel_code rigel_eigh_workspace_size(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                                     const rigel_matrix* w, const rigel_matrix* v, const rigel_matrix* info,
                                     std::size_t* bytes) {
  return with_problem("rigel_eigh_workspace_size", handle, args, eigh(a, w, v, info), store_bytes(bytes));
}
rigel_code rigel_explain_eigh(rigel_handle* handle, const rigel_solve_args* args, const rigel_matrix* a,
                              const rigel_matrix* w, const rigel_matrix* v, const rigel_matrix* info, char** json) {
  return with_problem("rigel_explain_eigh", handle, args, eigh(a, w, v, info), store_candidates(json));
}

rigel_code rigel_log_determinant(rigel_handle* handle, const rigel_matrix* l, const rigel_matrix* d) {
  return on_handle("rigel_log_determinant", handle, [&](const rigel_handle& h) {
    const Operand factor = operand_of(l, "L"), numbers = operand_of(d, "d");
    require_f32_or_f64(factor);
    require_same_type(numbers, factor);
    if (numbers.rows != 1 || numbers.columns != 1 || numbers.batches != factor.batches)
      refuse(rigel::detail::describe_argument(numbers, " is ") + ", expected 1x1 for each of " +
             std::to_string(factor.batches) + " batches of L");
    with_instance(h, [&](const auto& exec) {
      if (factor.type == Scalar::f32)
        rigel::log_determinant(exec, matrices_of<const float>(exec, factor), numbers_of<float>(exec, numbers));
      else
        rigel::log_determinant(exec, matrices_of<const double>(exec, factor), numbers_of<double>(exec, numbers));
    });
  });
}
