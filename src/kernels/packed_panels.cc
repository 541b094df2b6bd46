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

bool has_min(PackedScales scales) { return scales == PackedScales::kSuperAndMin || scales == PackedScales::kSuperNibbles; }

// Bytes of a block's halves (32 or 256 inputs), and of the groups of 32 inputs, for a stripe.
std::int64_t half_bytes(PackedScales scales) {
  if (scales == PackedScales::kExponent) return 0;
  const bool two = scales == PackedScales::kHalfAndOffset || has_min(scales);
  return (two ? 2 : 1) * 2 * kStripeOuts;
}
std::int64_t group_bytes(DType type, PackedScales scales) {
  if (scales == PackedScales::kHalf || scales == PackedScales::kHalfAndOffset) return 0;
  const std::int64_t groups = kBlockInputs / quant_traits(type).group;
  return groups * kStripeOuts * (scales == PackedScales::kSuperAndMin ? 2 : 1);
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

// The type's own scale bytes of one block, put in column `o` of a stripe. `groups`: of the block's first 32 inputs.
struct ScaleBytes {
  std::byte* halves;
  std::byte* groups;
  std::int64_t group_step;
  int per_step;  // groups of 32 inputs
  int o;
  void half(int which, F16Bytes value) const { std::memcpy(halves + (which * kStripeOuts + o) * 2, &value, 2); }
  void group(int g, int value, bool minimum = false) const {
    groups[g / per_step * group_step + (g % per_step + (minimum ? per_step : 0)) * kStripeOuts + o] = static_cast<std::byte>(value);
  }
};

template <class Block>
void pack_k4_scales(const Block& b, const ScaleBytes& to) {
  to.half(0, b.d);
  to.half(1, b.dmin);
  for (int g = 0; g < 8; ++g) {
    to.group(g, k4_scale(b.scales, g));
    to.group(g, k4_min(b.scales, g), true);
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
  std::memcpy(&bytes, halves + (which * kStripeOuts + o) * 2, 2);
  return f16_to_float(bytes.bits());
}

// Scale and offset of group `g` of a block, as unpack_block computes them.
void expand_scale(PackedScales scales, const std::byte* halves, const std::byte* groups, int g, int count, int o, float& scale,
                  float& offset) {
  const auto byte = [&](int at) { return static_cast<int>(groups[at * kStripeOuts + o]); };
  offset = 0;
  switch (scales) {
    case PackedScales::kHalf: scale = half_at(halves, 0, o); return;
    case PackedScales::kHalfAndOffset:
      scale = half_at(halves, 0, o);
      offset = half_at(halves, 1, o);
      return;
    case PackedScales::kExponent: scale = mxfp4_scale(static_cast<std::uint8_t>(byte(g))); return;
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

PackedShape packed_shape(DType type, std::int64_t k) {
  const PackedTraits t = packed_traits(type);
  const std::int64_t block = dtype_info(type).block_size, blocks = t.scales == PackedScales::kExponent ? 2 : 1;  // whole lines
  PackedShape shape;
  shape.unit_inputs = static_cast<int>(block * blocks);
  const std::int64_t steps = shape.unit_inputs / kBlockInputs, groups = group_bytes(type, t.scales);
  const bool alternate = groups % kLine == 0;
  shape.groups = blocks * half_bytes(t.scales);
  shape.values = shape.groups + (alternate ? groups : steps * groups);
  shape.panel_step = std::int64_t{kLine} * (t.low_bits + t.high_bits);
  shape.block_step = kPanelsTogether * shape.panel_step + (alternate ? groups : 0);
  shape.group_step = alternate ? shape.block_step : groups;
  shape.unit_bytes = (alternate ? shape.groups : shape.values) + steps * shape.block_step;
  shape.bytes = (k + shape.unit_inputs - 1) / shape.unit_inputs * shape.unit_bytes;
  return shape;
}

std::int64_t packed_bytes(const TensorView& view) {
  return (view.rows() + kStripeOuts - 1) / kStripeOuts * packed_shape(view.type, view.cols()).bytes;
}

void pack_stripe(const TensorView& view, std::int64_t first_out, std::byte* out) {
  const DType type = view.type;
  const DTypeInfo& info = dtype_info(type);
  const PackedShape shape = packed_shape(type, view.cols());
  std::memset(out, 0, static_cast<std::size_t>(shape.bytes));
  for (int o = 0; o < kStripeOuts; ++o) {
    const std::byte* row = view.bytes.data() + std::min(first_out + o, view.rows() - 1) * view.bytes_per_row();
    for (std::int64_t k = 0; k < view.cols(); k += info.block_size) {
      const std::byte* block = row + k / info.block_size * info.block_bytes;
      std::byte* unit = out + k / shape.unit_inputs * shape.unit_bytes;
      const std::int64_t inside = k % shape.unit_inputs;
      pack_scales(type, block,
                  {unit, unit + shape.groups + inside / kBlockInputs * shape.group_step, shape.group_step,
                   kBlockInputs / quant_traits(type).group, o});
      pack_block_lines(type, block, o % kPanelOuts,
                       unit + shape.values + inside / kBlockInputs * shape.block_step + o / kPanelOuts * shape.panel_step,
                       shape.block_step);
    }
  }
}

namespace {

// 32 inputs of panel `p` from `values` on.
void expand_values(DType type, const std::byte* values, int from, const Panel& panel) {
  const PackedTraits t = packed_traits(type);
  for (int quad = 0; quad < kBlockInputs / 4; ++quad) {
    for (int v = 0; v < kLine; ++v) {
      int value = get(values, t.low_bits, quad, v);
      if (t.high_bits) value |= get(values + kLine * t.low_bits, t.high_bits, quad, v) << t.low_bits;
      panel.q[(from / 4 + quad) * kLine + v] = expanded_value(type, value);
    }
  }
}

}  // namespace

void reference::expand_panels(const PackedPanels& from, const Panel* panels) {
  const PackedTraits t = packed_traits(from.type);
  const PackedShape& shape = *from.shape;
  const int group = quant_traits(from.type).group, count = kBlockInputs / group;
  for (int p = 0; p < from.count; ++p) {
    const Panel& panel = panels[p];
    for (int i = 0; i < panel.k; i += kBlockInputs) {
      const std::int64_t at = from.k_begin + i, inside = at % shape.unit_inputs;
      const std::byte* unit = from.packed + at / shape.unit_inputs * shape.unit_bytes;
      expand_values(from.type, unit + shape.values + inside / kBlockInputs * shape.block_step + p * shape.panel_step, i, panel);
      const std::byte* groups = unit + shape.groups + inside / kBlockInputs * shape.group_step;
      for (int j = 0; j < kBlockInputs; j += group) {
        for (int o = 0; o < kPanelOuts; ++o) {
          float offset = 0;
          const int to = (i + j) / group * kPanelOuts + o;
          expand_scale(t.scales, unit, groups, j / group, count, p * kPanelOuts + o, panel.scale[to], offset);
          if (panel.traits.has_offset) panel.offset[to] = offset;
        }
      }
    }
  }
}

}  // namespace weir::kernels
