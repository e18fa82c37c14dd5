// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C++ around what a text says: functions on vectors of lanes (on a GPU on numbers), and those that the loops call.
#include "text.hpp"

#include <rigel/detail/reduction.hpp>

namespace rigel::runtime {

// Each is in some twenty places of the loops: with a hundred of them a text would take half a minute to compile.
constexpr int most_inlined = 6;

constexpr const char* vectors = R"(typedef int IV __attribute__((ext_vector_type(N)));
typedef long LV __attribute__((ext_vector_type(N)));
typedef float FV __attribute__((ext_vector_type(N)));
typedef double DV __attribute__((ext_vector_type(N)));
template <class C, class To> FN To convert(C c) { return __builtin_convertvector(c, To); }
)";

// A GPU's thread computes one number. Masks are all bits, as those of vectors are.
constexpr const char* numbers = R"(typedef int IV;
typedef long LV;
typedef float FV;
typedef double DV;
template <class C, class To> FN To convert(C c) {
  if constexpr (__is_same(C, bool)) return c ? To(-1) : To(0);
  else return To(c);
}
)";

// What texts may do, on vectors of A and of other types. FN, LONG and ONCE say what is inlined.
constexpr const char* functions = R"(template <class T> struct mask_of { typedef IV type; };
template <> struct mask_of<LV> { typedef LV type; };
template <> struct mask_of<DV> { typedef LV type; };
template <class C> FN M mask(C c) { return convert<C, M>(c); }
#if ON_GPU  // LLVM makes its opposite of c != 0, with x and y exchanged, and ptxas then selects from uniform registers
template <class T> FN T select(M c, T x, T y) { return c < 0 ? x : y; }
#else
template <class T> FN T select(M c, T x, T y) { return convert<M, typename mask_of<T>::type>(c) ? x : y; }
#endif
template <class To, class From> FN To to(From x) { return convert<From, To>(x); }
template <class To, class From> LONG To whole(From x) {
  constexpr bool is_int = sizeof(To) == N * sizeof(int);
  constexpr auto limit = is_int ? 0x1p31f : 0x1p63f;
  const From inside = select(mask(x >= limit), From(0), select(mask(x < -limit), From(-limit), select(mask(x != x), From(0), x)));
  return select(mask(x >= limit), To(is_int ? 0x7fffffffl : 0x7fffffffffffffffl), to<To>(inside));
}
template <class T> FN T absolute(T x) { return __builtin_elementwise_abs(x); }
#if ON_GPU  // of doubles in words, as rigel::math's
FN FV minimum(FV x, FV y) { return __builtin_elementwise_minimum(x, y); }
FN FV maximum(FV x, FV y) { return __builtin_elementwise_maximum(x, y); }
FN DV of_words(bool c, DV x, DV y) {
  const int low = c ? __nvvm_d2i_lo(x) : __nvvm_d2i_lo(y), high = c ? __nvvm_d2i_hi(x) : __nvvm_d2i_hi(y);
  return __nvvm_lohi_i2d(low, high);
}
FN DV minimum(DV x, DV y) { return of_words((x < y) | (x != x), x, y); }
FN DV maximum(DV x, DV y) { return of_words((x > y) | (x != x), x, y); }
#else
FN FV minimum(FV x, FV y) { return select(mask(x != x), x, select(mask(x < y), x, y)); }
FN FV maximum(FV x, FV y) { return select(mask(x != x), x, select(mask(x > y), x, y)); }
FN DV minimum(DV x, DV y) { return select(mask(x != x), x, select(mask(x < y), x, y)); }
FN DV maximum(DV x, DV y) { return select(mask(x != x), x, select(mask(x > y), x, y)); }
#endif
FN IV minimum(IV x, IV y) { return __builtin_elementwise_min(x, y); }
FN LV minimum(LV x, LV y) { return __builtin_elementwise_min(x, y); }
FN IV maximum(IV x, IV y) { return __builtin_elementwise_max(x, y); }
FN LV maximum(LV x, LV y) { return __builtin_elementwise_max(x, y); }
FN FV fused(FV x, FV y, FV z) { return __builtin_elementwise_fma(x, y, z); }
FN DV fused(DV x, DV y, DV z) { return __builtin_elementwise_fma(x, y, z); }
FN IV fused(IV x, IV y, IV z) { return x * y + z; }
FN LV fused(LV x, LV y, LV z) { return x * y + z; }
template <class T> FN T divisor(T y) { return select(mask(y == 0) | mask(y == -1), T(1), y); }
template <class T> LONG T quotient(T x, T y) {
  return select(mask(y == 0), T(0), select(mask(y == -1), -x, x / divisor(y)));
}
template <class T> LONG T remainder(T x, T y) { return select(mask(y == 0) | mask(y == -1), T(0), x % divisor(y)); }
template <class T> FN T left(T x, T y) { return x << (y & T(8 * sizeof(T) / N - 1)); }
template <class T> FN T right(T x, T y) { return x >> (y & T(8 * sizeof(T) / N - 1)); }
template <class T> FN T root(T x) { return __builtin_elementwise_sqrt(x); }
template <class T> FN T inverse_root(T x) { return 1 / root(x); }
template <class T> FN T floor_of(T x) { return __builtin_elementwise_floor(x); }
template <class T> FN T ceil_of(T x) { return __builtin_elementwise_ceil(x); }
template <class T> FN T trunc_of(T x) { return __builtin_elementwise_trunc(x); }
template <class T> FN T with_sign(T x, T y) { return __builtin_elementwise_copysign(x, y); }
template <class T> FN M is_nan(T x) { return mask(x != x); }
template <class T> FN M is_infinite(T x) { return mask(absolute(x) == T(__builtin_inff())); }
template <class T> FN M is_finite(T x) { return mask(absolute(x) < T(__builtin_inff())); }
)";

