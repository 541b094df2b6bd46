// SPDX-License-Identifier: Apache-2.0
// Pieces of packed panels (packed_panels.h): every load and store is a whole line, in the order of memory.

template <int kBits, int kQuad>
WEIR_INLINE Line quad_of(const std::byte* run) {
  if constexpr (kBits == 8) return load_line(run + kQuad * 64);
  constexpr int kShift = kBits * (kQuad / kBits);
  return right<kShift>(load_line(run + kQuad % kBits * 64)) & ((1 << kBits) - 1);
}

template <int kLow, int kHigh, int kQuad, class Map>
WEIR_INLINE Line whole_quad(const std::byte* low, const std::byte* high, Map map) {
  Line value = quad_of<kLow, kQuad>(low);
  if constexpr (kHigh > 0) value = value | left<kLow>(quad_of<kHigh, kQuad>(high));
  return map(value);
}

template <int kLow, int kHigh, int kQuad, class Map>
inline void expand_quad(const std::byte* low, const std::byte* high, std::uint8_t* q, Map map) {
  store_line(q + kQuad * 64, whole_quad<kLow, kHigh, kQuad>(low, high, map));
}

// Panels follow each other in memory, so what lies ahead is what will be read, across panels too. Hardware prefetchers stop at
// each 4 KiB page. The distance was chosen by decoding SmolLM2 (2 to 32 KiB ahead).
template <int kLines>
WEIR_INLINE void prefetch_ahead(const std::byte* p) {
  constexpr int kAhead = 16384;
  for (int line = 0; line < kLines; ++line) __builtin_prefetch(p + kAhead + line * 64, 0, 2);
}

template <int kLow, int kHigh, class Map>
inline void expand_quants(const std::byte* low, const std::byte* high, int k, std::uint8_t* q, Map map) {
  for (int b = 0; b < k / 32; ++b, low += kLow * 64, high += kHigh * 64, q += 512) {
    prefetch_ahead<kLow>(low);
    prefetch_ahead<kHigh>(high);
    expand_quad<kLow, kHigh, 0>(low, high, q, map);
    expand_quad<kLow, kHigh, 1>(low, high, q, map);
    expand_quad<kLow, kHigh, 2>(low, high, q, map);
    expand_quad<kLow, kHigh, 3>(low, high, q, map);
    expand_quad<kLow, kHigh, 4>(low, high, q, map);
    expand_quad<kLow, kHigh, 5>(low, high, q, map);
    expand_quad<kLow, kHigh, 6>(low, high, q, map);
    expand_quad<kLow, kHigh, 7>(low, high, q, map);
  }
}

inline void expand_all_quants(DType type, const std::byte* low, const std::byte* high, const Panel& panel) {
  const auto plain = [](Line x) { return x; };
  switch (type) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ4_K: return expand_quants<4, 0>(low, high, panel.k, panel.q, plain);
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K: return expand_quants<4, 1>(low, high, panel.k, panel.q, plain);
    case DType::kQ6_K: return expand_quants<4, 2>(low, high, panel.k, panel.q, plain);
    case DType::kQ8_0: return expand_quants<8, 0>(low, high, panel.k, panel.q, plain);
    case DType::kQ2_K: return expand_quants<2, 0>(low, high, panel.k, panel.q, plain);
    case DType::kQ3_K: return expand_quants<2, 1>(low, high, panel.k, panel.q, plain);
    case DType::kIQ4_NL:
    case DType::kIQ4_XS: return expand_quants<4, 0>(low, high, panel.k, panel.q, [t = iq4_table()](Line x) { return look_up(t, x); });
    case DType::kMXFP4: return expand_quants<4, 0>(low, high, panel.k, panel.q, [t = mxfp4_table()](Line x) { return look_up(t, x); });
    default: return;
  }
}

// Scales (and offsets) of `blocks` blocks of the type.
inline void expand_scales(PackedScales scales, const std::byte* halves, const std::byte* bytes, int blocks, int groups,
                          const Panel& panel) {
  const auto half = [&](int b, int count, int which) { return load_f16(halves + (b * count + which) * 2 * kPanelOuts); };
  for (int b = 0; b < blocks; ++b) {
    float* scale = panel.scale + b * groups * kPanelOuts;
    float* offset = panel.offset + b * groups * kPanelOuts;
    switch (scales) {
      case PackedScales::kHalf: store(scale, half(b, 1, 0)); break;
      case PackedScales::kHalfAndOffset:
        store(scale, half(b, 2, 0));
        store(offset, half(b, 2, 1));
        break;
      case PackedScales::kExponent:
        for (int o = 0; o < kPanelOuts; ++o) {
          const auto e = static_cast<std::uint32_t>(bytes[b * kPanelOuts + o]), bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
          __builtin_memcpy(scale + o, &bits, sizeof bits);
        }
        break;
      case PackedScales::kSuper: {
        const V d = half(b, 1, 0);
        for (int g = 0; g < groups; ++g) store(scale + g * kPanelOuts, d * from_i8(bytes + (b * groups + g) * kPanelOuts));
        break;
      }
      case PackedScales::kSuperAndMin: {
        const V d = half(b, 2, 0), negative = half(b, 2, 1) * set1(-1.0f);
        for (int g = 0; g < groups; ++g) {
          store(scale + g * kPanelOuts, d * from_u8(bytes + (2 * b * groups + g) * kPanelOuts));
          store(offset + g * kPanelOuts, negative * from_u8(bytes + ((2 * b + 1) * groups + g) * kPanelOuts));
        }
        break;
      }
      case PackedScales::kSuperNibbles: {
        const V d = half(b, 2, 0), negative = half(b, 2, 1) * set1(-1.0f);
        for (int g = 0; g < groups; ++g) {
          const std::byte* at = bytes + (b * groups + g) * kPanelOuts;
          store(scale + g * kPanelOuts, d * from_low_nibbles(at));
          store(offset + g * kPanelOuts, negative * from_high_nibbles(at));
        }
        break;
      }
    }
  }
}

inline void expand_panel(DType type, const std::byte* packed, std::int64_t k, std::int64_t k_begin, const Panel& panel) {
  const PackedTraits t = packed_traits(type);
  const PackedPanelShape shape = packed_panel_shape(type, k);
  const int block = dtype_info(type).block_size;
  expand_all_quants(type, packed + k_begin * 2 * t.low_bits, packed + shape.high + k_begin * 2 * t.high_bits, panel);
  const std::int64_t first = k_begin / block;
  expand_scales(t.scales, packed + shape.scales + first * shape.half_bytes, packed + shape.groups + first * shape.group_bytes,
                panel.k / block, block / panel.traits.group, panel);
}
