// SPDX-License-Identifier: Apache-2.0
// simd/attention.inl for avx2.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/avx2/kernels.h"

#include "kernels/avx2/target_begin.h"

namespace weir::kernels::avx2 {
namespace {

constexpr int kScoreRows = 2, kValueTile = 4;

// clang-format off: each needs those before it
#include "kernels/avx2/vec.inl"
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

}  // namespace weir::kernels::avx2

#include "kernels/avx2/target_end.h"
#endif
