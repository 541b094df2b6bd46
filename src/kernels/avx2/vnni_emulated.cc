// SPDX-License-Identifier: Apache-2.0
// The avx2_vnni table for tests: avx2 with int8 products by what that instruction means.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/avx2/kernels.h"

#include "kernels/avx2/target_begin.h"

namespace weir::kernels {
namespace avx2 {
namespace {

#include "kernels/avx2/int8_rows.inl"

// Odd and even bytes apart, in 16 bits each: no sum is cut off.
inline __m256i dot(__m256i sums, __m256i w, __m256i x) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8));
  return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}

#include "kernels/avx2/vnni.inl"

}  // namespace
}  // namespace avx2

const KernelTable* avx2_vnni_emulated_table() {
  static const KernelTable kTable = avx2::table_with_products("avx2_vnni_emulated");
  return &kTable;
}

}  // namespace weir::kernels

#include "kernels/avx2/target_end.h"
#else
#include "kernels/kernel_table.h"

namespace weir::kernels {

const KernelTable* avx2_vnni_emulated_table() { return nullptr; }

}  // namespace weir::kernels
#endif