// Functions that the platform has, each of dozens of instructions.
constexpr const char* functions_of_vectors = R"(FN A first(AV x) { return x[0]; }
template <class T> ONCE T exp_of(T x) { return __builtin_elementwise_exp(x); }
template <class T> ONCE T exp2_of(T x) { return __builtin_elementwise_exp2(x); }
template <class T> ONCE T log_of(T x) { return __builtin_elementwise_log(x); }
template <class T> ONCE T log2_of(T x) { return __builtin_elementwise_log2(x); }
template <class T> ONCE T sin_of(T x) { return __builtin_elementwise_sin(x); }
template <class T> ONCE T cos_of(T x) { return __builtin_elementwise_cos(x); }
template <class T> ONCE T pow_of(T x, T y) { return __builtin_elementwise_pow(x, y); }
#define DEFINE_BY_LANE(name, function)                                                \
  ONCE FV name(FV x) { for (int i = 0; i < N; ++i) x[i] = function##f(x[i]); return x; } \
  ONCE DV name(DV x) { for (int i = 0; i < N; ++i) x[i] = function(x[i]); return x; }
DEFINE_BY_LANE(expm1_of, __builtin_expm1)
DEFINE_BY_LANE(log1p_of, __builtin_log1p)
DEFINE_BY_LANE(tanh_of, __builtin_tanh)
template <class T> FN T fast_exp2_of(T x) { return exp2_of(x); }
template <class T> FN T fast_log2_of(T x) { return log2_of(x); }
)";
constexpr const char* functions_of_numbers = R"(FN A first(AV x) { return x; }
// x^(halves / 2) by products and, if halves is odd, a root, which of floats is within 2 u, and of subnormal floats 0 but for halves = 1. The last
// product may be fused with a sum. Of a magnitude |x| x is enough: FMUL reads |x| for free, FFMA does not.
template <int halves> FN FV near_root(FV x) { return halves == 1 ? __nvvm_sqrt_approx_f(x) : __nvvm_sqrt_approx_ftz_f(x); }
template <int halves> FN DV near_root(DV x) { return root(x); }
template <int halves, bool of_magnitude, class T> FN T product_of(T x) {
#pragma clang fp contract(fast)
  const T d = of_magnitude ? absolute(x) : x;
  if constexpr (halves == 1) return near_root<halves>(d);
  if constexpr (halves == 2) return d;
  if constexpr (halves == 3) return d * near_root<halves>(d);
  if constexpr (halves == 4) return x * x;
  if constexpr (halves == 5) return x * x * near_root<halves>(d);
  if constexpr (halves == 6) return x * d * x;
  if constexpr (halves == 7) return x * x * (d * near_root<halves>(d));
  if constexpr (halves == 8) return x * x * (x * x);
}
template <bool of_magnitude, class T> FN T product_of(T x, int halves) {
  switch (halves) {
    case 1: return product_of<1, of_magnitude>(x);
    case 2: return product_of<2, of_magnitude>(x);
    case 3: return product_of<3, of_magnitude>(x);
    case 4: return product_of<4, of_magnitude>(x);
    case 5: return product_of<5, of_magnitude>(x);
    case 6: return product_of<6, of_magnitude>(x);
    case 7: return product_of<7, of_magnitude>(x);
    default: return product_of<8, of_magnitude>(x);
  }
}
// How many halves an exponent is that is known here and at most 4; else 0.
template <class P> FN int halves_of(P p) {
  if (!__builtin_constant_p(p) || !(p > 0 && p <= 4)) return 0;
  const int halves = (int)(2 * p);
  return halves == 2 * p ? halves : 0;
}
#define DEFINE(name)                                                              \
  extern "C" __attribute__((const)) float rigel_text_##name##_f32(float) noexcept;   \
  extern "C" __attribute__((const)) double rigel_text_##name##_f64(double) noexcept; \
  LONG FV name##_of(FV x) { return rigel_text_##name##_f32(x); }                     \
  LONG DV name##_of(DV x) { return rigel_text_##name##_f64(x); }
