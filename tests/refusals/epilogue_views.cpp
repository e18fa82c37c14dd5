// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps that read memory take views of certain types and ranks.
#include <rigel/epilogue_views.hpp>

namespace epilogue = rigel::epilogue;

template <class Data>
using View = Kokkos::View<Data, Kokkos::HostSpace>;

// expected-error@rigel/epilogue_views.hpp:* 3 {{a parameter is a view of rigel::half, rigel::bfloat16, float, double or std::int32_t}}
void types(const View<std::uint8_t*>& bytes, const View<std::int64_t**>& words, const View<bool>& truth) {
  epilogue::add_row(bytes);
  epilogue::residual(words);
  epilogue::scale(truth);
}

// expected-error@rigel/epilogue_views.hpp:* 1 {{a parameter is a number, or a view of rank 0 or 1}}
// expected-error@rigel/epilogue_views.hpp:* 1 {{a vector is a view of rank 1, or 2 with a leading batch index}}
// expected-error@rigel/epilogue_views.hpp:* 1 {{residual() takes a view of rank 2, or 3 with a batch index}}
void ranks(const View<float*>& vector, const View<float**>& matrix, const View<float***>& batch) {
  epilogue::scale(matrix);
  epilogue::add_row(batch);
  epilogue::residual(vector);
}
