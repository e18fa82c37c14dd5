// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What reduce() refuses, with what message, and its workspace.
#include <rigel/neighbors.hpp>

#include <tests/reduce/call.hpp>

namespace {

using namespace reduced;
namespace reducer = rigel::reducer;
using rigel::Code;
using Exec = Kokkos::DefaultHostExecutionSpace;

const rigel::plus_times<float> s;

struct Doubled {
  RIGEL_MEMBER float operator()(float v, std::int64_t, std::int64_t, std::int64_t) const { return 2 * v; }
};

template <class... Arguments>
support::Caught refused(const Arguments&... arguments) {
  return support::caught([&] { rigel::reduce(Exec{}, arguments...); });
}

TEST_CASE("reduce: messages name the argument and what was expected") {
  const auto a = support::matrix<float, Exec>(4, 3, {}, "left"), b = support::matrix<float, Exec>(3, 6, {}, "right"),
             short_b = support::matrix<float, Exec>(2, 6, {}, "right");
  const auto values = support::matrix<float, Exec>(4, 5, {}, "best");
  const auto indices = support::matrix<int, Exec>(4, 5, {}, "places");
  const auto one = vector<float, Exec>(4);
  const auto check = [](const support::Caught& e, std::initializer_list<const char*> texts) {
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks(texts) == "");
  };
  check(refused(s, a, short_b, reducer::minimum{}, one),
        {"reduce: B 'right' is 2x6, expected 3 rows to match A 'left' 4x3"});
  check(refused(s, a, b, reducer::minimum{}, vector<float, Exec>(3)), {"reduce: values 'vector' is 3x1, expected 4 rows"});
  check(refused(s, a, b, reducer::smallest{4}, values, indices),
        {"values 'best' is 4x5, expected 4 columns, one for each of the 4 smallest"});
  check(refused(s, a, b, reducer::smallest{0}, values), {"smallest's k is 0, expected 1 to 4096"});
  check(refused(s, a, b, reducer::largest{5000}, values), {"largest's k is 5000, expected 1 to 4096"});
  check(refused(s, a, b, reducer::smallest{5}, values, support::matrix<int, Exec>(3, 5, {}, "places")),
        {"indices 'places' is 3x5, expected 4 rows"});
  check(refused(s, a, b, reducer::minimum{}, one, rigel::ReduceOptions{.exclude_self = true}),
        {"exclude_self", "the scores 4x6", "as many rows as columns"});
  check(refused(s, a, b, reducer::minimum{}, vector<int, Exec>(4)),
        {"values 'vector' 4x1 of i32, expected f16, bf16, f32 or f64"});
  check(refused(s, support::batch<float, Exec>(3, 4, 3, {}, "left"), b, reducer::minimum{},
                support::matrix<float, Exec>(2, 4)),
        {"A 'left' is 3x4x3, expected 2 batches or one to match the scores 2x4x6"});
  check(refused(s, a, support::matrix<float, Exec>(3, 200), reducer::count_below{1}, vector<std::int8_t, Exec>(4)),
        {"of i8, expected numbers that hold counts up to N = 200"});
}

TEST_CASE("reduce: counts go to types that hold all integers up to N") {
  const auto a = support::matrix<float, Exec>(4, 0);
  const auto counted = [&]<class Value>(Value, int n) {
    return refused(s, a, support::matrix<float, Exec>(0, n), reducer::count_below{-1}, vector<Value, Exec>(4));
  };
  CHECK(counted(rigel::bfloat16(), 256).code == Code::ok);
  CHECK(counted(rigel::bfloat16(), 257).lacks({"of bf16, expected numbers that hold counts up to N = 257"}) == "");
  CHECK(counted(rigel::half(), 2048).code == Code::ok);
  CHECK(counted(rigel::half(), 2049).lacks({"of f16, expected numbers that hold counts up to N = 2049"}) == "");
  CHECK(counted(0.f, (1 << 24) + 1).lacks({"of f32, expected numbers that hold counts up to N = 16777217"}) == "");
  CHECK(counted(std::int8_t(), 127).code == Code::ok);
}