DEFINE(exp)
DEFINE(exp2)
DEFINE(expm1)
DEFINE(log)
DEFINE(log2)
DEFINE(log1p)
DEFINE(sin)
DEFINE(cos)
DEFINE(tanh)
#define DEFINE_BINARY(name, own)                                                         \
  extern "C" __attribute__((const)) float rigel_text_##own##_f32(float, float) noexcept;    \
  extern "C" __attribute__((const)) double rigel_text_##own##_f64(double, double) noexcept; \
  LONG FV name##_of(FV x, FV y) { return rigel_text_##own##_f32(x, y); }                    \
  LONG DV name##_of(DV x, DV y) { return rigel_text_##own##_f64(x, y); }
DEFINE_BINARY(pow, pow)
FN FV fast_exp2_of(FV x) { return __nvvm_ex2_approx_ftz_f(x); }
FN FV fast_log2_of(FV x) { return __nvvm_lg2_approx_ftz_f(x); }
FN DV fast_exp2_of(DV x) { return exp2_of(x); }
FN DV fast_log2_of(DV x) { return log2_of(x); }
)";

namespace {

// The word for a number of a type.
const char* word(Type type) {
  return type == Type::f64 ? "double" : type == Type::i32 ? "int" : type == Type::i64 ? "long" : "float";
}

// Of Rigel's functions that texts call, those on vectors of the host that end so, and the power on GPUs of this name; whether products take
// the place of powers whose exponents are known.
struct Called {
  std::string block = "", power = "power";
  bool has_products = true;
};

// What texts may use: A, the type of numbers, AV, a vector of them, and M, a mask of its lanes.
std::string prelude(const Counts& counts, Scalar number, int lanes, const Called& called = {}) {
  const bool is_floating = number == Scalar::f32 || number == Scalar::f64;
  const bool wide = number == Scalar::f64 || number == Scalar::i64;
  const Type type = is_floating ? (wide ? Type::f64 : Type::f32) : wide ? Type::i64 : Type::i32;
  std::string s = "#define FN static inline __attribute__((always_inline))\n";
  // What takes dozens of instructions is inlined if there is little of it.
  s += std::string("#define LONG static ") + (counts.long_operations > most_inlined
                                                  ? "__attribute__((noinline, unused))\n"
                                                  : "inline __attribute__((always_inline))\n");
  // Functions that call the C library's for each lane, and large ones of the text. Copies of them in every place would take seconds to
  // compile.
  s += "#define ONCE static __attribute__((noinline, unused))\n";
  const bool on_gpu = lanes == 0;
  s += std::string("#define ON_GPU ") + (on_gpu ? "1\n" : "0\n");
  s += std::string("typedef ") + word(type) + " A;\nenum { N = " + std::to_string(on_gpu ? 1 : lanes) + " };\n";
  s += on_gpu ? numbers : vectors;
  s += std::string("typedef ") + (wide ? "LV" : "IV") + " M;\ntypedef " + vector(type) + " AV;\n";
  s += functions;
  s += on_gpu ? functions_of_numbers : functions_of_vectors;
  if (on_gpu)
    s += "DEFINE_BINARY(any_power, " + called.power + ")\ntemplate <class T> FN int short_exponent(T p) { return " +
         (called.has_products ? "halves_of(p)" : "0") + R"(; }
template <class T> FN T power_of(T x, T p) {
  const int halves = short_exponent(p);
  return halves ? product_of<false>(x, halves) : any_power_of(x, p);
}
template <class T> FN T power_of_magnitude(T x, T p) {
  const int halves = short_exponent(p);
  return halves ? product_of<true>(x, halves) : any_power_of(absolute(x), p);
}
)";
  const std::string& block = called.block;
  if (is_floating && !on_gpu)
    s += "extern \"C\" {\nAV rigel_text_exp" + block + "(AV x) noexcept;\nAV rigel_text_log" + block +
         "(AV x) noexcept;\nAV rigel_text_power" + block +
         "(AV x, A p) noexcept;\n}\nLONG AV exp_of(AV x) { return rigel_text_exp" + block +
         "(x); }\nLONG AV log_of(AV x) { return rigel_text_log" + block +
         "(x); }\nLONG AV power_of(AV x, A p) { return rigel_text_power" + block + "(x, p); }\n";
  if (is_floating && !on_gpu) s += "FN AV power_of_magnitude(AV x, A p) { return power_of(absolute(x), p); }\n";
  return s;
}

