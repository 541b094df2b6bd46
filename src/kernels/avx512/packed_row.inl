// SPDX-License-Identifier: Apache-2.0
// One row times a packed panel: values go from their 2 to 8 bits to the dot product in registers. Decoding reads each weight
// once, so nothing may stand between memory and the sums.

// What the scales of a block say before its groups' own factors come in.
struct BlockScales {
  __m512 scale, minimum;  // minimum: already negative
};

WEIR_INLINE __m512 half_vector(const std::byte* halves, int which) { return load_f16(halves + which * 2 * kPanelOuts).v; }

template <PackedScales kScales>
WEIR_INLINE BlockScales block_scales(const std::byte* halves) {
  if constexpr (kScales == PackedScales::kExponent) return {_mm512_setzero_ps(), _mm512_setzero_ps()};
  const __m512 scale = half_vector(halves, 0);
  if constexpr (kScales == PackedScales::kHalf || kScales == PackedScales::kSuper) return {scale, _mm512_setzero_ps()};
  if constexpr (kScales == PackedScales::kHalfAndOffset) return {scale, half_vector(halves, 1)};
  return {scale, _mm512_mul_ps(half_vector(halves, 1), _mm512_set1_ps(-1.0f))};
}

WEIR_INLINE __m512 mxfp4_scales(const std::byte* exponents) {
  const __m512i e = _mm512_cvtepu8_epi32(load16(exponents)), one = _mm512_set1_epi32(1);
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23), tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  return _mm512_castsi512_ps(_mm512_mask_blend_epi32(_mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), normal, tiny));
}

// Scale (and offset) of group `g` of a block with `count` groups whose bytes start at `groups`.
template <PackedScales kScales, int kCount>
WEIR_INLINE BlockScales group_scales(const BlockScales& block, const std::byte* groups, int g) {
  if constexpr (kScales == PackedScales::kHalf || kScales == PackedScales::kHalfAndOffset) return block;
  const std::byte* at = groups + g * kPanelOuts;
  if constexpr (kScales == PackedScales::kExponent) return {mxfp4_scales(at), block.minimum};
  if constexpr (kScales == PackedScales::kSuper) return {_mm512_mul_ps(block.scale, from_i8(at).v), block.minimum};
  if constexpr (kScales == PackedScales::kSuperAndMin)
    return {_mm512_mul_ps(block.scale, from_u8(at).v), _mm512_mul_ps(block.minimum, from_u8(at + kCount * kPanelOuts).v)};
  if constexpr (kScales == PackedScales::kSuperNibbles)
    return {_mm512_mul_ps(block.scale, from_low_nibbles(at).v), _mm512_mul_ps(block.minimum, from_high_nibbles(at).v)};
}

// Quad kQuad of kPanels panels; quads of the first and of the second half have sums of their own.
template <int kQuad, int kLow, int kHigh, int kPanels, class Map>
WEIR_INLINE void add_quad(const std::byte* const* low, const std::byte* const* high, const std::int8_t* q, Map map, __m512i (*sums)[2]) {
  const __m512i x = broadcast4(q + 4 * kQuad);
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p)
    sums[p][kQuad / 4] = _mm512_dpbusd_epi32(sums[p][kQuad / 4], whole_quad<kLow, kHigh, kQuad>(low[p], high[p], map).w, x);
}

// One block of 32 inputs of kPanels panels.
template <int kLow, int kHigh, int kPanels, class Map>
WEIR_INLINE void sum_block(const std::byte* const* low, const std::byte* const* high, const std::int8_t* q, Map map, __m512i (*sums)[2]) {
  add_quad<0, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<4, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<1, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<5, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<2, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<6, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<3, kLow, kHigh, kPanels>(low, high, q, map, sums);
  add_quad<7, kLow, kHigh, kPanels>(low, high, q, map, sums);
}