TEST_CASE("reduce: lists of all scores below a threshold") {
  const auto a = support::matrix<float, Exec>(4, 3, {}, "left"), b = support::matrix<float, Exec>(3, 6, {}, "right");
  const auto values = vector<float, Exec>(10);
  const auto indices = vector<int, Exec>(9);
  const auto offsets = vector<std::int64_t, Exec>(4), enough = vector<std::int64_t, Exec>(5);
  using Below = reducer::all_below<Vector<std::int64_t, Exec>>;
  CHECK(refused(s, a, b, Below{1, offsets}, values)
            .lacks({"offsets 'vector' is 4x1, expected 5 rows, one more than A 'left' 4x3"}) == "");
  CHECK(refused(s, a, b, Below{1, enough}, values, indices)
            .lacks({"values 'vector' is 10x1, expected as many rows as indices"}) == "");
  CHECK(refused(s, a, b, Below{1, enough}, vector<int, Exec>(10)).lacks({"of i32, expected f16, bf16, f32 or f64"}) == "");
  CHECK(refused(s, a, b, Below{1, enough}, rigel::no_output, Vector<std::int64_t, Exec>(enough))
            .lacks({"indices", "overlaps offsets"}) == "");
  CHECK(refused(s, a, b, Below{1, enough}, values).code == Code::ok);
  const auto batches = support::matrix<int, Exec>(2, 10, {}, "places");
  CHECK(refused(s, a, b, Below{1, enough}, values, batches)
            .lacks({"indices 'places' is 2x10x1, expected one batch: all_below lists the scores of one matrix"}) == "");
}

TEST_CASE("reduce: what is written overlaps nothing") {
  const Kokkos::View<float*, Kokkos::HostSpace> memory("memory", 100);
  const Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> a(memory.data(), 4, 3),
      b(memory.data() + 12, 3, 6), values(memory.data() + 29, 4, 5), itself(memory.data() + 40, 4, 5);
  const auto of_values = [&](const auto& v) { return refused(s, a, b, reducer::smallest{5}, v); };
  CHECK(of_values(values).lacks({"values  4x5 overlaps B  3x6", "distinct elements"}).find("values") != std::string::npos);
  CHECK(of_values(values).code == Code::invalid_argument);
  CHECK(of_values(itself).code == Code::ok);
  const Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> folded(
      memory.data() + 40, Kokkos::LayoutStride(4, 1, 5, 1));
  CHECK(of_values(folded).lacks({"overlaps itself"}) == "");
  const Kokkos::View<int**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> same(
      reinterpret_cast<int*>(memory.data() + 41), 4, 5);
  CHECK(refused(s, a, b, reducer::smallest{5}, itself, same).lacks({"values", "overlaps indices"}) == "");
  const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> row(memory.data() + 43, 6);
  CHECK(refused(s, a, b, reducer::smallest{5}, itself, rigel::no_output, rigel::epilogue::add_row(row))
            .lacks({"values", "add_row()"}) == "");
  const auto doubled = rigel::epilogue::functor(Doubled{}) | rigel::epilogue::add_row(row);
  CHECK(refused(s, a, b, reducer::smallest{5}, itself, rigel::no_output, doubled).lacks({"values", "add_row()"}) == "");
}

