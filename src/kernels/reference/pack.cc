// SPDX-License-Identifier: Apache-2.0
// One header function per way of storing scales, one levels function per way of storing levels.
#include "kernels/reference/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/reference/half.h"
#include "tensor/block_formats.h"

namespace weir::kernels {
namespace {

using Groups = std::array<GroupFit, 16>;

F16Bytes half(float x) {
  const std::uint16_t bits = float_to_f16(std::clamp(x, -65504.0f, 65504.0f));
  return {{static_cast<std::uint8_t>(bits & 255), static_cast<std::uint8_t>(bits >> 8)}};
}

float read(F16Bytes h) { return f16_to_float(h.bits()); }

template <class Block>
void store(const Block& block, std::byte* at) {
  std::memcpy(at, &block, sizeof block);
}

// The fit whose scale (or offset) is largest in magnitude, and integers relative to it.
template <class Get>
float largest_of(const Groups& groups, int count, Get get) {
  float found = 0;
  for (int g = 0; g < count; ++g)
    if (std::fabs(get(groups[static_cast<std::size_t>(g)])) > std::fabs(found)) found = get(groups[static_cast<std::size_t>(g)]);
  return found;
}

int ratio(float value, float unit, int low, int high) {
  if (unit == 0) return 0;
  return static_cast<int>(std::clamp(std::nearbyint(value / unit), static_cast<float>(low), static_cast<float>(high)));
}

constexpr auto kScaleOf = [](const GroupFit& f) { return f.scale; };
constexpr auto kOffsetOf = [](const GroupFit& f) { return f.offset; };

void put_k4_scales(std::uint8_t* s, int i, int scale, int min) {
  if (i < 4) {
    s[i] = static_cast<std::uint8_t>(s[i] | scale);
    s[i + 4] = static_cast<std::uint8_t>(s[i + 4] | min);
    return;
  }
  s[i + 4] = static_cast<std::uint8_t>((scale & 15) | (min & 15) << 4);
  s[i - 4] = static_cast<std::uint8_t>(s[i - 4] | (scale >> 4) << 6);
  s[i] = static_cast<std::uint8_t>(s[i] | (min >> 4) << 6);
}

template <class Block>
void k4_header(const Groups& groups, std::byte* at) {
  auto block = load_block<Block>(at);
  block.d = half(largest_of(groups, 8, kScaleOf) / 63);
  block.dmin = half(-largest_of(groups, 8, kOffsetOf) / 63);
  for (int g = 0; g < 8; ++g) {
    const GroupFit& fit = groups[static_cast<std::size_t>(g)];
    put_k4_scales(block.scales, g, ratio(fit.scale, read(block.d), 0, 63), ratio(-fit.offset, read(block.dmin), 0, 63));
  }
  store(block, at);
}

void q2_header(const Groups& groups, std::byte* at) {
  auto block = load_block<BlockQ2_K>(at);
  block.d = half(largest_of(groups, 16, kScaleOf) / 15);
  block.dmin = half(-largest_of(groups, 16, kOffsetOf) / 15);
  for (int g = 0; g < 16; ++g) {
    const GroupFit& fit = groups[static_cast<std::size_t>(g)];
    block.scales[g] = static_cast<std::uint8_t>(ratio(fit.scale, read(block.d), 0, 15) | ratio(-fit.offset, read(block.dmin), 0, 15) << 4);
  }
  store(block, at);
}

void q3_header(const Groups& groups, std::byte* at) {
  auto block = load_block<BlockQ3_K>(at);
  block.d = half(largest_of(groups, 16, kScaleOf) / -32);
  for (int g = 0; g < 16; ++g) {
    const int scale = ratio(groups[static_cast<std::size_t>(g)].scale, read(block.d), -32, 31) + 32;
    std::uint8_t& low = block.scales[g % 8];
    low = static_cast<std::uint8_t>(low | (scale & 15) << (g / 8 * 4));
    std::uint8_t& high = block.scales[8 + g % 4];
    high = static_cast<std::uint8_t>(high | (scale >> 4) << (g / 4 * 2));
  }
  store(block, at);
}

void q6_header(const Groups& groups, std::byte* at) {
  auto block = load_block<BlockQ6_K>(at);
  block.d = half(largest_of(groups, 16, kScaleOf) / -128);
  for (int g = 0; g < 16; ++g)
    block.scales[g] = static_cast<std::int8_t>(ratio(groups[static_cast<std::size_t>(g)].scale, read(block.d), -128, 127));
  store(block, at);
}

void iq4_xs_header(const Groups& groups, std::byte* at) {
  auto block = load_block<BlockIQ4_XS>(at);
  block.d = half(largest_of(groups, 8, kScaleOf) / -32);
  for (int g = 0; g < 8; ++g) {
    const int scale = ratio(groups[static_cast<std::size_t>(g)].scale, read(block.d), -32, 31) + 32;
    block.scales_l[g / 2] = static_cast<std::uint8_t>(block.scales_l[g / 2] | (scale & 15) << (g % 2 * 4));
    block.scales_h[g / 4] = static_cast<std::uint8_t>(block.scales_h[g / 4] | (scale >> 4) << (g % 4 * 2));
  }
  store(block, at);
}

// The stored exponent e means the factor 2^(e - 128); the nearest power of two to the fitted scale.
void mxfp4_header(const Groups& groups, std::byte* at) {
  const float scale = std::fabs(groups[0].scale);
  const float exponent = scale > 0 ? std::nearbyint(std::log2(scale)) + 128 : 0;
  at[0] = static_cast<std::byte>(std::clamp(exponent, 0.0f, 254.0f));
}

void half_header(const Groups& groups, bool has_offset, std::byte* at) {
  const F16Bytes d = half(groups[0].scale), m = half(groups[0].offset);
  std::memcpy(at, &d, sizeof d);
  if (has_offset) std::memcpy(at + sizeof d, &m, sizeof m);
}

void put_bit(std::uint8_t* bytes, int bit, int value) { bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] | value << (bit % 8)); }

