// SPDX-License-Identifier: Apache-2.0
// The memory layout of the quantised block types, as GGUF files hold them (facts of the format). A block is `elements`
// consecutive weights of a row. Structs have alignment 1, since blocks lie anywhere in a mapped file: read them through
// load_block(), or field by field through memcpy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace weir {

// A half-precision float as two bytes: no alignment, no arithmetic.
struct F16Bytes {
  std::uint8_t bytes[2];
  std::uint16_t bits() const { return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8); }
};

// In the 32-element types with 4-bit parts, the low half of byte j is element j, the high half is element j + 16.
struct BlockQ4_0 {
  F16Bytes d;
  std::uint8_t qs[16];
};  // d · (q - 8)
struct BlockQ4_1 {
  F16Bytes d, m;
  std::uint8_t qs[16];
};  // d · q + m
struct BlockQ5_0 {
  F16Bytes d;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};  // d · (q - 16); bit i of qh is bit 4 of element i
struct BlockQ5_1 {
  F16Bytes d, m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};  // d · q + m
struct BlockQ8_0 {
  F16Bytes d;
  std::int8_t qs[32];
};  // d · q
struct BlockIQ4_NL {
  F16Bytes d;
  std::uint8_t qs[16];
};  // d · kIQ4Values[q]
struct BlockMXFP4 {
  std::uint8_t e;
  std::uint8_t qs[16];
};  // 2^(e - 128) · kMXFP4Values[q]

// 256-element types. Sub-blocks have 16 or 32 elements and a small integer scale (and minimum) each.
struct BlockQ2_K {
  std::uint8_t scales[16];
  std::uint8_t qs[64];
  F16Bytes d, dmin;
};
struct BlockQ3_K {
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  F16Bytes d;
};
struct BlockQ4_K {
  F16Bytes d, dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
struct BlockQ5_K {
  F16Bytes d, dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
struct BlockQ6_K {
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  F16Bytes d;
};
struct BlockIQ4_XS {
  F16Bytes d;
  std::uint8_t scales_h[2];
  std::uint8_t scales_l[4];
  std::uint8_t qs[128];
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockMXFP4) == 17 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210 && alignof(BlockQ6_K) == 1 && alignof(BlockQ4_K) == 1);

inline constexpr std::int8_t kIQ4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr std::int8_t kMXFP4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};  // e2m1, doubled

template <class Block>
Block load_block(const std::byte* at) {
  Block block;
  std::memcpy(&block, at, sizeof block);
  return block;
}

// The 6-bit scale and minimum of sub-block `i` (0…7) of Q4_K and Q5_K.
inline std::uint8_t k4_scale(const std::uint8_t* s, int i) {
  return static_cast<std::uint8_t>(i < 4 ? s[i] & 63 : (s[i + 4] & 15) | (s[i - 4] >> 6) << 4);
}
inline std::uint8_t k4_min(const std::uint8_t* s, int i) {
  return static_cast<std::uint8_t>(i < 4 ? s[i + 4] & 63 : s[i + 4] >> 4 | (s[i] >> 6) << 4);
}

// The 6-bit scale of sub-block `i` (0…15) of Q3_K, 32 already taken off.
inline int q3_scale(const std::uint8_t* s, int i) {
  const int low = i < 8 ? s[i] & 15 : s[i - 8] >> 4;
  const int high = (s[8 + i % 4] >> (2 * (i / 4))) & 3;
  return (low | high << 4) - 32;
}

// The 6-bit scale of sub-block `i` (0…7) of IQ4_XS, 32 already taken off.
inline int iq4_xs_scale(const BlockIQ4_XS& b, int i) {
  const int low = (b.scales_l[i / 2] >> (4 * (i % 2))) & 15;
  const int high = ((b.scales_h[0] | b.scales_h[1] << 8) >> (2 * i)) & 3;
  return (low | high << 4) - 32;
}

}  // namespace weir