TEST_CASE("reduce: the workspace overlaps nothing") {
  namespace metric = rigel::metric;
  const std::size_t apart = 128 << 10;  // after the beginning of each array: more memory than a workspace takes
  const auto check = [&](const auto& bytes_of, const auto& call, const char* argument, void* begin) {
    CAPTURE(argument);
    const std::size_t bytes = bytes_of();
    CHECK(bytes < apart);
    const auto e = support::caught([&] { call(rigel::Workspace{.data = begin, .bytes = bytes}); });
    CHECK(e.code == Code::invalid_argument);
    CHECK(e.lacks({"the workspace", "overlaps ", argument, "expected distinct elements"}) == "");
  };
  const Kokkos::View<std::byte*, Kokkos::HostSpace> memory("memory", 7 * apart);
  const auto start = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
  const auto place = [&](std::size_t number) { return reinterpret_cast<void*>(start + number * apart); };
  using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Places = Kokkos::View<int**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Offsets = Kokkos::View<std::int64_t*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  const Matrix x(static_cast<float*>(place(0)), 80, 20), z(static_cast<float*>(place(1)), 90, 20),
      values(static_cast<float*>(place(2)), 80, 3), factor(static_cast<float*>(place(3)), 20, 20);
  const Places indices(static_cast<int*>(place(4)), 80, 3);
  const Offsets offsets(static_cast<std::int64_t*>(place(5)), 81);
  const reducer::all_below<Offsets> below{1, offsets};
  const auto list = vector<float, Exec>(100);
  const auto of_metric = [&](const auto& m) {
    const auto best = [&](rigel::Workspace w) {
      rigel::reduce_distances(Exec{}, x, z, m, reducer::smallest{3}, values, indices, {}, {.workspace = w});
    };
    const auto bytes_of_best = [&] {
      return rigel::reduce_distances_workspace_size(Exec{}, x, z, m, reducer::smallest{3}, values, indices);
    };
    check(bytes_of_best, best, "values", values.data());
    check(bytes_of_best, best, "indices", indices.data());
    check(bytes_of_best, best, "X", x.data());
    check(bytes_of_best, best, "Z", z.data());
    check([&] { return rigel::reduce_distances_workspace_size(Exec{}, x, z, m, below, list); },
          [&](rigel::Workspace w) {
            rigel::reduce_distances(Exec{}, x, z, m, below, list, rigel::no_output, {}, {.workspace = w});
          },
          "offsets", offsets.data());
  };
  of_metric(metric::manhattan{});
  of_metric(metric::cosine{});
  const auto mahalanobis = metric::mahalanobis(factor);
  check([&] { return rigel::reduce_distances_workspace_size(Exec{}, x, z, mahalanobis, reducer::smallest{3}, values); },
        [&](rigel::Workspace w) {
          rigel::reduce_distances(Exec{}, x, z, mahalanobis, reducer::smallest{3}, values, rigel::no_output, {},
                                  {.workspace = w});
        },
        "factor", factor.data());
}

TEST_CASE("reduce_distances: results may lie at any address") {
  // The size of the workspace needs no memory: that of prepared rows is not known yet.
  const auto x = support::matrix<float, Exec>(40, 20), z = support::matrix<float, Exec>(60, 20);
  const Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> low(
      reinterpret_cast<float*>(4096), 40, 3);
  const auto bytes = [&](const auto& values, const auto& indices) {
    return rigel::reduce_distances_workspace_size(Exec{}, x, z, rigel::metric::cosine{}, reducer::smallest{3}, values,
                                                  indices);
  };
  CHECK(bytes(low, rigel::no_output) == bytes(support::matrix<float, Exec>(40, 3), rigel::no_output));
  CHECK(bytes(low, rigel::no_output) >= sizeof(float) * (40 + 60) * 20);
  const Kokkos::View<int**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> same(
      reinterpret_cast<int*>(4096), 40, 3);
  CHECK(support::caught([&] { bytes(low, same); }).lacks({"values", "overlaps indices"}) == "");
}

TEST_CASE("reduce: kernels by name") {
  const auto a = support::matrix<float, Exec>(4, 3), b = support::matrix<float, Exec>(3, 6);
  const auto one = vector<float, Exec>(4);
  CHECK(refused(s, a, b, reducer::minimum{}, one, rigel::ReduceOptions{.kernel = "nobody"}).code == Code::not_found);
  const auto unknown = refused(s, a, b, reducer::minimum{}, one, rigel::ReduceOptions{.score_kernel = "nobody"});
  CHECK(unknown.code == Code::unsupported);
  CHECK(unknown.lacks({"no kernel is named 'nobody'", "portable.strips"}) == "");
  CHECK(refused(s, a, b, reducer::minimum{}, one, rigel::ReduceOptions{.score_kernel = "reference"}).code == Code::ok);
  const std::string text = rigel::explain_reduce(Exec{}, s, a, b, reducer::minimum{}, one);
  CHECK(text.find("reduce minimum of plus_times f32, 4x6x3") == 0);
  CHECK(text.find("* ") != std::string::npos);
  for (const auto require : {rigel::Promise::reference_bits, rigel::Promise::repeatable, rigel::Promise::batch_invariant})
    CHECK(refused(s, a, b, reducer::sum{}, one, rigel::ReduceOptions{.require = require}).code == Code::ok);
}

