// SPDX-License-Identifier: Apache-2.0
// simd/float_tile.inl and simd/quantize.inl for avx2.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/avx2/kernels.h"

#include "kernels/avx2/target_begin.h"

namespace weir::kernels::avx2 {
namespace {

// clang-format off: each needs those before it
#include "kernels/avx2/vec.inl"
#include "kernels/simd/float_tile.inl"
#include "kernels/simd/quantize.inl"
// clang-format on

}  // namespace

void add_float(KernelTable& table) {
  table.widen = widen_row;
  table.narrow = narrow_row;
  table.write_dots = write_dots;
  table.quantize_row = quantize_row;
}

}  // namespace weir::kernels::avx2

#include "kernels/avx2/target_end.h"
#endif
