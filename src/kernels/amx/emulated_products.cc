// SPDX-License-Identifier: Apache-2.0
// amx/products.inl on tiles in memory.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/amx/emulated_tiles.h"
#include "kernels/amx/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::amx {
namespace {

#include "kernels/simd/ahead.inl"

#include "kernels/amx/products.inl"

}  // namespace

void add_emulated_products(KernelTable& table) {
  table.panel_tile = panel_tile<EmulatedTiles>;
  table.plain.bf16_tile = bf16_tile<EmulatedTiles>;
}

}  // namespace weir::kernels::amx

#include "kernels/avx512/target_end.h"
#endif