// A function of a text, of the type that `head` begins with.
std::string function(const std::string& head, const Body& body) {
  return std::string(body.is_large ? "ONCE" : "FN") + " " + head + " {\n" + body.code + "}\n";
}
// A function that a struct has.
std::string member(const std::string& head, const Body& body) { return "MEMBER " + head + " const {\n" + body.code + "}\n"; }

// The variable that points to what the loops call in the library.
constexpr const char* support = "extern const void* rigel_text_support;\nconst void* rigel_text_support = nullptr;\n";

// The accumulator X of several fields, or a number's vector, and how it passes from the loops and to them.
std::string accumulator_of(const std::vector<TypedField>& fields) {
  const std::string count = std::to_string(fields.empty() ? 1 : fields.size());
  const std::string passed = "enum { F = " + count + " };\nstruct Fields { AV field[F]; };\n";
  if (fields.empty())
    return passed +
           "typedef AV X;\nFN X got(Fields from) { return from.field[0]; }\nFN Fields put(X x) { return Fields{{x}}; }\n";
  std::string members, selected, got, put;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto append = [&](std::string& list, std::initializer_list<std::string_view> parts) {
      if (i > 0) list += ", ";
      for (const std::string_view part : parts) list += part;
    };
    const std::string at = std::to_string(i), own = "f" + at, type = vector(fields[i].type);
    members.append(type).append(" ").append(own).append("; ");
    append(selected, {"select(c, x.", own, ", y.", own, ")"});
    append(got, {"__builtin_bit_cast(", type, ", from.field[", at, "])"});
    append(put, {"__builtin_bit_cast(AV, x.", own, ")"});
  }
  return passed + "struct X { " + members + "};\nFN X select(M c, X x, X y) { return X{" + selected +
         "}; }\nFN X got(Fields from) { return X{" + got + "}; }\nFN Fields put(X x) { return Fields{{" + put + "}}; }\n";
}

// ⊗, ⊕ and the step of a text, on accumulators X, each by define(head, body). On GPUs sums may be fused with the last product of a power.
std::string terms_of(const Parsed& parsed, bool on_gpu, std::string (*define)(const std::string&, const Body&)) {
  Body add = parsed.add;
  if (on_gpu && parsed.is_sum && !parsed.exponents.empty()) add.code = "#pragma clang fp contract(fast)\n" + add.code;
  return define("X multiply(AV a, AV b, long k, const A* parameters)", parsed.multiply) +
         define("X add(X x, X y, const A* parameters)", add) +
         define(
             "X step(X x, AV a, AV b, long k, const A* parameters)",
             parsed.step.code.empty() ? Body{"  return add(x, multiply(a, b, k, parameters), parameters);\n"} : parsed.step);
}
// The same, the identity and the result.
std::string operations_of(const Parsed& parsed, bool on_gpu) {
  const std::string s =
      accumulator_of(parsed.fields) + terms_of(parsed, on_gpu, &function) + function("X identity()", parsed.identity);
  return s + function(std::string(vector(parsed.result_type)) + " result(X x, const A* parameters)",
                      parsed.result.code.empty() ? Body{"  return x;\n"} : parsed.result);
}

// The number of fields, in names of functions.
std::string count_of(const Parsed& parsed) { return std::to_string(parsed.fields.empty() ? 1 : parsed.fields.size()); }

