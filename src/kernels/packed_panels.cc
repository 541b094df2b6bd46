// SPDX-License-Identifier: Apache-2.0
// Packing, and the reference of expanding.
#include "kernels/packed_panels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/pack_lines.h"
#include "kernels/reference/half.h"
#include "kernels/reference/kernels.h"
#include "tensor/block_formats.h"

namespace weir::kernels {
namespace {

constexpr int kLine = 64;         // bytes of a line: one quad at 8 bits
constexpr int kBlockInputs = 32;  // inputs of 8 quads
constexpr std::int64_t kSuper = 256;

std::int64_t padded(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

bool has_min(PackedScales scales) { return scales == PackedScales::kSuperAndMin || scales == PackedScales::kSuperNibbles; }

// Bytes of scales for one block of the type (32 or 256 inputs): halves first, then the groups' bytes.
std::int64_t half_bytes(PackedScales scales) {
  if (scales == PackedScales::kExponent) return 0;
  const bool two = scales == PackedScales::kHalfAndOffset || has_min(scales);
  return (two ? 2 : 1) * 2 * kPanelOuts;
}
std::int64_t group_bytes(DType type, PackedScales scales) {
  if (scales == PackedScales::kExponent) return kPanelOuts;
  if (scales == PackedScales::kHalf || scales == PackedScales::kHalfAndOffset) return 0;
  const std::int64_t groups = kSuper / quant_traits(type).group;
  return groups * kPanelOuts * (scales == PackedScales::kSuperAndMin ? 2 : 1);
}

std::uint8_t expanded_value(DType type, int stored) {
  if (type == DType::kIQ4_NL || type == DType::kIQ4_XS) return static_cast<std::uint8_t>(kIQ4Values[stored] + 128);
  if (type == DType::kMXFP4) return static_cast<std::uint8_t>(kMXFP4Values[stored] + 16);
  return static_cast<std::uint8_t>(stored);
}

// Value `v` of quad `q` of a run's block.
int get(const std::byte* run, int bits, int q, int v) {
  return static_cast<int>(run[(q % bits) * kLine + v]) >> (bits * (q / bits)) & ((1 << bits) - 1);
}

// The type's own scale bytes of one block, put in column `o`.
struct ScaleBytes {
  std::byte* halves;
  std::byte* groups;
  int o;
  void half(int which, F16Bytes value) const { std::memcpy(halves + (which * kPanelOuts + o) * 2, &value, 2); }
  void group(int g, int value) const { groups[g * kPanelOuts + o] = static_cast<std::byte>(value); }
};

template <class Block>
void pack_k4_scales(const Block& b, const ScaleBytes& to) {
  to.half(0, b.d);
  to.half(1, b.dmin);
  for (int g = 0; g < 8; ++g) {
    to.group(g, k4_scale(b.scales, g));
    to.group(8 + g, k4_min(b.scales, g));
  }
}

void pack_scales(DType type, const std::byte* block, const ScaleBytes& to) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1: to.half(1, load_block<BlockQ4_1>(block).m); [[fallthrough]];
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIQ4_NL: return to.half(0, load_block<BlockQ4_0>(block).d);
    case DType::kMXFP4: return to.group(0, load_block<BlockMXFP4>(block).e);
    case DType::kQ4_K: return pack_k4_scales(load_block<BlockQ4_K>(block), to);
    case DType::kQ5_K: return pack_k4_scales(load_block<BlockQ5_K>(block), to);
    case DType::kQ2_K: {
      const auto b = load_block<BlockQ2_K>(block);
      to.half(0, b.d);
      to.half(1, b.dmin);
      for (int g = 0; g < 16; ++g) to.group(g, b.scales[g]);
      return;
    }
    case DType::kQ3_K: {
      const auto b = load_block<BlockQ3_K>(block);
      to.half(0, b.d);
      for (int g = 0; g < 16; ++g) to.group(g, q3_scale(b.scales, g));
      return;
    }
    case DType::kQ6_K: {
      const auto b = load_block<BlockQ6_K>(block);
      to.half(0, b.d);
      for (int g = 0; g < 16; ++g) to.group(g, b.scales[g]);
      return;
    }
    case DType::kIQ4_XS: {
      const auto b = load_block<BlockIQ4_XS>(block);
      to.half(0, b.d);
      for (int g = 0; g < 8; ++g) to.group(g, iq4_xs_scale(b, g));
      return;
    }
    default: WEIR_CHECK(false, "{} is not a quantised type", dtype_name(type));
  }
}

float half_at(const std::byte* halves, int which, int o) {
  F16Bytes bytes;
  std::memcpy(&bytes, halves + (which * kPanelOuts + o) * 2, 2);
  return f16_to_float(bytes.bits());
}

// Scale and offset of group `g` of a block, as unpack_block computes them.
void expand_scale(PackedScales scales, const std::byte* halves, const std::byte* groups, int g, int count, int o, float& scale,
                  float& offset) {
  const auto byte = [&](int at) { return static_cast<int>(groups[at * kPanelOuts + o]); };
  offset = 0;
  switch (scales) {
    case PackedScales::kHalf: scale = half_at(halves, 0, o); return;
    case PackedScales::kHalfAndOffset:
      scale = half_at(halves, 0, o);
      offset = half_at(halves, 1, o);
      return;
    case PackedScales::kExponent: scale = mxfp4_scale(static_cast<std::uint8_t>(byte(0))); return;
    case PackedScales::kSuper: scale = half_at(halves, 0, o) * static_cast<float>(static_cast<std::int8_t>(byte(g))); return;
    case PackedScales::kSuperAndMin:
      scale = half_at(halves, 0, o) * static_cast<float>(byte(g));
      offset = -(half_at(halves, 1, o) * static_cast<float>(byte(count + g)));
      return;
    case PackedScales::kSuperNibbles:
      scale = half_at(halves, 0, o) * static_cast<float>(byte(g) & 15);
      offset = -(half_at(halves, 1, o) * static_cast<float>(byte(g) >> 4));
      return;
  }
}

}  // namespace

