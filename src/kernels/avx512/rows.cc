// SPDX-License-Identifier: Apache-2.0
// simd/elementwise.inl and simd/recurrent.inl for avx512.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/elementwise.inl"
#include "kernels/simd/recurrent.inl"
// clang-format on

}  // namespace

void add_rows(KernelTable& table) {
  table.rms_norm = rms_norm;
  table.layer_norm = layer_norm;
  table.activate = activate;
  table.clamped_swiglu = clamped_swiglu;
  table.add = add_scaled;
  table.multiply = multiply;
  table.scale = scale_row;
  table.rope = rope;
  table.conv_row = conv_row;
  table.ssd_step = ssd_step;
  table.delta_step = delta_step;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
