// SPDX-License-Identifier: Apache-2.0
// simd/attention.inl for avx512.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kScoreRows = 8, kValueTile = 16;

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/elementwise.inl"
#include "kernels/simd/float_tile.inl"
#include "kernels/simd/attention.inl"
// clang-format on

}  // namespace

void add_attention(KernelTable& table) {
  table.load_keys = load_keys;
  table.scores = scores;
  table.softmax_chunk = softmax_chunk;
  table.weigh_values = weigh_values;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
