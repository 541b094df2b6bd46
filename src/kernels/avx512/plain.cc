// SPDX-License-Identifier: Apache-2.0
// simd/plain_tile.inl for avx512: 24 registers of sums, four of weights.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kPlainRows = 6, kTilePanels = kPlainPanels;

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/ahead.inl"
#include "kernels/simd/plain_tile.inl"
// clang-format on

}  // namespace

void add_plain(KernelTable& table) {
  table.plain = {.pack = pack_plain, .widen = widen_plain, .tile = plain_tile, .bf16_tile = nullptr, .round = nullptr};
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
