// SPDX-License-Identifier: Apache-2.0
// One row times a packed panel: values go from their 2 to 8 bits to the dot product in registers. Decoding reads each weight
// once, so nothing may stand between memory and the sums.

// What the scales of a block say before its groups' own factors come in.
struct BlockScales {
  __m512 scale, minimum;  // minimum: already negative
};

inline __m512 half_vector(const std::byte* halves, int which) { return load_f16(halves + which * 2 * kPanelOuts).v; }

template <PackedScales kScales>
inline BlockScales block_scales(const std::byte* halves) {
  if constexpr (kScales == PackedScales::kExponent) return {_mm512_setzero_ps(), _mm512_setzero_ps()};
  const __m512 scale = half_vector(halves, 0);
  if constexpr (kScales == PackedScales::kHalf || kScales == PackedScales::kSuper) return {scale, _mm512_setzero_ps()};
  if constexpr (kScales == PackedScales::kHalfAndOffset) return {scale, half_vector(halves, 1)};
  return {scale, _mm512_mul_ps(half_vector(halves, 1), _mm512_set1_ps(-1.0f))};
}

inline __m512 mxfp4_scales(const std::byte* exponents) {
  const __m512i e = _mm512_cvtepu8_epi32(load16(exponents)), one = _mm512_set1_epi32(1);
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23), tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  return _mm512_castsi512_ps(_mm512_mask_blend_epi32(_mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), normal, tiny));
}

// Scale (and offset) of group `g` of a block with `count` groups whose bytes start at `groups`.
template <PackedScales kScales, int kCount>
inline BlockScales group_scales(const BlockScales& block, const std::byte* groups, int g) {
  if constexpr (kScales == PackedScales::kHalf || kScales == PackedScales::kHalfAndOffset) return block;
  const std::byte* at = groups + g * kPanelOuts;
  if constexpr (kScales == PackedScales::kExponent) return {mxfp4_scales(at), block.minimum};
  if constexpr (kScales == PackedScales::kSuper) return {_mm512_mul_ps(block.scale, from_i8(at).v), block.minimum};
  if constexpr (kScales == PackedScales::kSuperAndMin)
    return {_mm512_mul_ps(block.scale, from_u8(at).v), _mm512_mul_ps(block.minimum, from_u8(at + kCount * kPanelOuts).v)};
  if constexpr (kScales == PackedScales::kSuperNibbles)
    return {_mm512_mul_ps(block.scale, from_low_nibbles(at).v), _mm512_mul_ps(block.minimum, from_high_nibbles(at).v)};
}

// Sums of the 32 inputs at `low` and `high`: one sum (groups of 32), or two (groups of 16).
template <int kLow, int kHigh, int kGroup, class Map>
inline void sum_block(const std::byte* low, const std::byte* high, const std::int8_t* q, Map map, __m512i* sums) {
  const __m512i quads[8] = {whole_quad<kLow, kHigh, 0>(low, high, map).w, whole_quad<kLow, kHigh, 1>(low, high, map).w,
                            whole_quad<kLow, kHigh, 2>(low, high, map).w, whole_quad<kLow, kHigh, 3>(low, high, map).w,
                            whole_quad<kLow, kHigh, 4>(low, high, map).w, whole_quad<kLow, kHigh, 5>(low, high, map).w,
                            whole_quad<kLow, kHigh, 6>(low, high, map).w, whole_quad<kLow, kHigh, 7>(low, high, map).w};
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    sums[0] = _mm512_dpbusd_epi32(sums[0], quads[i], broadcast4(q + 4 * i));
    sums[1] = _mm512_dpbusd_epi32(sums[1], quads[4 + i], broadcast4(q + 16 + 4 * i));
  }
  if constexpr (kGroup == 32) sums[0] = _mm512_add_epi32(sums[0], sums[1]);
}

template <int kLow, int kHigh, PackedScales kScales, int kBlock, int kGroup, class Map>
void packed_row_of(const PackedRow& t, Map map) {
  constexpr bool kOffset =
      kScales == PackedScales::kHalfAndOffset || kScales == PackedScales::kSuperAndMin || kScales == PackedScales::kSuperNibbles;
  constexpr int kGroups = kBlock / kGroup, kSums = 32 / kGroup;
  const PackedPanelShape shape = packed_panel_shape(t.type, t.k);
  const std::byte *low = t.packed + t.k_begin * 2 * kLow, *high = t.packed + shape.high + t.k_begin * 2 * kHigh;
  const RowStart<kGroup> x(*t.x, t.row, t.x_begin);
  const int zero = quant_traits(t.type).zero;
  __m512 total = _mm512_loadu_ps(t.acc);
  BlockScales block{};
  const std::byte* groups = nullptr;
  for (int i = 0; i < t.count; i += 32, low += kLow * 64, high += kHigh * 64) {
    const std::int64_t at = t.k_begin + i;
    if (i == 0 || at % kBlock == 0) {
      block = block_scales<kScales>(t.packed + shape.scales + at / kBlock * shape.half_bytes);
      groups = t.packed + shape.groups + at / kBlock * shape.group_bytes;
    }
    prefetch_ahead<kLow>(low);
    prefetch_ahead<kHigh>(high);
    const std::int32_t* sum = x.sum + i / kGroup;
    __m512i sums[2] = {_mm512_set1_epi32(kOffset ? 0 : -zero * sum[0]),
                       _mm512_set1_epi32(kOffset || kSums == 1 ? 0 : -zero * sum[kSums - 1])};
    sum_block<kLow, kHigh, kGroup>(low, high, x.q + i, map, sums);
    const __m512 row_scale = _mm512_set1_ps(x.scale[i / 32]);
    WEIR_UNROLL
    for (int s = 0; s < kSums; ++s) {
      const BlockScales group = group_scales<kScales, kGroups>(block, groups, static_cast<int>(at % kBlock / kGroup) + s);
      if constexpr (kOffset) total = _mm512_fmadd_ps(group.minimum, _mm512_set1_ps(x.scaled_sum[i / kGroup + s]), total);
      total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[s]), _mm512_mul_ps(group.scale, row_scale), total);
    }
  }
  _mm512_storeu_ps(t.acc, total);
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
