// SPDX-License-Identifier: Apache-2.0
// WEIR_UNROLL before a loop of constant length over an array of vectors: unrolled whole, so that the array is registers.
// Without it GCC keeps such arrays in memory at -O2, which costs a tile kernel half of its speed.
#pragma once

#if defined(__clang__)
#define WEIR_UNROLL _Pragma("unroll")
#else
#define WEIR_UNROLL _Pragma("GCC unroll 16")
#endif

// For the pieces of an inner loop: a call there would bring its registers to memory and back.
#define WEIR_INLINE inline __attribute__((always_inline))

namespace weir::kernels {

// Calls f.template operator()<i>() for i below kCount: where a register's number must be a constant.
template <int kCount, int i = 0, class Function>
WEIR_INLINE void for_each_index(Function f) {
  if constexpr (i < kCount) {
    f.template operator()<i>();
    for_each_index<kCount, i + 1>(f);
  }
}

}  // namespace weir::kernels
