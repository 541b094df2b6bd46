// SPDX-License-Identifier: Apache-2.0
// Panels of quantised weights. A Bytes holds 16 bytes of each of kRows rows, in 128-bit parts: all unpacking works on the
// parts alike, then a 4 × 4 transpose inside the parts puts outputs side by side. Nothing is read beyond a block.

inline Bytes low_half(Bytes b) { return b & splat(15); }
inline Bytes high_half(Bytes b) { return shift_right(b, 4) & splat(15); }

// Writes 16 consecutive inputs, from k on, of the rows [first, first + kRows).
inline void emit(const Panel& panel, std::int64_t k, int first, Bytes b) { store_quads(panel.q + (k / 4) * 64 + first * 4, b); }

// 32-element blocks of two halves of nibbles: `head` bytes of scales, then 16 bytes.
template <class Map>
inline void nibble_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at, Map map) {
  const Bytes b = gather(rows, at);
  emit(panel, k, first, map(low_half(b)));
  emit(panel, k + 16, first, map(high_half(b)));
}

inline void five_bit_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  const Bytes high = gather4(rows, at), b = gather(rows, at + 4);
  emit(panel, k, first, low_half(b) | (spread_bits(high, 0) & splat(16)));
  emit(panel, k + 16, first, high_half(b) | (spread_bits(high, 2) & splat(16)));
}

inline void q8_0_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  emit(panel, k, first, flip_sign(gather(rows, at + 2)));
  emit(panel, k + 16, first, flip_sign(gather(rows, at + 18)));
}

inline void q2_k_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  for (int part = 0; part < 4; ++part) {  // 128-element half, 16-byte half
    const Bytes b = gather(rows, at + 16 + 16 * part);
    for (int s = 0; s < 4; ++s) emit(panel, k + part / 2 * 128 + s * 32 + part % 2 * 16, first, shift_right(b, 2 * s) & splat(3));
  }
}

inline void q3_k_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  for (int part = 0; part < 4; ++part) {
    const Bytes b = gather(rows, at + 32 + 16 * part), high = gather(rows, at + part % 2 * 16);
    for (int s = 0; s < 4; ++s) {
      const Bytes bit = shift_left(shift_right(high, part / 2 * 4 + s) & splat(1), 2);
      emit(panel, k + part / 2 * 128 + s * 32 + part % 2 * 16, first, (shift_right(b, 2 * s) & splat(3)) | bit);
    }
  }
}

inline void q4_k_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  for (int part = 0; part < 8; ++part) {  // 64-element quarter, 16-byte half
    const Bytes b = gather(rows, at + 16 + 16 * part);
    const std::int64_t to = k + part / 2 * 64 + part % 2 * 16;
    emit(panel, to, first, low_half(b));
    emit(panel, to + 32, first, high_half(b));
  }
}

inline void q5_k_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  for (int half = 0; half < 2; ++half) {
    const Bytes high = gather(rows, at + 16 + 16 * half);
    for (int quarter = 0; quarter < 4; ++quarter) {
      const Bytes b = gather(rows, at + 48 + 32 * quarter + 16 * half);
      const Bytes bit0 = shift_left(shift_right(high, 2 * quarter) & splat(1), 4);
      const Bytes bit1 = shift_left(shift_right(high, 2 * quarter + 1) & splat(1), 4);
      emit(panel, k + quarter * 64 + half * 16, first, low_half(b) | bit0);
      emit(panel, k + quarter * 64 + half * 16 + 32, first, high_half(b) | bit1);
    }
  }
}

inline void q6_k_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  for (int part = 0; part < 4; ++part) {
    const std::int64_t half = part / 2, sixteen = part % 2 * 16, to = k + half * 128 + sixteen;
    const Bytes a = gather(rows, at + half * 64 + sixteen), b = gather(rows, at + half * 64 + 32 + sixteen);
    const Bytes high = gather(rows, at + 128 + half * 32 + sixteen);
    const auto top = [&](int shift) { return shift_left(shift_right(high, shift) & splat(3), 4); };
    emit(panel, to, first, low_half(a) | top(0));
    emit(panel, to + 32, first, low_half(b) | top(2));
    emit(panel, to + 64, first, high_half(a) | top(4));
    emit(panel, to + 96, first, high_half(b) | top(6));
  }
}

inline void iq4_xs_block(const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  for (int g = 0; g < 8; ++g)
    nibble_block(panel, k + 32 * g, first, rows, at + 8 + 16 * g, [](Bytes b) { return look_up(iq4_table(), b); });
}

inline void quants_of_block(DType type, const Panel& panel, std::int64_t k, int first, const std::byte* const* rows, std::int64_t at) {
  switch (type) {
    case DType::kQ4_0: return nibble_block(panel, k, first, rows, at + 2, [](Bytes b) { return b; });
    case DType::kQ4_1: return nibble_block(panel, k, first, rows, at + 4, [](Bytes b) { return b; });
    case DType::kQ5_0: return five_bit_block(panel, k, first, rows, at + 2);
    case DType::kQ5_1: return five_bit_block(panel, k, first, rows, at + 4);
    case DType::kQ8_0: return q8_0_block(panel, k, first, rows, at);
    case DType::kQ2_K: return q2_k_block(panel, k, first, rows, at);
    case DType::kQ3_K: return q3_k_block(panel, k, first, rows, at);
    case DType::kQ4_K: return q4_k_block(panel, k, first, rows, at);
    case DType::kQ5_K: return q5_k_block(panel, k, first, rows, at);
    case DType::kQ6_K: return q6_k_block(panel, k, first, rows, at);
    case DType::kIQ4_NL: return nibble_block(panel, k, first, rows, at + 2, [](Bytes b) { return look_up(iq4_table(), b); });
    case DType::kMXFP4: return nibble_block(panel, k, first, rows, at + 1, [](Bytes b) { return look_up(mxfp4_table(), b); });
    case DType::kIQ4_XS: return iq4_xs_block(panel, k, first, rows, at);
    default: break;
  }
}