// 32 levels as halves of 16 bytes.
void put_nibbles(const std::uint8_t* q, std::uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>((q[j] & 15) | (q[j + 16] & 15) << 4);
}

template <class Block>
void nibble_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<Block>(at);
  put_nibbles(q, block.qs);
  store(block, at);
}

template <class Block>
void five_bit_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<Block>(at);
  put_nibbles(q, block.qs);
  for (int j = 0; j < 32; ++j) put_bit(block.qh, j, q[j] >> 4);
  store(block, at);
}

void q8_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<BlockQ8_0>(at);
  for (int j = 0; j < 32; ++j) block.qs[j] = static_cast<std::int8_t>(q[j] - 128);
  store(block, at);
}

void q2_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<BlockQ2_K>(at);
  for (int i = 0; i < 256; ++i) {
    std::uint8_t& byte = block.qs[i / 128 * 32 + i % 32];
    byte = static_cast<std::uint8_t>(byte | q[i] << (2 * (i % 128 / 32)));
  }
  store(block, at);
}

void q3_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<BlockQ3_K>(at);
  for (int i = 0; i < 256; ++i) {
    std::uint8_t& byte = block.qs[i / 128 * 32 + i % 32];
    byte = static_cast<std::uint8_t>(byte | (q[i] & 3) << (2 * (i % 128 / 32)));
    block.hmask[i % 32] = static_cast<std::uint8_t>(block.hmask[i % 32] | (q[i] >> 2) << (i / 32));
  }
  store(block, at);
}

template <class Block>
void k4_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<Block>(at);
  for (int i = 0; i < 256; ++i) {
    std::uint8_t& byte = block.qs[i / 64 * 32 + i % 32];
    byte = static_cast<std::uint8_t>(byte | (q[i] & 15) << (4 * (i % 64 / 32)));
    if constexpr (requires { block.qh; }) block.qh[i % 32] = static_cast<std::uint8_t>(block.qh[i % 32] | (q[i] >> 4) << (i / 32));
  }
  store(block, at);
}

void q6_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<BlockQ6_K>(at);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, l = i % 32;
    std::uint8_t& low = block.ql[part * 64 + quarter % 2 * 32 + l];
    low = static_cast<std::uint8_t>(low | (q[i] & 15) << (4 * (quarter / 2)));
    std::uint8_t& high = block.qh[part * 32 + l];
    high = static_cast<std::uint8_t>(high | (q[i] >> 4) << (2 * quarter));
  }
  store(block, at);
}

void iq4_xs_levels(const std::uint8_t* q, std::byte* at) {
  auto block = load_block<BlockIQ4_XS>(at);
  for (int g = 0; g < 8; ++g) put_nibbles(q + 32 * g, block.qs + 16 * g);
  store(block, at);
}

}  // namespace

void pack_header(DType type, const Groups& groups, std::byte* block) {
  switch (type) {
    case DType::kQ2_K: return q2_header(groups, block);
    case DType::kQ3_K: return q3_header(groups, block);
    case DType::kQ4_K: return k4_header<BlockQ4_K>(groups, block);
    case DType::kQ5_K: return k4_header<BlockQ5_K>(groups, block);
    case DType::kQ6_K: return q6_header(groups, block);
    case DType::kIQ4_XS: return iq4_xs_header(groups, block);
    case DType::kMXFP4: return mxfp4_header(groups, block);
    default: return half_header(groups, type == DType::kQ4_1 || type == DType::kQ5_1, block);
  }
}

void pack_levels(DType type, const std::uint8_t* q, std::byte* block) {
  switch (type) {
    case DType::kQ4_0: return nibble_levels<BlockQ4_0>(q, block);
    case DType::kQ4_1: return nibble_levels<BlockQ4_1>(q, block);
    case DType::kQ5_0: return five_bit_levels<BlockQ5_0>(q, block);
    case DType::kQ5_1: return five_bit_levels<BlockQ5_1>(q, block);
    case DType::kQ8_0: return q8_levels(q, block);
    case DType::kQ2_K: return q2_levels(q, block);
    case DType::kQ3_K: return q3_levels(q, block);
    case DType::kQ4_K: return k4_levels<BlockQ4_K>(q, block);
    case DType::kQ5_K: return k4_levels<BlockQ5_K>(q, block);
    case DType::kQ6_K: return q6_levels(q, block);
    case DType::kIQ4_NL: return nibble_levels<BlockIQ4_NL>(q, block);
    case DType::kIQ4_XS: return iq4_xs_levels(q, block);
    case DType::kMXFP4: return nibble_levels<BlockMXFP4>(q, block);
    default: break;
  }
  WEIR_CHECK(false, "{} is not a quantised type", dtype_name(type));
}

}  // namespace weir::kernels
