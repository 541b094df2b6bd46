// SPDX-License-Identifier: Apache-2.0
// amx/attention.inl on the processor's tiles, and on tiles in memory.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/amx/emulated_tiles.h"
#include "kernels/amx/kernels.h"
#include "kernels/amx/tiles.h"
#include "kernels/unroll.h"

#include "kernels/avx512/target_bf16_begin.h"

namespace weir::kernels::amx {
namespace {

constexpr int kBlockEntries = 4, kScoreTiles = 4, kValueParts = 4;  // of steps without tiles

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/attention_tiles.inl"
#include "kernels/simd/attention.inl"
#include "kernels/avx512/pair_words.inl"
#include "kernels/amx/attention.inl"
// clang-format on

}  // namespace

void add_attention(KernelTable& table) { table.attention.bf16.step = tile_step<HardwareTiles>; }
void add_emulated_attention(KernelTable& table) { table.attention.bf16.step = tile_step<EmulatedTiles>; }

}  // namespace weir::kernels::amx

#include "kernels/avx512/target_end.h"
#endif
