// SPDX-License-Identifier: Apache-2.0
// simd/attention*.inl for avx512, in floats.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kBlockEntries = 4, kScoreTiles = 4, kValueParts = 4;

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/attention_tiles.inl"
#include "kernels/simd/attention.inl"
// clang-format on

}  // namespace

void add_attention(KernelTable& table) {
  table.attention = {.f32 = {attention_step<FloatWords>, pack_query, pack_keys, pack_values},
                     .bf16 = {},
                     .step_f16 = attention_step<HalfWords>,
                     .key_rows = key_rows,
                     .q8_0_row = q8_0_row,
                     .split_pairs = split_pairs,
                     .merge = merge,
                     .finish = finish};
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
