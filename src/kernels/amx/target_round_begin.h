// SPDX-License-Identifier: Apache-2.0
// As avx512/target_bf16_begin.h, with permutations of bytes: every processor with tiles has them. avx512/target_end.h closes it.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx512vbmi"))), \
                             apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,avx512vbmi")
#endif
