// SPDX-License-Identifier: Apache-2.0
// One row times packed panels: four sums where rows_of_packed<P, 1> would have two, so that their latencies overlap.

// Quads of one panel from the kAt-th on, line after line of the low bits, as they lie in memory; quads of the first and of the second
// half have sums of their own.
template <class P, int kAt, class Map>
WEIR_INLINE void quads_of_row(const std::byte* values, const __m512i* x, Map map, __m512i* sums) {
  constexpr int kOfLine = 8 / P::kLow, kQuad = kAt / kOfLine + kAt % kOfLine * P::kLow;
  sums[kQuad / 4] = _mm512_dpbusd_epi32(sums[kQuad / 4], whole_quad<P::kLow, P::kHigh, kQuad>(values, map).w, x[kQuad]);
  if constexpr (kAt < 7) quads_of_row<P, kAt + 1>(values, x, map, sums);
}

// One block of 32 inputs of both panels.
template <class P, int kPanels, class Map>
WEIR_INLINE void sum_block(const std::byte* values, const std::int8_t* q, Map map, __m512i (*sums)[2]) {
  __m512i x[8];
  WEIR_UNROLL
  for (int quad = 0; quad < 8; ++quad) x[quad] = broadcast4(q + 4 * quad);
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) quads_of_row<P, 0>(values + p * P::kPanelStep, x, map, sums[p]);
}

// `k` inputs of the panels from `k_begin` on times the row that x begins with, added to acc and acc + acc_stride. What lies ahead_bytes
// ahead is asked for; 0: nothing is.
template <class P, int kPanels, class Map>
void row_of_packed(const PackedPanels& panels, std::int64_t k_begin, int k, const RowStart<P::kGroup> x, float* acc,
                   std::int64_t acc_stride, Map map, std::int64_t ahead_bytes = 0) {
  constexpr bool kOffset = has_offset(P::kScales);
  constexpr int kGroup = P::kGroup, kSums = 32 / kGroup;
  const PackedShape& shape = *panels.shape;
  const __m128i zero_bits = zero_bits_of(quant_traits(panels.type));
  __m512 total[kPanels];
  GroupScale whole[kPanels];
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) total[p] = _mm512_loadu_ps(acc + p * acc_stride);
  const std::byte* unit = panels.packed + k_begin / P::kUnit * shape.unit_bytes;
  int inside = static_cast<int>(k_begin % P::kUnit);
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) whole[p] = unit_scale<P::kScales>(unit, p);
  const std::int64_t block_bytes = shape.unit_bytes * 32 / P::kUnit;
  const std::byte* ahead = unit + inside / 32 * block_bytes + ahead_bytes;
  for (int i = 0; i < k; i += 32, inside += 32, ahead += block_bytes) {
    for (std::int64_t line = 0; ahead_bytes > 0 && line < block_bytes; line += 64) __builtin_prefetch(ahead + line, 0, 2);
    if (inside == P::kUnit) {
      inside = 0;
      unit += shape.unit_bytes;
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) whole[p] = unit_scale<P::kScales>(unit, p);
    }
    __m512i sums[kPanels][2];
    const __m512i first = kOffset ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[i / kGroup], zero_bits);
    const __m512i second = kOffset || kSums == 1 ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[i / kGroup + 1], zero_bits);
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) sums[p][0] = first, sums[p][1] = second;
    sum_block<P, kPanels>(unit + shape.values + inside / 32 * shape.block_step, x.q + i, map, sums);
    if constexpr (kSums == 1) {  // one sum for both halves
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) sums[p][0] = _mm512_add_epi32(sums[p][0], sums[p][1]);
    }
    const std::byte* groups = unit + shape.groups + inside / 32 * shape.group_step;
    const __m512 row_scale = _mm512_set1_ps(x.scale[i / 32]);
    WEIR_UNROLL
    for (int s = 0; s < kSums; ++s) {
      const __m512 scaled_sum = kOffset ? _mm512_set1_ps(x.scaled_sum[i / kGroup + s]) : row_scale;
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        const GroupScale group = group_scale<P::kScales, kSums>(whole[p], groups, p, s);
        if constexpr (kOffset) total[p] = _mm512_fmadd_ps(group.offset.v, scaled_sum, total[p]);
        total[p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[p][s]), _mm512_mul_ps(group.scale.v, row_scale), total[p]);
      }
    }
  }
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) _mm512_storeu_ps(acc + p * acc_stride, total[p]);
}