// The functions of a text that reads k or whose accumulator has several fields.
std::string source_of_fields(const Parsed& parsed, const std::string& begin) {
  const std::string count = count_of(parsed);
  std::string s = begin + operations_of(parsed, false) + "extern \"C\" {\n" + support;
  s += R"(__attribute__((always_inline)) void rigel_text_first(A* fields) noexcept {
  const Fields all = put(identity());
  for (int i = 0; i < F; ++i) fields[i] = all.field[i][0];
}
)";
  s += "__attribute__((always_inline, regcall)) Fields rigel_text_fold_" + count +
       "(Fields x, AV a, AV b, long k, const A* parameters) noexcept {\n  return put(step(got(x), a, b, k, "
       "parameters));\n}\n";
  return s + "__attribute__((always_inline, regcall)) AV rigel_text_result_of_" + count +
         "(Fields x, const A* parameters) noexcept {\n  return __builtin_bit_cast(AV, result(got(x), parameters));\n}\n}\n";
}

// What tiles of sums of powers call: the exponent, and steps with powers by products, a table or calls (rigel/backends/cuda/simt/text_powers.hpp).
std::string powers_of(const Parsed& parsed) {
  const std::string terms = R"(  MEMBER AV power_of(AV x, A p) const {
    const int own = halves_of(p);
    return own ? product_of<false>(x, own) : power(x, p);
  }
  MEMBER AV power_of_magnitude(AV x, A p) const {
    const int own = halves_of(p);
    return own ? product_of<true>(x, own) : magnitude_power(x, p);
  }
)" + terms_of(parsed, true, &member) +
                            "};\n";
  std::string s = R"(#define MEMBER inline __attribute__((always_inline))
extern "C" {
__attribute__((pure)) float rigel_text_power_by_table_f32(float, const void*, const float*) noexcept;
__attribute__((const)) float rigel_text_called_power_f32(float, float) noexcept;
}
)";
  s += R"(struct ByTable {
  const void* table;
  const float* coefficients;
  MEMBER AV power(AV x, A) const { return rigel_text_power_by_table_f32(x, table, coefficients); }
  MEMBER AV magnitude_power(AV x, A p) const { return power(x, p); }
)" + terms +
       R"(template <int exponent> struct ByProducts {
  MEMBER AV power(AV x, A) const { return product_of<2 * exponent, false>(x); }
  MEMBER AV magnitude_power(AV x, A) const { return product_of<2 * exponent, true>(x); }
)" + terms +
       R"(struct ByCalls {
  MEMBER AV power(AV x, A p) const { return rigel_text_called_power_f32(x, p); }
  MEMBER AV magnitude_power(AV x, A p) const { return power(absolute(x), p); }
)" + terms;
  s += "extern \"C\" {\n#define INLINED __attribute__((always_inline))\n";
  s += "INLINED A rigel_text_exponent(const A* parameters) noexcept { return first(" + parsed.exponent.code + "); }\n";
  s += std::string("INLINED bool rigel_text_exponent_is_number() noexcept { return ") +
       (parsed.exponent.value ? "true" : "false") + "; }\n";
  s += R"(#define STEP(name, Powers)                                                             \
  INLINED A rigel_text_step_##name(A x, A a, A b, long k, const A* parameters) noexcept { \
    return Powers{}.step(x, a, b, k, parameters);                                         \
  }
STEP(of_power_1, ByProducts<1>)
STEP(of_power_2, ByProducts<2>)
STEP(of_power_3, ByProducts<3>)
STEP(of_power_4, ByProducts<4>)
STEP(by_calls, ByCalls)
INLINED A rigel_text_step_by_table(A x, A a, A b, long k, const A* parameters, const void* table, const A* coefficients) noexcept {
  return ByTable{table, coefficients}.step(x, a, b, k, parameters);
}
}
)";
  return s;
}

// The functions of a text for GPUs. Numbers pass as they are, several fields in a struct.
std::string source_on_gpu(const Parsed& parsed, const std::string& begin) {
  const std::string count = count_of(parsed);
  const bool is_number = parsed.fields.empty();
  const auto passed = [&](const std::string& x) { return is_number ? x : "put(" + x + ")"; };
  const std::string type = is_number ? "A" : "Fields", x = is_number ? "x" : "got(x)";
  const std::string inlined = "__attribute__((always_inline)) ";
  std::string s = begin + operations_of(parsed, true) + "extern \"C\" {\n";
  s += inlined + type + " rigel_text_identity_" + count + "() noexcept { return " + passed("identity()") + "; }\n";
  s += inlined + type + " rigel_text_step_" + count + "(" + type +
       " x, A a, A b, long k, const A* parameters) noexcept {\n" + "  return " +
       passed("step(" + x + ", a, b, k, parameters)") + ";\n}\n";
  if (is_number)
    s += inlined + "A rigel_text_add_1(A x, A y, const A* parameters) noexcept { return add(x, y, parameters); }\n";
  s += inlined + "A rigel_text_result_" + count + "(" + type + " x, const A* parameters) noexcept {\n" +
       "  return __builtin_bit_cast(A, result(" + x + ", parameters));\n}\n}\n";
  return parsed.exponent.code.empty() ? s : s + powers_of(parsed);
}

}  // namespace

