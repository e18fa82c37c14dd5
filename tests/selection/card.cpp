// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of cards, and how predicted times and choices follow a card. Made-up cards need no GPU.
#include "problems.hpp"

#include <rigel/card.hpp>

#include <doctest/doctest.h>

#include <string>

using rigel::Card, rigel::Contraction, rigel::Kernel;
using namespace selection;

namespace {

Card h200() { return rigel::card_of_architecture(90); }

/// A kernel's own prediction, without the floor that the engine adds.
double seconds_on(const Card& card, const Kernel<Contraction>& kernel, Contraction p) {
  p.execution.card = &card;
  rigel::Plan plan;
  return kernel.cost(kernel, p, plan);
}

const Kernel<Contraction>& chosen_on(const Card& card, Contraction p) {
  p.execution.card = &card;
  return select(p);
}

/// The kernels that run on the problem's GPU and cover the problem.
template <class Visit>
void for_each_kernel(const Contraction& p, const Visit& visit) {
  for (const auto& candidate : candidates(p))
    if (candidate.status) visit(*candidate.kernel);
}

}  // namespace

TEST_CASE("cards: rows are plausible, and newer data-centre cards are not slower") {
  for (const Card& card : rigel::cards()) {
    CAPTURE(std::string(card.name));
    CHECK(card.architecture == nullptr);
    CHECK(card.compute_capability >= 80);
    CHECK((card.multiprocessors > 50 && card.multiprocessors < 300));
    CHECK((card.clock > 1e9 && card.clock < 4e9));
    CHECK((card.memory_bytes_per_second > 5e11 && card.memory_bytes_per_second < 2e13));
    CHECK((card.l2_bytes_per_second > card.memory_bytes_per_second / 2 && card.l2_bytes_per_second < 5e13));
    CHECK((card.l2_bytes > 4e6 && card.l2_bytes < 1e9));
    CHECK((card.shared_memory >= 100 << 10 && card.shared_memory <= 256 << 10));
    CHECK(card.registers == 65536);
    CHECK((card.threads == 1536 || card.threads == 2048));
    CHECK((card.launch_seconds > 1e-6 && card.launch_seconds < 1e-5));
    CHECK((card.next_launch_seconds > 0 && card.next_launch_seconds <= card.launch_seconds));
    CHECK(card.instructions == 4);
    for (const double lanes :
         {card.float_lanes, card.integer_lanes, card.double_lanes, card.special_lanes, card.bit_count_lanes})
      CHECK((lanes > 0 && lanes <= 32 * card.instructions));
    CHECK(card.double_lanes <= card.float_lanes);
    CHECK(card.tensor_products > card.float_lanes);
    CHECK(card.tensor_double_products >= card.double_lanes);
    CHECK((card.warpgroup_products == 0 || card.warpgroup_products > card.tensor_products));
  }
  const auto row = [](int compute_capability) { return rigel::card_of_architecture(compute_capability); };
  // Data sheets: 19.5 and 67 TFLOP/s of float, an fma being two; 312 and 989 (at 1.83 GHz) of 16-bit floats on tensor cores.
  const auto floats = [](const Card& c) { return 2 * c.multiprocessors * c.clock * c.float_lanes; };
  CHECK(floats(row(80)) == doctest::Approx(19.5e12).epsilon(0.01));
  CHECK(floats(row(90)) == doctest::Approx(67e12).epsilon(0.01));
  CHECK(2 * row(80).multiprocessors * row(80).clock * row(80).tensor_products == doctest::Approx(312e12).epsilon(0.01));
  CHECK(2 * 132 * 1.83e9 * row(90).warpgroup_products == doctest::Approx(989e12).epsilon(0.01));
  for (const auto& [older, newer] : {std::pair{80, 90}, std::pair{90, 100}}) {
    CHECK(row(newer).memory_bytes_per_second > row(older).memory_bytes_per_second);
    CHECK(row(newer).l2_bytes_per_second > row(older).l2_bytes_per_second);
    CHECK(floats(row(newer)) > floats(row(older)));
  }
}

TEST_CASE("cards: a device gets its row, or that of its architecture scaled by what the driver says") {
  const Card& hopper = rigel::card_of_architecture(90);
  CHECK(hopper.name == "H200");
  CHECK(rigel::card_of_architecture(103).name == "B200");
  CHECK(rigel::card_of_architecture(87).name == "RTX 3090");
  CHECK(rigel::card_of_architecture(70).name == "A100");
  const auto facts = [](std::string_view name, int multiprocessors, double memory) {
    return rigel::DeviceFacts{.name = name,
                              .compute_capability = 90,
                              .multiprocessors = multiprocessors,
                              .clock = 1.98e9,
                              .memory_bytes_per_second = memory};
  };
  // Its driver says 4.92e12, from the memory's clock and width; its data sheet 4.8e12.
  const Card known = rigel::card_of(facts("NVIDIA H200", 132, 4.92e12));
  CHECK(known.name == "H200");
  CHECK(known.memory_bytes_per_second == hopper.memory_bytes_per_second);
  CHECK(known.architecture == &hopper);
  CHECK(rigel::card_of(facts("NVIDIA H100 80GB HBM3", 132, 3.35e12)).name == "H100");
  // Names that only contain a row's, and a part of a card.
  CHECK(rigel::card_of(facts("NVIDIA GH200 480GB", 132, 4.9e12)).name.empty());
  const Card part = rigel::card_of(facts("NVIDIA H200 MIG 3g.71gb", 60, 4.92e12));
  CHECK(part.name.empty());
  CHECK(part.architecture == &hopper);
  CHECK(part.multiprocessors == 60);
  CHECK(part.memory_bytes_per_second == 4.92e12);
  CHECK(part.l2_bytes_per_second == doctest::Approx(hopper.l2_bytes_per_second * 60 / 132));
  CHECK(part.shared_memory == hopper.shared_memory);  // nothing was said
  CHECK(part.double_lanes == hopper.double_lanes);
}

