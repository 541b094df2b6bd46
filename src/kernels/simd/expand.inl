// SPDX-License-Identifier: Apache-2.0
// Pieces of packed panels (packed_panels.h): every load and store is a whole line, in the order of memory.

template <int kBits, int kQuad>
WEIR_INLINE Line quad_of(const std::byte* run) {
  if constexpr (kBits == 8) return load_line(run + kQuad * 64);
  constexpr int kShift = kBits * (kQuad / kBits);
  return right<kShift>(load_line(run + kQuad % kBits * 64)) & ((1 << kBits) - 1);
}

template <int kLow, int kHigh, int kQuad, class Map>
WEIR_INLINE Line whole_quad(const std::byte* values, Map map) {
  Line value = quad_of<kLow, kQuad>(values);
  if constexpr (kHigh > 0) value = value | left<kLow>(quad_of<kHigh, kQuad>(values + kLow * 64));
  return map(value);
}

template <int kLow, int kHigh, int kQuad, class Map>
WEIR_INLINE void expand_quad(const std::byte* values, std::uint8_t* q, Map map) {
  store_line(q + kQuad * 64, whole_quad<kLow, kHigh, kQuad>(values, map));
}

// 32 inputs of a panel.
template <int kLow, int kHigh, class Map>
WEIR_INLINE void expand_block(const std::byte* values, std::uint8_t* q, Map map) {
  expand_quad<kLow, kHigh, 0>(values, q, map);
  expand_quad<kLow, kHigh, 1>(values, q, map);
  expand_quad<kLow, kHigh, 2>(values, q, map);
  expand_quad<kLow, kHigh, 3>(values, q, map);
  expand_quad<kLow, kHigh, 4>(values, q, map);
  expand_quad<kLow, kHigh, 5>(values, q, map);
  expand_quad<kLow, kHigh, 6>(values, q, map);
  expand_quad<kLow, kHigh, 7>(values, q, map);
}

struct GroupScale {
  V scale, offset;
};

constexpr bool has_offset(PackedScales scales) {
  return scales == PackedScales::kHalfAndOffset || scales == PackedScales::kSuperAndMin || scales == PackedScales::kSuperNibbles;
}

// What the halves of a unit say of panel `p`, before its groups' own factors come in.
template <PackedScales kScales>
WEIR_INLINE GroupScale unit_scale(const std::byte* unit, int p) {
  if constexpr (kScales == PackedScales::kExponent) return {zero(), zero()};
  const std::byte* halves = unit + p * 2 * kPanelOuts;
  const V scale = load_f16(halves);
  if constexpr (!has_offset(kScales)) return {scale, zero()};
  const V offset = load_f16(halves + 2 * kStripeOuts);
  return {scale, kScales == PackedScales::kHalfAndOffset ? offset : offset * set1(-1.0f)};
}

// Scale and offset of group `g` of the `kCount` of 32 inputs whose group bytes start at `groups`.
template <PackedScales kScales, int kCount>
WEIR_INLINE GroupScale group_scale(const GroupScale& unit, const std::byte* groups, int p, int g) {
  if constexpr (kScales == PackedScales::kHalf || kScales == PackedScales::kHalfAndOffset) return unit;
  const std::byte* at = groups + g * kStripeOuts + p * kPanelOuts;
  if constexpr (kScales == PackedScales::kExponent) return {exponent_scale(at), unit.offset};
  if constexpr (kScales == PackedScales::kSuper) return {unit.scale * from_i8(at), unit.offset};
  if constexpr (kScales == PackedScales::kSuperAndMin) return {unit.scale * from_u8(at), unit.offset * from_u8(at + kCount * kStripeOuts)};
  if constexpr (kScales == PackedScales::kSuperNibbles) return {unit.scale * from_low_nibbles(at), unit.offset * from_high_nibbles(at)};
}

// A type as the compiler wants it.
template <int kLow_, int kHigh_, PackedScales kScales_, int kUnit_, int kGroup_>
struct Packed {
  static constexpr int kLow = kLow_, kHigh = kHigh_, kUnit = kUnit_, kGroup = kGroup_;
  static constexpr PackedScales kScales = kScales_;
  static constexpr std::int64_t kPanelStep = 64 * (kLow + kHigh);
};

// Calls f(Packed<…>(), map) for a type; map brings stored values to panel values.
template <class Function>
WEIR_INLINE void for_packed(DType type, Function f) {
  using S = PackedScales;
  const auto plain = [](Line x) { return x; };
  const auto iq4 = [](Line x) { return look_up(iq4_table(), x); };
  switch (type) {
    case DType::kQ4_0: return f(Packed<4, 0, S::kHalf, 32, 32>(), plain);
    case DType::kQ4_1: return f(Packed<4, 0, S::kHalfAndOffset, 32, 32>(), plain);
    case DType::kQ5_0: return f(Packed<4, 1, S::kHalf, 32, 32>(), plain);
    case DType::kQ5_1: return f(Packed<4, 1, S::kHalfAndOffset, 32, 32>(), plain);
    case DType::kQ8_0: return f(Packed<8, 0, S::kHalf, 32, 32>(), plain);
    case DType::kQ2_K: return f(Packed<2, 0, S::kSuperNibbles, 256, 16>(), plain);
    case DType::kQ3_K: return f(Packed<2, 1, S::kSuper, 256, 16>(), plain);
    case DType::kQ4_K: return f(Packed<4, 0, S::kSuperAndMin, 256, 32>(), plain);
    case DType::kQ5_K: return f(Packed<4, 1, S::kSuperAndMin, 256, 32>(), plain);
    case DType::kQ6_K: return f(Packed<4, 2, S::kSuper, 256, 16>(), plain);
    case DType::kIQ4_NL: return f(Packed<4, 0, S::kHalf, 32, 32>(), iq4);
    case DType::kIQ4_XS: return f(Packed<4, 0, S::kSuper, 256, 32>(), iq4);
    case DType::kMXFP4: return f(Packed<4, 0, S::kExponent, 64, 32>(), [](Line x) { return look_up(mxfp4_table(), x); });
    default: return;
  }
}

template <class P, class Map>
void expand_panels_of(const PackedPanels& from, const Panel* panels, Map map) {
  const PackedShape& shape = *from.shape;
  for (int i = 0; i < panels[0].k; i += 32) {
    const std::int64_t at = from.k_begin + i;
    const int inside = static_cast<int>(at % P::kUnit);
    const std::byte* unit = from.packed + at / P::kUnit * shape.unit_bytes;
    for (int p = 0; p < from.count; ++p) {
      expand_block<P::kLow, P::kHigh>(unit + shape.values + inside / 32 * shape.block_step + p * P::kPanelStep,
                                      panels[p].q + i * kPanelOuts, map);
      const GroupScale whole = unit_scale<P::kScales>(unit, p);
      for (int g = 0; g < 32 / P::kGroup; ++g) {
        const GroupScale group = group_scale<P::kScales, 32 / P::kGroup>(whole, unit + shape.groups + inside / 32 * shape.group_step, p, g);
        store(panels[p].scale + (i / P::kGroup + g) * kPanelOuts, group.scale);
        if constexpr (has_offset(P::kScales)) store(panels[p].offset + (i / P::kGroup + g) * kPanelOuts, group.offset);
      }
    }
  }
}

inline void expand_panels(const PackedPanels& from, const Panel* panels) {
  for_packed(from.type, [&](auto packed, auto map) { expand_panels_of<decltype(packed)>(from, panels, map); });
}
