// SPDX-License-Identifier: Apache-2.0
// One function per block type, each a transcription of the layout in block_formats.h.
#include "kernels/reference/unpack.h"

#include <bit>

#include "base/check.h"
#include "kernels/reference/half.h"
#include "tensor/block_formats.h"

namespace weir::kernels {
namespace {

float to_float(F16Bytes h) { return f16_to_float(h.bits()); }

// Elements 0…15 are the low halves of 16 bytes, 16…31 the high halves.
template <class Map>
void split_halves(const std::uint8_t* qs, std::uint8_t* q, Map map) {
  for (int j = 0; j < 16; ++j) {
    q[j] = static_cast<std::uint8_t>(map(qs[j] & 15));
    q[j + 16] = static_cast<std::uint8_t>(map(qs[j] >> 4));
  }
}

constexpr auto kPlain = [](int v) { return v; };
constexpr auto kIQ4 = [](int v) { return kIQ4Values[v] + 128; };
constexpr auto kMXFP4 = [](int v) { return kMXFP4Values[v] + 16; };

void add_fifth_bit(const std::uint8_t* qh, std::uint8_t* q) {
  for (int j = 0; j < 32; ++j) q[j] = static_cast<std::uint8_t>(q[j] | (qh[j / 8] >> (j % 8) & 1) << 4);
}

void unpack(const BlockQ4_0& b, UnpackedBlock& out) {
  split_halves(b.qs, out.q, kPlain);
  out.scale[0] = to_float(b.d);
}

void unpack(const BlockQ4_1& b, UnpackedBlock& out) {
  split_halves(b.qs, out.q, kPlain);
  out.scale[0] = to_float(b.d);
  out.offset[0] = to_float(b.m);
}

void unpack(const BlockQ5_0& b, UnpackedBlock& out) {
  split_halves(b.qs, out.q, kPlain);
  add_fifth_bit(b.qh, out.q);
  out.scale[0] = to_float(b.d);
}

void unpack(const BlockQ5_1& b, UnpackedBlock& out) {
  split_halves(b.qs, out.q, kPlain);
  add_fifth_bit(b.qh, out.q);
  out.scale[0] = to_float(b.d);
  out.offset[0] = to_float(b.m);
}

void unpack(const BlockQ8_0& b, UnpackedBlock& out) {
  for (int j = 0; j < 32; ++j) out.q[j] = static_cast<std::uint8_t>(b.qs[j] + 128);
  out.scale[0] = to_float(b.d);
}

void unpack(const BlockIQ4_NL& b, UnpackedBlock& out) {
  split_halves(b.qs, out.q, kIQ4);
  out.scale[0] = to_float(b.d);
}

void unpack(const BlockMXFP4& b, UnpackedBlock& out) {
  split_halves(b.qs, out.q, kMXFP4);
  out.scale[0] = mxfp4_scale(b.e);
}

void unpack(const BlockQ2_K& b, UnpackedBlock& out) {
  const float d = to_float(b.d), dmin = to_float(b.dmin);
  for (int i = 0; i < 256; ++i) out.q[i] = b.qs[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
  for (int g = 0; g < 16; ++g) {
    out.scale[g] = d * static_cast<float>(b.scales[g] & 15);
    out.offset[g] = -(dmin * static_cast<float>(b.scales[g] >> 4));
  }
}

void unpack(const BlockQ3_K& b, UnpackedBlock& out) {
  const float d = to_float(b.d);
  for (int i = 0; i < 256; ++i) {
    const int low = b.qs[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
    const int high = b.hmask[i % 32] >> (i / 32) & 1;
    out.q[i] = static_cast<std::uint8_t>(low | high << 2);
  }
  for (int g = 0; g < 16; ++g) out.scale[g] = d * static_cast<float>(q3_scale(b.scales, g));
}

template <class Block>
void unpack_k4_scales(const Block& b, UnpackedBlock& out) {
  const float d = to_float(b.d), dmin = to_float(b.dmin);
  for (int g = 0; g < 8; ++g) {
    out.scale[g] = d * static_cast<float>(k4_scale(b.scales, g));
    out.offset[g] = -(dmin * static_cast<float>(k4_min(b.scales, g)));
  }
}

void unpack(const BlockQ4_K& b, UnpackedBlock& out) {
  for (int i = 0; i < 256; ++i) out.q[i] = b.qs[i / 64 * 32 + i % 32] >> (4 * (i % 64 / 32)) & 15;
  unpack_k4_scales(b, out);
}

void unpack(const BlockQ5_K& b, UnpackedBlock& out) {
  for (int i = 0; i < 256; ++i) {
    const int low = b.qs[i / 64 * 32 + i % 32] >> (4 * (i % 64 / 32)) & 15;
    out.q[i] = static_cast<std::uint8_t>(low | (b.qh[i % 32] >> (i / 32) & 1) << 4);
  }
  unpack_k4_scales(b, out);
}

void unpack(const BlockQ6_K& b, UnpackedBlock& out) {
  const float d = to_float(b.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const int low = b.ql[half * 64 + quarter % 2 * 32 + l] >> (4 * (quarter / 2)) & 15;
    const int high = b.qh[half * 32 + l] >> (2 * quarter) & 3;
    out.q[i] = static_cast<std::uint8_t>(low | high << 4);
  }
  for (int g = 0; g < 16; ++g) out.scale[g] = d * static_cast<float>(b.scales[g]);
}

void unpack(const BlockIQ4_XS& b, UnpackedBlock& out) {
  const float d = to_float(b.d);
  for (int g = 0; g < 8; ++g) {
    split_halves(b.qs + g * 16, out.q + g * 32, kIQ4);
    out.scale[g] = d * static_cast<float>(iq4_xs_scale(b, g));
  }
}

}  // namespace

QuantTraits quant_traits(DType type) {
  switch (type) {
    case DType::kQ4_0: return {.group = 32, .zero = 8, .max = 15};
    case DType::kQ4_1: return {.group = 32, .max = 15, .has_offset = true};
    case DType::kQ5_0: return {.group = 32, .zero = 16, .max = 31};
    case DType::kQ5_1: return {.group = 32, .max = 31, .has_offset = true};
    case DType::kQ8_0: return {.group = 32, .zero = 128, .max = 255};
    case DType::kQ2_K: return {.group = 16, .max = 3, .has_offset = true};
    case DType::kQ3_K: return {.group = 16, .zero = 4, .max = 7};
    case DType::kQ4_K: return {.group = 32, .max = 15, .has_offset = true};
    case DType::kQ5_K: return {.group = 32, .max = 31, .has_offset = true};
    case DType::kQ6_K: return {.group = 16, .zero = 32, .max = 63};
    case DType::kIQ4_NL:
    case DType::kIQ4_XS: return {.group = 32, .zero = 128, .max = 255};
    case DType::kMXFP4: return {.group = 32, .zero = 16, .max = 31};
    default: break;
  }
  WEIR_CHECK(false, "{} is not a quantised type", dtype_name(type));
}

// The two smallest are subnormal floats.
float mxfp4_scale(std::uint8_t e) { return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<std::uint32_t>(e - 1) << 23); }

void unpack_block(DType type, const std::byte* block, UnpackedBlock& out) {
  for (float& offset : out.offset) offset = 0;
  switch (type) {
    case DType::kQ4_0: return unpack(load_block<BlockQ4_0>(block), out);
    case DType::kQ4_1: return unpack(load_block<BlockQ4_1>(block), out);
    case DType::kQ5_0: return unpack(load_block<BlockQ5_0>(block), out);
    case DType::kQ5_1: return unpack(load_block<BlockQ5_1>(block), out);
    case DType::kQ8_0: return unpack(load_block<BlockQ8_0>(block), out);
    case DType::kQ2_K: return unpack(load_block<BlockQ2_K>(block), out);
    case DType::kQ3_K: return unpack(load_block<BlockQ3_K>(block), out);
    case DType::kQ4_K: return unpack(load_block<BlockQ4_K>(block), out);
    case DType::kQ5_K: return unpack(load_block<BlockQ5_K>(block), out);
    case DType::kQ6_K: return unpack(load_block<BlockQ6_K>(block), out);
    case DType::kIQ4_NL: return unpack(load_block<BlockIQ4_NL>(block), out);
    case DType::kIQ4_XS: return unpack(load_block<BlockIQ4_XS>(block), out);
    case DType::kMXFP4: return unpack(load_block<BlockMXFP4>(block), out);
    default: break;
  }
  WEIR_CHECK(false, "{} is not a quantised type", dtype_name(type));
}

}  // namespace weir::kernels
