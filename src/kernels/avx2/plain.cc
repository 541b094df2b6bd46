// SPDX-License-Identifier: Apache-2.0
// simd/plain_tile.inl for avx2: twelve registers of sums, three of weights and activations.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/avx2/kernels.h"

#include "kernels/avx2/target_begin.h"

namespace weir::kernels::avx2 {
namespace {

constexpr int kPlainRows = 3, kTilePanels = 2;

// clang-format off: each needs those before it
#include "kernels/avx2/vec.inl"
#include "kernels/simd/ahead.inl"
#include "kernels/simd/plain_tile.inl"
// clang-format on

}  // namespace

void add_plain(KernelTable& table) {
  table.plain = {.pack = pack_plain, .widen = widen_plain, .tile = plain_tile, .bf16_tile = nullptr, .round = nullptr};
}

}  // namespace weir::kernels::avx2

#include "kernels/avx2/target_end.h"
#endif
