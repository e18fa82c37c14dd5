// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What check_functions.py counts: of these, two functions have more than four lines.
namespace {

struct Pair {
  int first, second;

  Pair() : first{1}, second{2} {
    ++first;
    ++second;
    first += second;
  }
};

constexpr const char* braces[] = {
    "}}",  // }
    "{",
    R"({ ")",
    "}",
};

int short_one(Pair pair = {}) {
  // Comments and literals hold no braces: { '{'
  return pair.first + braces[0][0] + '{' + 1'000;
}

template <class T>
  requires(sizeof(T) > 1)
T long_one(T value) {
  const auto twice = [](T x) { return 2 * x; };
  return twice(value) + short_one();
}

}  // namespace

int main() { return long_one(1); }