TEST_CASE("reduce: the workspace keeps to its limit and may be the caller's") {
  constexpr int m = 300, n = 5000, k = 20;
  const auto a = support::matrix<float, Exec>(m, k), b = support::matrix<float, Exec>(k, n);
  const auto values = support::matrix<float, Exec>(m, 10);
  // What contract() needs for the least strip, a row of 64 scores, comes on top, and so do the row's k best and the parts' alignment.
  const std::size_t least =
      rigel::workspace_size(Exec{}, s, Kokkos::subview(a, Kokkos::pair(0, 1), Kokkos::ALL),
                            Kokkos::subview(b, Kokkos::ALL, Kokkos::pair(0, 64)), support::matrix<float, Exec>(1, 64)) +
      (std::size_t{1} << 16);
  for (const std::size_t limit : {std::size_t{1} << 14, std::size_t{1} << 18, std::size_t{1} << 22}) {
    CAPTURE(limit);
    rigel::ReduceOptions options{.kernel = "portable.strips", .workspace_limit = limit};
    const std::size_t bytes = rigel::reduce_workspace_size(Exec{}, s, a, b, reducer::smallest{10}, values, rigel::no_output,
                                                           rigel::epilogue::Program{}, options);
    CHECK(bytes > 0);
    CHECK(bytes <= limit + least);
    const Kokkos::View<char*, Exec> memory("memory", bytes + 256);
    const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    options.workspace = {.data = reinterpret_cast<void*>(address), .bytes = bytes};
    CHECK(refused(s, a, b, reducer::smallest{10}, values, options).code == Code::ok);
    options.workspace.bytes = bytes - 1;
    CHECK(refused(s, a, b, reducer::smallest{10}, values, options).lacks({"the workspace has", "needs"}) == "");
  }
  CHECK(rigel::reduce_workspace_size(Exec{}, s, a, b, reducer::smallest{10}, values) <= std::size_t{64} << 20);
}

TEST_CASE("reduce: a call with a small limit gets no kernel of whole rows, unless it names one") {
  const auto x = support::matrix<float, Exec>(10, 1), z = support::matrix<float, Exec>(1000000, 1);
  const auto values = support::matrix<float, Exec>(10, 3);
  const auto bytes = [&](const rigel::ReduceOptions& options) {
    return rigel::reduce_distances_workspace_size(Exec{}, x, z, rigel::metric::manhattan{}, reducer::smallest{3}, values,
                                                  rigel::no_output, rigel::epilogue::Program{}, options);
  };
  CHECK(bytes({.workspace_limit = 1}) < 1 << 16);
  CHECK(bytes({.require = rigel::Promise::reference_bits, .workspace_limit = 1}) < 1 << 16);
  CHECK(bytes({.kernel = "reference", .workspace_limit = 1}) >= 4000000);
}

