// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack_lines.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/block_formats.h"

namespace weir::kernels {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kBytes = 0x0101010101010101;
constexpr int kLine = 64;

// 32 consecutive inputs of a row as stored: 8 values a word, 4 a quad.
struct Values {
  std::uint64_t words[4];
};

std::uint64_t load(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Value j from bits [shift, shift + width) of byte j.
Values fields(const std::byte* bytes, int shift, std::uint64_t mask) {
  Values v;
  for (int i = 0; i < 4; ++i) v.words[i] = load(bytes + 8 * i) >> shift & (mask * kBytes);
  return v;
}

// Values 0…15 from the low halves of 16 bytes, 16…31 from the high halves.
Values halves(const std::byte* bytes) {
  Values v;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t word = load(bytes + 8 * i);
    v.words[i] = word & 0x0f * kBytes;
    v.words[i + 2] = word >> 4 & 0x0f * kBytes;
  }
  return v;
}

void add(const Values& more, int shift, Values& v) {
  for (int i = 0; i < 4; ++i) v.words[i] |= more.words[i] << shift;
}

// Bit j of a byte as the lowest bit of byte j of a word: each is left alone in its byte, then carried to the top.
std::uint64_t spread_bits(std::byte bits) {
  constexpr std::uint64_t kOneEach = 0x8040201008040201;
  return ((static_cast<std::uint64_t>(bits) * kBytes & kOneEach) + 0x7f * kBytes) >> 7 & kBytes;
}

Values with_fifth_bits(const std::byte* nibbles, const std::byte* bits) {
  Values v = halves(nibbles);
  for (int i = 0; i < 4; ++i) v.words[i] |= spread_bits(bits[i]) << 4;
  return v;
}

// Lines of `bits` a value from `from` on, for one output: quad q goes to line q % bits, at bit n · (q / n) of each byte.
template <int bits, int from>
void put(const Values& values, int out, std::byte* lines) {
  constexpr std::uint32_t kMask = ((1u << bits) - 1) * 0x01010101u;
  std::uint32_t quads[8];
  std::memcpy(quads, values.words, sizeof quads);
  for (int line = 0; line < bits; ++line) {
    std::uint32_t word = 0;
    for (int q = line; q < 8; q += bits) word |= (quads[q] >> from & kMask) << (q / bits * bits);
    std::memcpy(lines + line * kLine + out * 4, &word, sizeof word);
  }
}

template <int low_bits, int high_bits>
void put_group(const Values& values, int out, std::byte* lines) {
  put<low_bits, 0>(values, out, lines);
  if constexpr (high_bits > 0) put<high_bits, low_bits>(values, out, lines + low_bits * kLine);
}

void pack_q2(const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  for (int g = 0; g < 8; ++g) put_group<2, 0>(fields(block + offsetof(BlockQ2_K, qs) + g / 4 * 32, g % 4 * 2, 3), out, lines + g * step);
}

void pack_q3(const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  for (int g = 0; g < 8; ++g) {
    Values v = fields(block + offsetof(BlockQ3_K, qs) + g / 4 * 32, g % 4 * 2, 3);
    add(fields(block + offsetof(BlockQ3_K, hmask), g, 1), 2, v);
    put_group<2, 1>(v, out, lines + g * step);
  }
}

void pack_q4(const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  for (int g = 0; g < 8; ++g) put_group<4, 0>(fields(block + offsetof(BlockQ4_K, qs) + g / 2 * 32, g % 2 * 4, 15), out, lines + g * step);
}

void pack_q5(const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  for (int g = 0; g < 8; ++g) {
    Values v = fields(block + offsetof(BlockQ5_K, qs) + g / 2 * 32, g % 2 * 4, 15);
    add(fields(block + offsetof(BlockQ5_K, qh), g, 1), 4, v);
    put_group<4, 1>(v, out, lines + g * step);
  }
}

void pack_q6(const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  for (int g = 0; g < 8; ++g) {
    const int half = g / 4, quarter = g % 4;
    Values v = fields(block + offsetof(BlockQ6_K, ql) + half * 64 + quarter % 2 * 32, quarter / 2 * 4, 15);
    add(fields(block + offsetof(BlockQ6_K, qh) + half * 32, quarter * 2, 3), 4, v);
    put_group<4, 2>(v, out, lines + g * step);
  }
}

void pack_iq4_xs(const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  for (int g = 0; g < 8; ++g) put_group<4, 0>(halves(block + offsetof(BlockIQ4_XS, qs) + g * 16), out, lines + g * step);
}

void pack_q8(const std::byte* block, int out, std::byte* lines) {
  Values v = fields(block + offsetof(BlockQ8_0, qs), 0, 0xff);
  for (std::uint64_t& word : v.words) word ^= 0x80 * kBytes;  // q + 128
  put<8, 0>(v, out, lines);
}

}  // namespace

void pack_block_lines(DType type, const std::byte* block, int out, std::byte* lines, std::int64_t step) {
  switch (type) {
    case DType::kQ4_0:
    case DType::kIQ4_NL: return put<4, 0>(halves(block + offsetof(BlockQ4_0, qs)), out, lines);
    case DType::kQ4_1: return put<4, 0>(halves(block + offsetof(BlockQ4_1, qs)), out, lines);
    case DType::kMXFP4: return put<4, 0>(halves(block + offsetof(BlockMXFP4, qs)), out, lines);
    case DType::kQ5_0:
      return put_group<4, 1>(with_fifth_bits(block + offsetof(BlockQ5_0, qs), block + offsetof(BlockQ5_0, qh)), out, lines);
    case DType::kQ5_1:
      return put_group<4, 1>(with_fifth_bits(block + offsetof(BlockQ5_1, qs), block + offsetof(BlockQ5_1, qh)), out, lines);
    case DType::kQ8_0: return pack_q8(block, out, lines);
    case DType::kQ2_K: return pack_q2(block, out, lines, step);
    case DType::kQ3_K: return pack_q3(block, out, lines, step);
    case DType::kQ4_K: return pack_q4(block, out, lines, step);
    case DType::kQ5_K: return pack_q5(block, out, lines, step);
    case DType::kQ6_K: return pack_q6(block, out, lines, step);
    case DType::kIQ4_XS: return pack_iq4_xs(block, out, lines, step);
    default: WEIR_CHECK(false, "{} is not a quantised type", dtype_name(type));
  }
}

}  // namespace weir::kernels