template <int kLow, int kHigh, PackedScales kScales, int kBlock, int kGroup, int kPanels, class Map>
void rows_of_packed(const PackedRow& t, Map map) {
  constexpr bool kOffset =
      kScales == PackedScales::kHalfAndOffset || kScales == PackedScales::kSuperAndMin || kScales == PackedScales::kSuperNibbles;
  constexpr int kGroups = kBlock / kGroup, kSums = 32 / kGroup;
  const PackedPanelShape& shape = *t.shape;
  const RowStart<kGroup> x(*t.x, t.row, t.x_begin);
  const __m128i zero_bits = zero_bits_of(quant_traits(t.type));
  const std::byte *low[kPanels], *high[kPanels], *groups[kPanels];
  __m512 total[kPanels];
  BlockScales block[kPanels];
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    low[p] = t.packed + p * shape.bytes + t.k_begin * 2 * kLow;
    high[p] = t.packed + p * shape.bytes + shape.high + t.k_begin * 2 * kHigh;
    total[p] = _mm512_loadu_ps(t.acc + p * kPanelOuts);
  }
  for (int i = 0; i < t.k; i += 32) {
    const std::int64_t at = t.k_begin + i;
    if (i == 0 || at % kBlock == 0) {
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        block[p] = block_scales<kScales>(t.packed + p * shape.bytes + shape.scales + at / kBlock * shape.half_bytes);
        groups[p] = t.packed + p * shape.bytes + shape.groups + at / kBlock * shape.group_bytes;
      }
    }
    __m512i sums[kPanels][2];
    const __m512i first = kOffset ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[i / kGroup], zero_bits);
    const __m512i second = kOffset || kSums == 1 ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[i / kGroup + 1], zero_bits);
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      prefetch_ahead<kLow>(low[p]);
      prefetch_ahead<kHigh>(high[p]);
      sums[p][0] = first, sums[p][1] = second;
    }
    sum_block<kLow, kHigh, kPanels>(low, high, x.q + i, map, sums);
    if constexpr (kSums == 1) {  // one sum for both halves
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) sums[p][0] = _mm512_add_epi32(sums[p][0], sums[p][1]);
    }
    const __m512 row_scale = _mm512_set1_ps(x.scale[i / 32]);
    WEIR_UNROLL
    for (int s = 0; s < kSums; ++s) {
      const int group = static_cast<int>(at % kBlock / kGroup) + s;
      const __m512 scaled_sum = kOffset ? _mm512_set1_ps(x.scaled_sum[i / kGroup + s]) : row_scale;
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        const BlockScales scales = group_scales<kScales, kGroups>(block[p], groups[p], group);
        if constexpr (kOffset) total[p] = _mm512_fmadd_ps(scales.minimum, scaled_sum, total[p]);
        total[p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[p][s]), _mm512_mul_ps(scales.scale, row_scale), total[p]);
      }
    }
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) low[p] += kLow * 64, high[p] += kHigh * 64;
  }
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) _mm512_storeu_ps(t.acc + p * kPanelOuts, total[p]);
}

template <int kLow, int kHigh, PackedScales kScales, int kBlock, int kGroup, class Map>
void packed_row_of(const PackedRow& t, Map map) {
  t.count == 2 ? rows_of_packed<kLow, kHigh, kScales, kBlock, kGroup, 2>(t, map)
               : rows_of_packed<kLow, kHigh, kScales, kBlock, kGroup, 1>(t, map);
}

void packed_row(const PackedRow& t) {
  using S = PackedScales;
  const auto plain = [](Line x) { return x; };
  const auto iq4 = [table = iq4_table()](Line x) { return look_up(table, x); };
  switch (t.type) {
    case DType::kQ4_0: return packed_row_of<4, 0, S::kHalf, 32, 32>(t, plain);
    case DType::kQ4_1: return packed_row_of<4, 0, S::kHalfAndOffset, 32, 32>(t, plain);
    case DType::kQ5_0: return packed_row_of<4, 1, S::kHalf, 32, 32>(t, plain);
    case DType::kQ5_1: return packed_row_of<4, 1, S::kHalfAndOffset, 32, 32>(t, plain);
    case DType::kQ8_0: return packed_row_of<8, 0, S::kHalf, 32, 32>(t, plain);
    case DType::kQ2_K: return packed_row_of<2, 0, S::kSuperNibbles, 256, 16>(t, plain);
    case DType::kQ3_K: return packed_row_of<2, 1, S::kSuper, 256, 16>(t, plain);
    case DType::kQ4_K: return packed_row_of<4, 0, S::kSuperAndMin, 256, 32>(t, plain);
    case DType::kQ5_K: return packed_row_of<4, 1, S::kSuperAndMin, 256, 32>(t, plain);
    case DType::kQ6_K: return packed_row_of<4, 2, S::kSuper, 256, 16>(t, plain);
    case DType::kIQ4_NL: return packed_row_of<4, 0, S::kHalf, 32, 32>(t, iq4);
    case DType::kIQ4_XS: return packed_row_of<4, 0, S::kSuper, 256, 32>(t, iq4);
    case DType::kMXFP4: return packed_row_of<4, 0, S::kExponent, 32, 32>(t, [table = mxfp4_table()](Line x) { return look_up(table, x); });
    default: return;
  }
}
