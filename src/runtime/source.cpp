// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C++ around what a text says: functions on vectors of lanes (on a GPU on numbers), and those that the loops call.
#include "text.hpp"

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
template <class T> FN T select(M c, T x, T y) { return convert<M, typename mask_of<T>::type>(c) ? x : y; }
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
#define DEFINE_BINARY(name)                                                               \
  extern "C" __attribute__((const)) float rigel_text_##name##_f32(float, float) noexcept;    \
  extern "C" __attribute__((const)) double rigel_text_##name##_f64(double, double) noexcept; \
  LONG FV name##_of(FV x, FV y) { return rigel_text_##name##_f32(x, y); }                    \
  LONG DV name##_of(DV x, DV y) { return rigel_text_##name##_f64(x, y); }
DEFINE_BINARY(pow)
DEFINE_BINARY(power)
FN FV fast_exp2_of(FV x) { return __nvvm_ex2_approx_ftz_f(x); }
FN FV fast_log2_of(FV x) { return __nvvm_lg2_approx_ftz_f(x); }
FN DV fast_exp2_of(DV x) { return exp2_of(x); }
FN DV fast_log2_of(DV x) { return log2_of(x); }
)";

std::string source_of(const Parsed& parsed, Scalar accumulator, int lanes) {
  const bool is_floating = accumulator == Scalar::f32 || accumulator == Scalar::f64;
  const bool wide = accumulator == Scalar::f64 || accumulator == Scalar::i64;
  const char* const type = is_floating ? (wide ? "double" : "float") : wide ? "long" : "int";
  const char* const row = is_floating ? (wide ? "DV" : "FV") : wide ? "LV" : "IV";
  std::string s = "#define FN static inline __attribute__((always_inline))\n";
  // What takes dozens of instructions is inlined if there is little of it.
  s += std::string("#define LONG static ") + (parsed.long_operations > most_inlined
                                                  ? "__attribute__((noinline, unused))\n"
                                                  : "inline __attribute__((always_inline))\n");
  // Functions that call the C library's for each lane, and large ones of the text. Copies of them in every place would take seconds to
  // compile.
  s += "#define ONCE static __attribute__((noinline, unused))\n";
  const bool on_gpu = lanes == 0;
  s += std::string("#define ON_GPU ") + (on_gpu ? "1\n" : "0\n");
  s += std::string("typedef ") + type + " A;\nenum { N = " + std::to_string(on_gpu ? 1 : lanes) + " };\n";
  s += on_gpu ? numbers : vectors;
  s += std::string("typedef ") + (wide ? "LV" : "IV") + " M;\ntypedef " + row + " AV;\n";
  s += functions;
  s += on_gpu ? functions_of_numbers : functions_of_vectors;
  if (is_floating && !on_gpu)
    s += R"(extern "C" {
AV rigel_text_exp(AV x) noexcept;
AV rigel_text_log(AV x) noexcept;
AV rigel_text_power(AV x, A p) noexcept;
}
LONG AV exp_of(AV x) { return rigel_text_exp(x); }
LONG AV log_of(AV x) { return rigel_text_log(x); }
LONG AV power_of(AV x, A p) { return rigel_text_power(x, p); }
)";
  const auto define = [&](const char* head, const Body& body) {
    s += std::string(body.is_large ? "ONCE" : "FN") + " AV " + head + " {\n" + body.code + "}\n";
  };
  define("multiply(AV a, AV b, const A* parameters)", parsed.multiply);
  define("add(AV x, AV y, const A* parameters)", parsed.add);
  define("identity()", parsed.identity);
  define("step(AV x, AV a, AV b, const A* parameters)",
         parsed.step.code.empty() ? Body{"  return add(x, multiply(a, b, parameters), parameters);\n"} : parsed.step);
  define("result(AV x, const A* parameters)", parsed.result.code.empty() ? Body{"  return x;\n"} : parsed.result);
  s += "extern \"C\" {\nextern const void* rigel_text_support;\nconst void* rigel_text_support = nullptr;\n";
  s += "__attribute__((always_inline)) A rigel_text_identity() noexcept { return first(identity()); }\n";
  s += R"(__attribute__((always_inline)) AV rigel_text_step(AV x, AV a, AV b, const A* parameters) noexcept {
  return step(x, a, b, parameters);
}
)";
  if (parsed.form == rigel::detail::TextForm::ordered && !on_gpu)
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

}  // namespace rigel::runtime