PackedTraits packed_traits(DType type) {
  switch (type) {
    case DType::kQ4_0:
    case DType::kIQ4_NL: return {4, 0, PackedScales::kHalf};
    case DType::kQ4_1: return {4, 0, PackedScales::kHalfAndOffset};
    case DType::kQ5_0: return {4, 1, PackedScales::kHalf};
    case DType::kQ5_1: return {4, 1, PackedScales::kHalfAndOffset};
    case DType::kQ8_0: return {8, 0, PackedScales::kHalf};
    case DType::kMXFP4: return {4, 0, PackedScales::kExponent};
    case DType::kQ2_K: return {2, 0, PackedScales::kSuperNibbles};
    case DType::kQ3_K: return {2, 1, PackedScales::kSuper};
    case DType::kQ4_K: return {4, 0, PackedScales::kSuperAndMin};
    case DType::kQ5_K: return {4, 1, PackedScales::kSuperAndMin};
    case DType::kQ6_K: return {4, 2, PackedScales::kSuper};
    case DType::kIQ4_XS: return {4, 0, PackedScales::kSuper};
    default: break;
  }
  WEIR_CHECK(false, "{} is not a quantised type", dtype_name(type));
}

PackedPanelShape packed_panel_shape(DType type, std::int64_t k) {
  const PackedTraits t = packed_traits(type);
  const std::int64_t lines = k / kBlockInputs * kLine, blocks = k / dtype_info(type).block_size;
  PackedPanelShape shape;
  shape.half_bytes = half_bytes(t.scales);
  shape.group_bytes = group_bytes(type, t.scales);
  shape.high = lines * t.low_bits;
  shape.scales = shape.high + lines * t.high_bits;
  shape.groups = shape.scales + padded(blocks * shape.half_bytes);
  shape.bytes = shape.groups + padded(blocks * shape.group_bytes);
  return shape;
}

std::int64_t packed_bytes(const TensorView& view) {
  const std::int64_t panels = (view.rows() + kPanelOuts - 1) / kPanelOuts;
  return panels * packed_panel_shape(view.type, view.cols()).bytes;
}

void pack_panel(const TensorView& view, std::int64_t first_out, std::byte* out) {
  const DType type = view.type;
  const PackedTraits t = packed_traits(type);
  const DTypeInfo& info = dtype_info(type);
  const PackedPanelShape shape = packed_panel_shape(type, view.cols());
  std::memset(out, 0, static_cast<std::size_t>(shape.bytes));
  const std::int64_t lines = info.block_size / kBlockInputs * kLine;  // of a block, at one bit a value
  for (int o = 0; o < kPanelOuts; ++o) {
    const std::byte* row = view.bytes.data() + std::min(first_out + o, view.rows() - 1) * view.bytes_per_row();
    for (std::int64_t b = 0; b < view.cols() / info.block_size; ++b) {
      const std::byte* block = row + b * info.block_bytes;
      pack_scales(type, block, {out + shape.scales + b * shape.half_bytes, out + shape.groups + b * shape.group_bytes, o});
      pack_block_lines(type, block, o, out + b * lines * t.low_bits, out + shape.high + b * lines * t.high_bits);
    }
  }
}

void reference::expand_panel(DType type, const std::byte* packed, std::int64_t k, std::int64_t k_begin, const Panel& panel) {
  const PackedTraits t = packed_traits(type);
  const PackedPanelShape shape = packed_panel_shape(type, k);
  for (std::int64_t i = 0; i < panel.k; i += 4) {
    const std::int64_t line_block = (k_begin + i) / kBlockInputs * kLine;
    const int quad = static_cast<int>((k_begin + i) % kBlockInputs / 4);
    for (int v = 0; v < kLine; ++v) {
      int value = get(packed + line_block * t.low_bits, t.low_bits, quad, v);
      if (t.high_bits) value |= get(packed + shape.high + line_block * t.high_bits, t.high_bits, quad, v) << t.low_bits;
      panel.q[i / 4 * kLine + v] = expanded_value(type, value);
    }
  }
  const int block = dtype_info(type).block_size, group = panel.traits.group, count = block / group;
  for (std::int64_t i = 0; i < panel.k; i += group) {
    const std::int64_t b = (k_begin + i) / block;
    const std::byte* halves = packed + shape.scales + b * shape.half_bytes;
    const std::byte* groups = packed + shape.groups + b * shape.group_bytes;
    for (int o = 0; o < kPanelOuts; ++o) {
      float offset = 0;
      expand_scale(t.scales, halves, groups, static_cast<int>((k_begin + i) % block / group), count, o,
                   panel.scale[i / group * kPanelOuts + o], offset);
      if (panel.traits.has_offset) panel.offset[i / group * kPanelOuts + o] = offset;
    }
  }
}

}  // namespace weir::kernels