// A kernel of contract() that needs workspace, but only for parts of one row.
TEST_CASE("reduce: a strip whose fastest kernel needs memory that was not announced gets another one") {
  using Kernel = rigel::Kernel<rigel::Contraction>;
  static const void* row = nullptr;
  Kernel k;
  k.info.family = "user";
  k.info.name = "user.for_one_row";
  k.info.semiring = "l2_squared";
  k.info.element = k.info.accumulator = rigel::Scalar::f64;
  k.info.spaces = rigel::host_spaces;
  k.supports = [](const Kernel&, const rigel::Contraction& p) -> rigel::Status {
    if (p.a.data != row) return {rigel::Decline::other, "another row"};
    return {};
  };
  k.cost = [](const Kernel&, const rigel::Contraction&, rigel::Plan&) { return 0.; };
  k.workspace = [](const Kernel&, const rigel::Contraction&, const rigel::Plan&) {
    return rigel::WorkspaceSize{.bytes = std::size_t{1} << 30};
  };
  k.run = [](const Kernel&, const rigel::Contraction&, const rigel::Plan&, const rigel::Workspace&) { FAIL("was run"); };
  rigel::register_kernel(k);
  // Strips have one row. What the first two of them need is announced.
  const auto a = support::matrix<double, Exec>(4, 1, {1, 2, 3, 4}), b = support::matrix<double, Exec>(1, 2, {0, 5});
  const auto values = vector<double, Exec>(4);
  const rigel::ReduceOptions options{.kernel = "portable.strips", .workspace_limit = 1};
  const auto bytes = [&] {
    return rigel::reduce_workspace_size(Exec{}, rigel::l2_squared<double>{}, a, b, reducer::sum{}, values, rigel::no_output,
                                        rigel::epilogue::Program{}, options);
  };
  row = &a(1, 0);
  CHECK(bytes() > std::size_t{1} << 30);
  row = &a(2, 0);
  CHECK(bytes() < 1 << 16);
  const auto e =
      support::caught([&] { rigel::reduce(Exec{}, rigel::l2_squared<double>{}, a, b, reducer::sum{}, values, options); });
  row = nullptr;
  CHECK(e.code == Code::ok);
  CHECK(support::values(values) == Values{17, 13, 13, 17});
}

// A kernel of contract() that needs so much workspace that strips shrink until it does not cover them.
TEST_CASE("reduce: strips that nothing computes are the last choice") {
  static bool is_there = false;
  rigel::Kernel<rigel::Contraction> k;
  k.info.family = "user";
  k.info.name = "user.for_many_rows";
  k.info.semiring = "l2_squared";
  k.info.element = k.info.accumulator = rigel::Scalar::f64;
  k.info.spaces = rigel::host_spaces;
  k.supports = [](const auto&, const rigel::Contraction& p) -> rigel::Status {
    if (!is_there || p.m < 32) return {rigel::Decline::extents, "few rows"};
    return {};
  };
  k.cost = [](const auto&, const auto&, rigel::Plan&) { return 0.; };
  k.workspace = [](const auto&, const auto&, const rigel::Plan&) {
    return rigel::WorkspaceSize{.bytes = std::size_t{1} << 30};
  };
  k.run = [](const auto&, const auto&, const rigel::Plan&, const rigel::Workspace&) { FAIL("was run"); };
  rigel::register_kernel(k);
  rigel::Kernel<rigel::Reduction> slow;
  slow.info.family = "user";
  slow.info.name = "user.slow";
  slow.info.spaces = rigel::host_spaces;
  slow.supports = [](const auto&, const auto&) -> rigel::Status {
    if (!is_there) return {rigel::Decline::other, "absent"};
    return {};
  };
  slow.cost = [](const auto&, const auto&, rigel::Plan&) { return 1e9; };
  slow.workspace = [](const auto&, const auto&, const rigel::Plan&) { return rigel::WorkspaceSize{}; };
  slow.run = [](const auto&, const auto&, const rigel::Plan&, const rigel::Workspace&) {};
  rigel::register_kernel(slow);
  const auto a = support::matrix<double, Exec>(100, 1), b = support::matrix<double, Exec>(1, 2);
  is_there = true;
  const std::string text =
      rigel::explain_reduce(Exec{}, rigel::l2_squared<double>{}, a, b, reducer::sum{}, vector<double, Exec>(100),
                            rigel::no_output, rigel::epilogue::Program{}, {.score_kernel = "user.for_many_rows"});
  is_there = false;
  CHECK(text.find("* user.slow") != std::string::npos);
}

TEST_CASE("reduce: no rows and no batches are nothing to do") {
  const auto b = support::matrix<float, Exec>(3, 6);
  CHECK(refused(s, support::matrix<float, Exec>(0, 3), b, reducer::minimum{}, vector<float, Exec>(0)).code == Code::ok);
  CHECK(refused(s, support::batch<float, Exec>(0, 4, 3), b, reducer::sum{}, support::matrix<float, Exec>(0, 4)).code ==
        Code::ok);
}

}  // namespace
