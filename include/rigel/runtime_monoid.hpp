// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reducers from text: a commutative monoid for reduce() on host execution spaces, compiled in process. docs/runtime.md describes the language.
#pragma once

#include <rigel/reduce.hpp>
#include <rigel/runtime.hpp>

namespace rigel::runtime {

/// A commutative monoid over scores as text. Each text is an expression, or statements that end with `return`.
struct MonoidTexts {
  std::string name = "text";   // in messages: letters, digits and '_'
  Scalar score = Scalar::f32;  // f32, f64, i32 or i64: the type of scores, in which numbers and hyperparameters are
  Accumulator state = {};      // a number of that type, or 2 to 4 fields of as many bytes: f32 and i32, or f64 and i64
  std::string of = {};         // the state of one score, over score and n, its column
  std::string join = {};       // of two parts, over x and y
  std::string identity = {};   // of no scores, a constant; may be empty if join is x + y, min(x, y) or max(x, y)
  std::string result = {};     // what values receive of a state x; empty: x, if that is a number
  Scalar result_type = Scalar::other;                // of result; other: what a number as state has
  std::vector<Hyperparameter> hyperparameters = {};  // at most 16
};

/// A monoid from text, a reducer of reduce(), reduce_distances() and what says so. Copies are cheap; each has its own values of the
/// hyperparameters. Scores are joined in the order of sums (docs/numerics.md), with the bits of a compiled functor of the same operations.
///
///     const rigel::runtime::Monoid range({.state = {{"least", Scalar::f32}, {"most", Scalar::f32}},
///                                         .of = "{score, score}",
///                                         .join = "{min(x.least, y.least), max(x.most, y.most)}",
///                                         .identity = "{infinity, -infinity}",
///                                         .result = "x.most - x.least"});
///     rigel::reduce(exec, semiring, a, b, range, values);
class Monoid {
 public:
  static constexpr Reducer kind = Reducer::monoid;

  /// Throws as Semiring's constructor does.
  explicit Monoid(const MonoidTexts& texts);

  /// As in Semiring; a view has one number, or one for each matrix of a batch.
  void set(std::string_view name, double value);
  template <class View>
    requires Kokkos::is_view_v<View>
  void set(std::string_view name, const View& view) {
    set_view(name, rigel::detail::scalar_of_value<typename View::non_const_value_type>(), detail::text_view(view));
  }
  double get(std::string_view name) const;
  std::vector<std::string> hyperparameters() const;

  const std::string& name() const;
  Scalar score() const;
  Scalar result() const;

  /// Compiles it, so that no call has to. Throws Error(unsupported) if librigel_runtime.so is missing.
  void compile() const;

  /// Makes it a problem's reducer, whose semiring and scores are set; it outlives the problem. Compiles it if it is not yet. Throws
  /// Error(invalid_argument) if the scores have another type, and Error(unsupported) on a space that is not the host's.
  void set_in(Reduction& p) const;

  struct Program;  // what all copies share

 private:
  void set_view(std::string_view name, Scalar type, rigel::detail::TextView view);
  std::shared_ptr<Program> program_;
  rigel::detail::TextValues values_;
};

}  // namespace rigel::runtime