namespace {

// ⊗, ⊕ and the step of a number.
std::string steps(const Parsed& parsed) {
  return function("AV multiply(AV a, AV b, const A* parameters)", parsed.multiply) +
         function("AV add(AV x, AV y, const A* parameters)", parsed.add) +
         function(
             "AV step(AV x, AV a, AV b, const A* parameters)",
             parsed.step.code.empty() ? Body{"  return add(x, multiply(a, b, parameters), parameters);\n"} : parsed.step);
}

// The functions of a text that calls functions, for blocks of four vectors. The powers of some exponents have products and a root in their
// place, as in rigel/backends/host/powers.hpp.
std::string source_of_groups(const Parsed& parsed, const std::string& begin) {
  std::string s = begin + steps(parsed);
  s += function("AV identity()", parsed.identity);
  s += function("AV result(AV x, const A* parameters)", parsed.result.code.empty() ? Body{"  return x;\n"} : parsed.result);
  const bool has_short = !parsed.exponents.empty() && !parsed.powers_vary;
  if (has_short)
    s +=
        R"(FN bool is_short(A p) { return p == A(0.5) || p == 1 || p == A(1.5) || p == 2 || p == A(2.5) || p == 3 || p == A(3.5) || p == 4; }
namespace brief {
FN AV power_of(AV d, A p) {
  switch ((int)(2 * p)) {
    case 1: return root(d);
    case 2: return d;
    case 3: return d * root(d);
    case 4: return d * d;
    case 5: return d * d * root(d);
    case 6: return d * d * d;
    case 7: return d * d * (d * root(d));
    default: return d * d * (d * d);
  }
}
FN AV power_of_magnitude(AV x, A p) { return power_of(absolute(x), p); }
)" + steps(parsed) +
        "}\n";
  std::string exponents = has_short ? "true" : "false";
  for (std::size_t i = 0; has_short && i < parsed.exponents.size(); ++i)
    exponents += " && is_short(first(" + parsed.exponents[i].code + "))";
  s += std::string("extern \"C\" {\n") + support;
  s += R"(__attribute__((always_inline)) A rigel_text_identity() noexcept { return first(identity()); }
__attribute__((always_inline)) void rigel_text_step_block(AV* x, const AV* a, const AV* b, const A* parameters) noexcept {
  *x = step(*x, *a, *b, parameters);
}
__attribute__((always_inline)) void rigel_text_result_block(AV* x, const A* parameters) noexcept {
  *x = result(*x, parameters);
}
__attribute__((always_inline)) bool rigel_text_has_short_powers(const A* parameters) noexcept { return )" +
       exponents + R"(; }
__attribute__((always_inline)) void rigel_text_short_step_block(AV* x, const AV* a, const AV* b, const A* parameters) noexcept {
)";
  return s + (has_short ? "  *x = brief::step(*x, *a, *b, parameters);\n}\n}\n" : "}\n}\n");
}

const char* type_name(Type type) {
  return type == Type::f64 ? "f64" : type == Type::i32 ? "i32" : type == Type::i64 ? "i64" : "f32";
}

// The head of the function by which kernels of GPUs store what an epilogue makes of a result, of which they know the bits.
std::string store_head(Type result) {
  const bool wide = result == Type::f64 || result == Type::i64;
  return std::string("__attribute__((always_inline)) void rigel_text_store(unsigned ") + (wide ? "long" : "int") +
         " result, void* c, long offset, long m, long n, long batch, const void* parameters, const void* program) noexcept "
         "{\n";
}

// The same of an epilogue from text.
std::string store_of(const ParsedEpilogue& parsed) {
  const std::string made =
      std::string("epilogue(__builtin_bit_cast(") + word(parsed.argument) + ", result), m, n, batch, (const A*)parameters)";
  std::string s = "extern \"C\" {\n", value = made, element = word(parsed.result);
  if (parsed.element == Scalar::f16 || parsed.element == Scalar::bf16) {
    const std::string round = std::string("rigel_text_") + rigel::name(parsed.element) + "_of_" + type_name(parsed.result);
    s += "unsigned short " + round + "(" + word(parsed.result) + ") noexcept;\n";
    value = round + "(" + made + ")";
    element = "unsigned short";
  }
  return s + store_head(parsed.argument) + "  ((" + element + "*)c)[offset] = " + value + ";\n}\n}\n";
}

// The function that kernels of tensor cores call, which store its results themselves.
std::string number_of(const ParsedEpilogue& parsed) {
  return std::string("extern \"C\" __attribute__((always_inline)) ") + word(parsed.result) + " rigel_text_epilogue(" +
         word(parsed.argument) +
         " x, long m, long n, long batch, const A* parameters) noexcept {\n  return epilogue(x, m, n, batch, "
         "parameters);\n}\n";
}

}  // namespace

