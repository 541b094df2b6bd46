// SPDX-License-Identifier: Apache-2.0
// amx/products.inl on the processor's tiles.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/amx/kernels.h"
#include "kernels/amx/tiles.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::amx {
namespace {

#include "kernels/simd/ahead.inl"

#include "kernels/amx/products.inl"

}  // namespace

void add_products(KernelTable& table) {
  table.panel_tile = panel_tile<HardwareTiles>;
  table.plain.bf16_tile = bf16_tile<HardwareTiles>;
}

}  // namespace weir::kernels::amx

#include "kernels/avx512/target_end.h"
#endif
