// SPDX-License-Identifier: Apache-2.0
// From here to the end of the file (target_end.h) the compiler may use AVX2, FMA and F16C. Include it after all other
// headers: inline functions of theirs must not be compiled for one instruction set. No include guard on purpose.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
