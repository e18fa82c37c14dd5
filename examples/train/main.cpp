// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A network of two linear layers learns handwritten digits: twice, then with the same batches cut into micro-batches in two ways. The
// program compares digests of the weights where Rigel promises the same bits. README.md says what it prints.
#include <examples/digits/data.hpp>
#include <examples/digits/program.hpp>
#include <rigel/rigel.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int hidden = 96, classes = 10, batch = 256, epochs = 80, tested = 360;
constexpr float rate = 0.5f;

using digits::Data, digits::features;

/// What a training ends with: a digest of all weights, and the share of the tested images that the network gets right.
struct Result {
  std::uint64_t digest;
  double accuracy;
};

/// Y = W₂ᵀ·gelu(W₁ᵀ x + b₁) + b₂ for each image x; T holds activations and the weights' rounded copies, f32 the weights themselves.
template <class Exec, class T>
class Network {
  using Space = typename Exec::memory_space;
  template <class Element>
  using Matrix = Kokkos::View<Element**, Kokkos::LayoutRight, Space>;
  using Vector = Kokkos::View<float*, Space>;
  using Range = Kokkos::RangePolicy<Exec>;

  // Weights and bias, their gradients, and the weights as products read them.
  struct Layer {
    Layer(int inputs, int outputs, std::uint32_t seed)
        : weights("weights", inputs, outputs),
          gradient("gradient", inputs, outputs),
          rounded("rounded", inputs, outputs),
          bias("bias", outputs),
          bias_gradient("bias gradient", outputs) {
      const auto host = Kokkos::create_mirror_view(weights);
      std::uint32_t state = seed;
      for (int i = 0; i < inputs; ++i)
        for (int j = 0; j < outputs; ++j) {
          state = state * 1664525u + 1013904223u;
          host(i, j) = (static_cast<float>(state >> 8) * 0x1p-23f - 1) / 8;
        }
      Kokkos::deep_copy(weights, host);
    }
    Matrix<float> weights, gradient;
    Matrix<T> rounded;
    Vector bias, bias_gradient;
  };

 public:
  Network(const Data& data, rigel::Tier tier)
      : tier_(tier),
        trained_(data.size() - tested),
        images_("images", data.size(), features),
        digits_("digits", data.size()) {
    const auto images = Kokkos::create_mirror_view(images_);
    const auto digits = Kokkos::create_mirror_view(digits_);
    for (int i = 0; i < data.size(); ++i) {
      for (int k = 0; k < features; ++k) images(i, k) = T(static_cast<float>(data.pixels[i * features + k]) / 16);
      digits(i) = data.digits[i];
    }
    Kokkos::deep_copy(images_, images);
    Kokkos::deep_copy(digits_, digits);
    round(first_);
    round(second_);
  }

  /// Trains on all images but the last ones. Each batch is cut into micro-batches of these sizes, again and again.
  Result train(const std::vector<int>& sizes) {
    for (int epoch = 0; epoch < epochs; ++epoch)
      for (int begin = 0; begin < trained_; begin += batch) {
        const int end = std::min(begin + batch, trained_);
        std::size_t cut = 0;
        for (int from = begin; from < end; from += sizes[cut++ % sizes.size()])
          add_gradients(from, std::min(from + sizes[cut % sizes.size()], end), end - begin);
        update(first_);
        update(second_);
      }
    return {digest(), accuracy()};
  }

 private:
  struct Pass {
    Matrix<T> before, values;  // of the hidden layer
    Matrix<T> outputs;
  };

  // The outputs for the images from `from` to `to`.
  Pass forward(int from, int to) const {
    const int m = to - from;
    Pass p{{"before", static_cast<std::size_t>(m), hidden},
           {"values", static_cast<std::size_t>(m), hidden},
           {"outputs", static_cast<std::size_t>(m), classes}};
    rigel::linear_forward(exec_, rows(images_, from, to), first_.rounded, first_.bias, p.values, p.before,
                          {.tier = tier_, .epilogue = rigel::Activation::gelu});
    rigel::linear_forward(exec_, p.values, second_.rounded, second_.bias, p.outputs, {.tier = tier_});
    return p;
  }

  // Adds the gradients of Σ |y − e|² / (2·batch), e the unit vector of the digit, over images of one batch.
  void add_gradients(int from, int to, int of_batch) {
    const Pass p = forward(from, to);
    const Matrix<T> of_outputs("gradient of outputs", to - from, classes),
        of_hidden("gradient of hidden", to - from, hidden);
    const auto digits = digits_;
    const float share = 1 / static_cast<float>(of_batch);
    Kokkos::parallel_for(
        "train::loss", Range(exec_, 0, to - from), KOKKOS_LAMBDA(const int i) {
          for (int j = 0; j < classes; ++j) {
            const float target = digits(from + i) == j ? 1 : 0;
            of_outputs(i, j) = T((static_cast<float>(p.outputs(i, j)) - target) * share);
          }
        });
    const rigel::LinearOptions options{.tier = tier_};
    rigel::linear_backward_weight(exec_, p.values, of_outputs, second_.gradient, second_.bias_gradient, options);
    rigel::linear_backward_input(exec_, of_outputs, second_.rounded, of_hidden, p.before, rigel::Activation::gelu, options);
    rigel::linear_backward_weight(exec_, rows(images_, from, to), of_hidden, first_.gradient, first_.bias_gradient, options);
  }