TEST_CASE("cards: a call without one has the row of its architecture, and nominal problems run on that") {
  rigel::Execution e{.space = rigel::Space::cuda, .compute_capability = 80};
  CHECK(card_of(e).name == "A100");
  const Card part = rigel::card_of(rigel::DeviceFacts{.name = "a part", .compute_capability = 80, .multiprocessors = 54});
  e.card = &part;
  CHECK(card_of(e).multiprocessors == 54);
  const rigel::Execution nominal = rigel::detail::nominal(e);
  CHECK(card_of(nominal).name == "A100");
  CHECK(nominal.multiprocessors == 132);
}

TEST_CASE("cards: a predicted time holds no seconds but the card's") {
  // A card of which everything takes half of the time halves every prediction.
  Card fast = h200();
  fast.clock *= 2;
  fast.memory_bytes_per_second *= 2;
  fast.l2_bytes_per_second *= 2;
  fast.launch_seconds /= 2;
  fast.next_launch_seconds /= 2;
  Random random(5);
  int others = 0, compared = 0;
  std::string first;
  for (int i = 0; i < calls; ++i) {
    Call call = random_call(random, rigel::Space::cuda);
    call.execution.compute_capability = 90;
    call.execution.shared_memory = 227 << 10;
    const Contraction p = problem(call, extent(random, 8192));
    for_each_kernel(p, [&](const Kernel<Contraction>& kernel) {
      const double slow_seconds = seconds_on(h200(), kernel, p), fast_seconds = seconds_on(fast, kernel, p);
      ++compared;
      if (std::abs(2 * fast_seconds / slow_seconds - 1) > 1e-9 && others++ == 0)
        first = kernel.info.name + ", " + call.text() + ": " + std::to_string(slow_seconds * 1e6) + " and " +
                std::to_string(fast_seconds * 1e6) + " us";
    });
  }
  CHECK_MESSAGE(others == 0, others << " of " << compared << ", the first: " << first);
}

TEST_CASE("cards: with half the bandwidth a product that waits for memory takes twice as long") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  Card slow = h200();
  slow.memory_bytes_per_second /= 2;
  // Eight rows against a matrix of 16384² floats, which is 1.07 GB: 0.3 ms at 73 % of 4.8 TB/s, next to which the rest is nothing.
  const Call call = on_hopper("plus_times", rigel::Scalar::f32, 16384, 16384);
  const Contraction p = problem(call, 8);
  const Kernel<Contraction>& kernel = chosen_on(h200(), p);
  CHECK(kernel.info.variant == "skinny");
  CHECK(seconds_on(h200(), kernel, p) == doctest::Approx(16384. * 16384 * 4 / 3.5e12).epsilon(0.02));
  CHECK(seconds_on(slow, kernel, p) / seconds_on(h200(), kernel, p) == doctest::Approx(2).epsilon(0.02));
  // A product of 4096³ computes for milliseconds, whatever memory does.
  const Call square = on_hopper("min_plus", rigel::Scalar::f32, 4096, 4096);
  const Contraction q = problem(square, 4096);
  const Kernel<Contraction>& tiles = chosen_on(h200(), q);
  CHECK(seconds_on(slow, tiles, q) == doctest::Approx(seconds_on(h200(), tiles, q)).epsilon(0.01));
}

TEST_CASE("cards: with launches twice as long one launch beats two") {
  if (rigel::kernels({.name = "cuda.simt"}).empty()) return;  // this build has none
  Card slow = h200();
  slow.launch_seconds *= 2;
  slow.next_launch_seconds *= 2;
  struct Product {
    const char* semiring;
    std::int64_t m, n, k;
    const char* of_two;  // the variant whose slices a second launch joins
  };
  for (const auto& [semiring, m, n, k, of_two] :
       {Product{"min_plus", 16, 32, 16384, "small_split_k"}, Product{"plus_times", 100, 64, 2000, "split_k"}}) {
    CAPTURE(semiring);
    Call call = on_hopper(semiring, rigel::Scalar::f32, n, k);
    call.precision = rigel::Precision::accumulator;
    const Contraction p = problem(call, m);
    const Kernel<Contraction>&two = chosen_on(h200(), p), &one = chosen_on(slow, p);
    CHECK(two.info.variant == of_two);
    CHECK(one.info.variant == "narrow_split_k");
    // Each launch adds what the card says, and two are within one more launch of one.
    const double first = h200().launch_seconds, next = h200().next_launch_seconds;
    CHECK(seconds_on(slow, two, p) - seconds_on(h200(), two, p) == doctest::Approx(first + next).epsilon(1e-6));
    CHECK(seconds_on(slow, one, p) - seconds_on(h200(), one, p) == doctest::Approx(first).epsilon(1e-6));
    const double gained = seconds_on(h200(), one, p) - seconds_on(h200(), two, p);
    CHECK((gained > 0 && gained < next));
  }
}