inline std::uint16_t read_u16(const std::byte* p) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return bits;
}

// Half-precision scales (and offsets) of 32-element blocks: collected first, converted after, sixteen at a time.
inline void half_scales(const Panel& panel, const std::byte* const* rows, std::int64_t block_bytes) {
  constexpr int kBlocks = 16;
  alignas(64) std::uint16_t scale[kBlocks][kPanelOuts], offset[kBlocks][kPanelOuts];
  const int blocks = panel.k / 32;
  for (int from = 0; from < blocks; from += kBlocks) {
    const int count = blocks - from < kBlocks ? blocks - from : kBlocks;
    for (int o = 0; o < kPanelOuts; ++o) {
      for (int b = 0; b < count; ++b) {
        const std::byte* block = rows[o] + (from + b) * block_bytes;
        scale[b][o] = read_u16(block);
        if (panel.traits.has_offset) offset[b][o] = read_u16(block + 2);
      }
    }
    for (int b = 0; b < count; ++b) {
      store(panel.scale + (from + b) * kPanelOuts, load_f16(reinterpret_cast<const std::byte*>(scale[b])));
      if (panel.traits.has_offset) store(panel.offset + (from + b) * kPanelOuts, load_f16(reinterpret_cast<const std::byte*>(offset[b])));
    }
  }
}

inline float half_at(const std::byte* p) { return _cvtsh_ss(read_u16(p)); }

// Scales of one block of the other types, for one output. `scale` and `offset` point at its first group.
inline void scales_of_block(DType type, const std::byte* block, float* scale, float* offset) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(block);
  switch (type) {
    case DType::kMXFP4: {
      const std::uint32_t e = bytes[0], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
      __builtin_memcpy(scale, &bits, sizeof bits);
      return;
    }
    case DType::kQ2_K: {
      const float d = half_at(block + 80), dmin = half_at(block + 82);
      for (int g = 0; g < 16; ++g) {
        scale[g * kPanelOuts] = d * static_cast<float>(bytes[g] & 15);
        offset[g * kPanelOuts] = -(dmin * static_cast<float>(bytes[g] >> 4));
      }
      return;
    }
    case DType::kQ3_K: {
      const float d = half_at(block + 108);
      for (int g = 0; g < 16; ++g) scale[g * kPanelOuts] = d * static_cast<float>(q3_scale(bytes + 96, g));
      return;
    }
    case DType::kQ4_K:
    case DType::kQ5_K: {
      const float d = half_at(block), dmin = half_at(block + 2);
      for (int g = 0; g < 8; ++g) {
        scale[g * kPanelOuts] = d * static_cast<float>(k4_scale(bytes + 4, g));
        offset[g * kPanelOuts] = -(dmin * static_cast<float>(k4_min(bytes + 4, g)));
      }
      return;
    }
    case DType::kQ6_K: {
      const float d = half_at(block + 208);
      const auto* s = reinterpret_cast<const std::int8_t*>(block + 192);
      for (int g = 0; g < 16; ++g) scale[g * kPanelOuts] = d * static_cast<float>(s[g]);
      return;
    }
    case DType::kIQ4_XS: {
      const float d = half_at(block);
      BlockIQ4_XS head;
      __builtin_memcpy(&head, block, 8);
      for (int g = 0; g < 8; ++g) scale[g * kPanelOuts] = d * static_cast<float>(iq4_xs_scale(head, g));
      return;
    }
    default: return;
  }
}

inline void unpack_panel(DType type, const std::byte* w, std::int64_t w_stride, int outs, std::int64_t k_begin, const Panel& panel) {
  const DTypeInfo& info = dtype_info(type);
  const std::byte* rows[kPanelOuts];
  for (int o = 0; o < kPanelOuts; ++o) rows[o] = w + (o < outs ? o : outs - 1) * w_stride + k_begin / info.block_size * info.block_bytes;
  std::int64_t at = 0;
  for (int k = 0; k < panel.k; k += info.block_size, at += info.block_bytes) {
    for (int first = 0; first < kPanelOuts; first += kRows) quants_of_block(type, panel, k, first, rows + first, at);
  }
  const bool halves = info.block_size == 32 && type != DType::kMXFP4;
  if (halves) return half_scales(panel, rows, info.block_bytes);
  const int groups = info.block_size / panel.traits.group * kPanelOuts;
  for (int o = 0; o < kPanelOuts; ++o) {
    const std::byte* block = rows[o];
    float *scale = panel.scale + o, *offset = panel.offset + o;
    for (int k = 0; k < panel.k; k += info.block_size, block += info.block_bytes, scale += groups, offset += groups)
      scales_of_block(type, block, scale, offset);
  }
}
