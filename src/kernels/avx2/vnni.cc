// SPDX-License-Identifier: Apache-2.0
// The avx2_vnni table: avx2 with int8 products by its dot product instruction.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/avx2/kernels.h"

#include "kernels/avx2/target_vnni_begin.h"

namespace weir::kernels {
namespace avx2 {
namespace {

#include "kernels/avx2/int8_rows.inl"

inline __m256i dot(__m256i sums, __m256i w, __m256i x) { return _mm256_dpbusd_avx_epi32(sums, w, x); }

#include "kernels/avx2/vnni.inl"

}  // namespace
}  // namespace avx2

const KernelTable* avx2_vnni_table() {
  static const KernelTable kTable = avx2::table_with_products("avx2_vnni");
  return &kTable;
}

}  // namespace weir::kernels

#include "kernels/avx2/target_end.h"
#else
#include "kernels/kernel_table.h"

namespace weir::kernels {

const KernelTable* avx2_vnni_table() { return nullptr; }

}  // namespace weir::kernels
#endif