  // One step of gradient descent.
  void update(Layer& layer) {
    const auto step = [&](auto* weights, auto* gradient, std::size_t count) {
      Kokkos::parallel_for(
          "train::update", Range(exec_, 0, count), KOKKOS_LAMBDA(const int i) {
            weights[i] = Kokkos::fma(-rate, gradient[i], weights[i]);
            gradient[i] = 0;
          });
    };
    step(layer.weights.data(), layer.gradient.data(), layer.weights.size());
    step(layer.bias.data(), layer.bias_gradient.data(), layer.bias.size());
    round(layer);
  }

  void round(Layer& layer) {
    const auto* const from = layer.weights.data();
    auto* const to = layer.rounded.data();
    Kokkos::parallel_for(
        "train::round", Range(exec_, 0, layer.weights.size()), KOKKOS_LAMBDA(const int i) { to[i] = T(from[i]); });
  }

  // FNV-1a over the bits of all weights.
  std::uint64_t digest() const {
    exec_.fence();
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto add = [&](const auto& view) {
      const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, view);
      for (std::size_t i = 0; i < host.size(); ++i)
        for (int byte = 0; byte < 4; ++byte)
          hash = (hash ^ (__builtin_bit_cast(std::uint32_t, host.data()[i]) >> (8 * byte) & 0xff)) * 0x100000001b3u;
    };
    for (const Layer* layer : {&first_, &second_}) add(layer->weights), add(layer->bias);
    return hash;
  }

  double accuracy() const {
    const int from = trained_, to = trained_ + tested;
    const auto outputs = forward(from, to).outputs;
    const auto digits = digits_;
    int right = 0;
    Kokkos::parallel_reduce(
        "train::accuracy", Range(exec_, 0, tested),
        KOKKOS_LAMBDA(const int i, int& count) {
          int best = 0;
          for (int j = 1; j < classes; ++j)
            if (static_cast<float>(outputs(i, j)) > static_cast<float>(outputs(i, best))) best = j;
          count += best == digits(from + i);
        },
        right);
    return static_cast<double>(right) / tested;
  }

  template <class View>
  static auto rows(const View& view, int from, int to) {
    return Kokkos::subview(view, Kokkos::pair(from, to), Kokkos::ALL);
  }

  Exec exec_;
  rigel::Tier tier_;
  int trained_;
  Matrix<T> images_;
  Kokkos::View<int*, Space> digits_;
  Layer first_{features, hidden, 1}, second_{hidden, classes, 2};
};

/// Trains in each of the ways, and prints a line for each. Returns whether digests are equal where they must be; `digest` is that of the
/// first training, or what an earlier space had for this tier and type.
template <class Exec, class T>
bool compare(const Data& data, rigel::Tier tier, std::map<std::string, std::uint64_t>& known) {
  struct Way {
    const char* name;
    std::vector<int> sizes;
    bool cuts;
  };
  const Way ways[] = {{"whole batches", {batch}, false},
                      {"whole batches, again", {batch}, false},
                      {"micro-batches of 64", {64}, true},
                      {"micro-batches of 100, 1, 155", {100, 1, 155}, true}};
  const std::string key = std::string(rigel::name(tier)) + '/' + rigel::name(rigel::scalar_of<T>);
  // The scalar tier's bits are the same everywhere; the tensor tier's are those of one GPU and one way to cut batches.
  const bool everywhere = tier == rigel::Tier::scalar;
  bool good = true;
  std::uint64_t first = 0;
  for (const Way& way : ways) {
    const Result r = Network<Exec, T>(data, tier).train(way.sizes);
    if (&way == ways) first = everywhere ? known.emplace(key, r.digest).first->second : r.digest;
    const bool promised = everywhere || !way.cuts, same = r.digest == first;
    good = good && (same || !promised);
    std::printf("%-8s %-12s %-30s %016llx  %5.1f %%  %s\n", Exec::name(), key.c_str(), way.name,
                static_cast<unsigned long long>(r.digest), 100 * r.accuracy,
                same       ? "same bits"
                : promised ? "other bits !!!"
                           : "other bits, as may be");
  }
  return good;
}

template <class Exec>
bool compare_all(const Data& data, std::map<std::string, std::uint64_t>& known) {
  bool good = compare<Exec, float>(data, rigel::Tier::scalar, known);
  good = compare<Exec, rigel::bfloat16>(data, rigel::Tier::scalar, known) && good;
  if constexpr (!Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible)
    good = compare<Exec, rigel::bfloat16>(data, rigel::Tier::tensor, known) && good;
  return good;
}

bool run(const digits::Options& options) {
  using Device = Kokkos::DefaultExecutionSpace;
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Data data = digits::read(options.data);
  if (data.size() <= tested) throw std::runtime_error("'" + options.data.string() + "' has too few digits");
  std::map<std::string, std::uint64_t> known;
  for (const auto& [name, digest] : options.expected) known[name] = std::stoull(digest, nullptr, 16);
  std::printf("%d handwritten digits, %d of them for tests; %d epochs; digest of the weights, accuracy:\n", data.size(),
              tested, epochs);
  bool good = compare_all<Host>(data, known);
  if constexpr (!std::is_same_v<Device, Host>) good = compare_all<Device>(data, known) && good;
  std::printf(good ? "all digests are equal where that is promised\n"
                   : "digests (!!!) differ though the same bits are promised\n");
  return good;
}

constexpr const char* usage =
    "train [--data <digits.csv>] [--expect <tier>/<type>=<digest>]...\n"
    "Trains a network on handwritten digits in several ways and compares the weights' bits. The data lies next to the "
    "program\n"
    "or is named. Ends with 1 where bits differ that must not, or a digest is not as expected.\n";

}  // namespace

int main(int argc, char** argv) { return digits::run_program(argc, argv, usage, run); }