std::string source_of(const Parsed& parsed, Scalar accumulator, int lanes) {
  const bool on_gpu = lanes == 0;
  if (parsed.form == rigel::detail::TextForm::grouped && !on_gpu)
    return source_of_groups(parsed, prelude(parsed, accumulator, lanes, {.block = "_block"}));
  std::string s = prelude(parsed, accumulator, lanes);
  if (on_gpu) return source_on_gpu(parsed, s);
  if (parsed.reads_k || !parsed.fields.empty()) return source_of_fields(parsed, s);
  s += steps(parsed);
  s += function("AV identity()", parsed.identity);
  s += function("AV result(AV x, const A* parameters)", parsed.result.code.empty() ? Body{"  return x;\n"} : parsed.result);
  s += std::string("extern \"C\" {\n") + support;
  s += "__attribute__((always_inline)) A rigel_text_identity() noexcept { return first(identity()); }\n";
  s += R"(__attribute__((always_inline)) AV rigel_text_step(AV x, AV a, AV b, const A* parameters) noexcept {
  return step(x, a, b, parameters);
}
)";
  if (parsed.form == rigel::detail::TextForm::ordered)
    s += std::string(R"(__attribute__((always_inline)) AV rigel_text_multiply_row(AV a, AV b, const A* parameters) noexcept {
  return multiply(a, b, parameters);
}
A rigel_text_multiply(A a, A b, const A* parameters) noexcept { return first(multiply(AV(a), AV(b), parameters)); }
__attribute__((always_inline)) AV rigel_text_add_if_ordered(AV x, AV y) noexcept {
  return select(mask(y )") +
         (parsed.is_minimum ? "<" : ">") + " x), y, x);\n}\n";
  s += R"(__attribute__((always_inline)) AV rigel_text_result(AV x, const A* parameters) noexcept {
  return result(x, parameters);
}
}
)";
  return s;
}

// Numbers pass as they are: vectors on hosts. Only GPUs join sums of parts of K.
std::string source_of(const ParsedDerivative& parsed, Scalar accumulator, int lanes) {
  const bool on_gpu = lanes == 0;
  std::string s = prelude(parsed, accumulator, lanes, {.power = "power_in_gradient", .has_products = false});
  s += function("AV multiply(AV d, AV b, AV a, const A* parameters)", parsed.multiply);
  s += function("AV accumulate(AV x, AV c, AV v, const A* parameters)", parsed.accumulate);
  s += function("AV add(AV x, AV y, const A* parameters)", parsed.add.code.empty() ? Body{"  return x;\n"} : parsed.add);
  s += function("AV identity()", parsed.identity);
  s += function("AV result(AV x, const A* parameters)", parsed.result.code.empty() ? Body{"  return x;\n"} : parsed.result);
  s += "extern \"C\" {\n";
  if (!on_gpu) s += support;
  s += R"(#define INLINED __attribute__((always_inline))
INLINED A rigel_text_identity() noexcept { return first(identity()); }
INLINED AV rigel_text_multiply(AV d, AV b, AV a, const A* parameters) noexcept { return multiply(d, b, a, parameters); }
INLINED AV rigel_text_accumulate(AV x, AV c, AV v, const A* parameters) noexcept { return accumulate(x, c, v, parameters); }
INLINED AV rigel_text_result(AV x, const A* parameters) noexcept { return result(x, parameters); }
)";
  if (on_gpu) s += "INLINED AV rigel_text_add(AV x, AV y, const A* parameters) noexcept { return add(x, y, parameters); }\n";
  return s + "}\n";
}

std::string store_of_results(Type result) {
  const std::string type = type_name(result), own = word(result);
  return "extern \"C\" {\nvoid rigel_text_store_" + type + "(" + own +
         ", void*, long, long, long, long, const void*) noexcept;\n" + store_head(result) + "  rigel_text_store_" + type +
         "(__builtin_bit_cast(" + own + ", result), c, offset, m, n, batch, program);\n}\n}\n";
}

