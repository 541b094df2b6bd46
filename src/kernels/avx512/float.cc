// SPDX-License-Identifier: Apache-2.0
// simd/float_tile.inl for avx512.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/float_tile.inl"
// clang-format on

}  // namespace

void add_float(KernelTable& table) {
  table.widen = widen_row;
  table.narrow = narrow_row;
  table.write_dots = write_dots;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
