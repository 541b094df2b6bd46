// SPDX-License-Identifier: Apache-2.0
// As target_begin.h, with AVX-VNNI; target_end.h closes it.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avxvnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avxvnni")
#endif
