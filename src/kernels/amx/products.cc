// SPDX-License-Identifier: Apache-2.0
// amx/byte_products.inl and amx/bf16_products.inl on the processor's tiles, and on tiles in memory.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/amx/emulated_tiles.h"
#include "kernels/amx/kernels.h"
#include "kernels/amx/tiles.h"
#include "kernels/unroll.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::amx {
namespace {

// clang-format off: each needs those before it
#include "kernels/simd/ahead.inl"
#include "kernels/avx512/row_start.inl"
#include "kernels/amx/byte_products.inl"
#include "kernels/amx/bf16_products.inl"
// clang-format on

}  // namespace

namespace {

template <class Tiles>
void add_products_on(KernelTable& table) {
  table.panel_tile = panel_tile<Tiles>;
  table.plain.bf16_tile = bf16_tile<Tiles>;
}

}  // namespace

void add_products(KernelTable& table) { add_products_on<HardwareTiles>(table); }
void add_emulated_products(KernelTable& table) { add_products_on<EmulatedTiles>(table); }

}  // namespace weir::kernels::amx

#include "kernels/avx512/target_end.h"
#endif
