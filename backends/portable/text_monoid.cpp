// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// reduce() by a monoid from text on hosts, by strips as in monoid.hpp: a row at a time goes to the text's compiled functions.
#include <rigel/backends/portable/reduce.hpp>
#include <rigel/detail/text.hpp>
#include <rigel/detail/text_monoid.hpp>

namespace rigel::backends::portable {

Kernel<Reduction> text_monoid_kernel(const detail::TextMonoid& monoid);

namespace {

using Hosts = detail::compiled_host_spaces;

const detail::TextMonoid& monoid_of(const Kernel<Reduction>& kernel) {
  return *static_cast<const detail::TextMonoid*>(kernel.state.get());
}
Strips strips_of(const Kernel<Reduction>& kernel, const Reduction& p) { return {p, false, monoid_of(kernel).state_bytes}; }

// What becomes of the rows of a strip.
struct TextRows {
  const detail::TextMonoid* monoid;
  detail::ReducedOutputs outputs;
  bool exclude_self;
  const std::byte *scores, *parameters;
  std::size_t score_bytes, matrix_bytes;  // of a score; of the hyperparameters of a matrix, 0 if all have the same
  std::byte* states;
  detail::Strip strip;

  void operator()(std::int64_t r) const {
    const std::int64_t l = strip.l + r / strip.rows, m = strip.m + r % strip.rows;
    std::byte* const state = states + static_cast<std::size_t>(r) * monoid->state_bytes;
    const std::byte* const own = parameters + static_cast<std::size_t>(l) * matrix_bytes;
    monoid->add(scores + static_cast<std::size_t>(r * strip.pitch) * score_bytes, strip.columns, strip.n,
                exclude_self ? m : -1, strip.is_first, state, own);
    if (!strip.is_last) return;
    alignas(8) std::byte made[sizeof(double)];
    monoid->finish(state, made, own);
    switch (monoid->type) {
      case Scalar::f64: return outputs.store(read<double>(made), l, m);
      case Scalar::i32: return outputs.store(std::int64_t{read<std::int32_t>(made)}, l, m);
      case Scalar::i64: return outputs.store(read<std::int64_t>(made), l, m);
      default: return outputs.store(static_cast<double>(read<float>(made)), l, m);
    }
  }

 private:
  template <class T>
  static T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
};

void run(const Kernel<Reduction>& kernel, const Reduction& p, const Plan& plan, const Workspace& workspace) {
  const auto shape = plan.get<detail::StripShape>();
  const std::string label = "rigel::reduce/" + kernel.info.name;
  const detail::TextMonoid& monoid = monoid_of(kernel);
  const auto& values = *static_cast<const detail::TextValues*>(p.monoid);
  const std::size_t bytes = detail::most_text_parameters * monoid.number_bytes;
  const std::vector<std::byte> parameters = values.read(bytes, 0, p.batch);
  auto* const scores = static_cast<std::byte*>(workspace.data);
  TextRows work{&monoid,
                detail::ReducedOutputs::of(p),
                p.exclude_self,
                scores,
                parameters.data(),
                size_of(p.scores.type),
                values.differ() ? bytes : 0,
                scores + shape.score_bytes,
                {}};
  detail::with_instance(Hosts{}, p.execution, [&]<class Exec>(const Exec& exec) {
    using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    detail::for_each_strip(p, shape, workspace, [&](const detail::Strip& strip) {
      work.strip = strip;
      Kokkos::parallel_for(label, detail::by_argument(Policy(exec, 0, strip.row_count())), work);
    });
    exec.fence(label);  // rows read the hyperparameters that this function has
  });
}

}  // namespace

Kernel<Reduction> text_monoid_kernel(const detail::TextMonoid& monoid) {
  Kernel<Reduction> k = StripsKernel<Hosts, false>::make("strips");
  k.state = std::make_shared<detail::TextMonoid>(monoid);
  k.supports = [](const Kernel<Reduction>& kernel, const Reduction& p) { return strips_of(kernel, p).needs().status; };
  k.cost = [](const Kernel<Reduction>& kernel, const Reduction& p, Plan& plan) {
    Strips strips = strips_of(kernel, p);
    const detail::PartNeeds needs = strips.fit();
    plan.keep(strips.shape());
    if (!needs.status) return std::numeric_limits<double>::infinity();
    return needs.seconds * detail::strips_of(p, strips.shape()) + reducing_seconds(p, strips.shape());
  };
  k.run = run;
  return k;
}

}  // namespace rigel::backends::portable