std::string source_of(const ParsedEpilogue& parsed, Scalar number, int lanes) {
  const std::string from = vector(parsed.argument), to = vector(parsed.result);
  std::string s = prelude(parsed, number, lanes);
  s += function(to + " epilogue(" + from + " x, LV m, LV n, long batch, const A* parameters)", parsed.body);
  if (lanes == 0) return s + store_of(parsed) + number_of(parsed);
  s += std::string("typedef ") + word(parsed.argument) + " From;\ntypedef " + word(parsed.result) +
       " To;\nstruct Place { long m, n, m_step, n_step, batch; };\n";
  s += "FN void row(const From* from, int first, int count, To* to, const Place& at, const A* parameters) {\n  " + from +
       " x = {};\n  __builtin_memcpy(&x, from + first, count * sizeof(From));\n";
  s += R"(  LV lane;
  for (int i = 0; i < N; ++i) lane[i] = first + i;
)";
  s += "  const " + to + " y = epilogue(x, at.m + lane * at.m_step, at.n + lane * at.n_step, at.batch, parameters);\n";
  s += "  __builtin_memcpy(to + first, &y, count * sizeof(To));\n}\n";
  s += std::string("extern \"C\" {\n") + support;
  return s +
         R"(void rigel_text_epilogue(const From* from, int count, To* to, const Place& at, const A* parameters) noexcept {
  int i = 0;
  for (; i + N <= count; i += N) row(from, i, N, to, at, parameters);
  if (i < count) row(from, i, count - i, to, at, parameters);
}
}
)";
}

std::string source_of(const ParsedMonoid& parsed, Scalar number, int lanes) {
  std::string s = prelude(parsed, number, lanes) + accumulator_of(parsed.fields);
  s += function("X of(AV score, LV n, const A* parameters)", parsed.of);
  s += function("X join(X x, X y, const A* parameters)", parsed.join);
  s += function("X identity()", parsed.identity);
  s += function(std::string(vector(parsed.result_type)) + " result(X x, const A* parameters)",
                parsed.result.code.empty() ? Body{"  return x;\n"} : parsed.result);
  s += "enum { CHAINS = " + std::to_string(rigel::detail::lanes) + ", BLOCKS = CHAINS / N };\n";
  s += R"(FN X read(const Fields* states, int block) {
  Fields x;
  __builtin_memcpy(&x, states + block, sizeof x);
  return got(x);
}
FN X joined(X x, const A* scores, long count, long n, long left_out, const A* parameters) {
  AV score = {};
  __builtin_memcpy(&score, scores, count * sizeof(A));
  LV lane;
  for (int i = 0; i < N; ++i) lane[i] = i;
  const M taken = mask(lane < count) & mask(n + lane != left_out);
  return select(taken, join(x, of(score, n + lane, parameters), parameters), x);
}
FN X upper_half(X x, int half) {
  Fields from = put(x), to = from;
  for (int f = 0; f < F; ++f)
    for (int i = 0; i < half; ++i) to.field[f][i] = from.field[f][half + i];
  return got(to);
}
)";
  s += std::string("extern \"C\" {\n") + support;
  s +=
      R"(void rigel_text_monoid_add(const A* scores, long count, long n, long left_out, bool is_first, Fields* states, const A* parameters) noexcept {
  for (int block = 0; block < BLOCKS; ++block) {
    X x = is_first ? identity() : read(states, block);
    long i = block * N;
    for (; i + N <= count; i += CHAINS) x = joined(x, scores + i, N, n + i, left_out, parameters);
    if (i < count) x = joined(x, scores + i, count - i, n + i, left_out, parameters);
    const Fields all = put(x);
    __builtin_memcpy(states + block, &all, sizeof all);
  }
}
void rigel_text_monoid_finish(const Fields* states, void* to, const A* parameters) noexcept {
  X x[BLOCKS];
  for (int block = 0; block < BLOCKS; ++block) x[block] = read(states, block);
  for (int half = BLOCKS / 2; half > 0; half /= 2)
    for (int block = 0; block < half; ++block) x[block] = join(x[block], x[block + half], parameters);
  for (int half = N / 2; half > 0; half /= 2) x[0] = join(x[0], upper_half(x[0], half), parameters);
  const auto made = result(x[0], parameters);
  const auto first = made[0];
  __builtin_memcpy(to, &first, sizeof first);
}
}
)";
  return s;
}

}  // namespace rigel::runtime
