// SPDX-License-Identifier: Apache-2.0
// A block is quantised in three steps: fit a scale (and offset) to each group; write the block's header with those, rounded
// as its format demands; read the header back through unpack_block() and round each value to the nearest level of the
// scale that is really stored. So what differs between the types is only how headers and levels are packed.
#include "kernels/reference/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/reference/fit_scale.h"
#include "kernels/reference/half.h"
#include "kernels/reference/pack.h"
#include "kernels/reference/unpack.h"
#include "tensor/block_formats.h"

namespace weir::kernels {
namespace {

// The codebook of a type, as values of q - zero; empty: all integers.
std::span<const std::int8_t> codebook(DType type) {
  if (type == DType::kIQ4_NL || type == DType::kIQ4_XS) return kIQ4Values;
  if (type == DType::kMXFP4) return kMXFP4Values;
  return {};
}

std::array<GroupFit, 16> fit_groups(DType type, const float* x, int block_size) {
  const QuantTraits traits = quant_traits(type);
  std::array<GroupFit, 16> fits{};
  for (int g = 0; g < block_size / traits.group; ++g) {
    const std::span<const float> group(x + g * traits.group, static_cast<std::size_t>(traits.group));
    const auto levels = codebook(type);
    GroupFit& fit = fits[static_cast<std::size_t>(g)];
    if (!levels.empty()) {
      fit = fit_codebook(group, levels);
    } else if (traits.has_offset) {
      fit = fit_with_offset(group, traits.max, block_size == 256);  // K-types can only store offsets below zero
    } else {
      fit = fit_symmetric(group, traits.zero, type == DType::kQ8_0 ? 127 : traits.max - traits.zero);
    }
  }
  return fits;
}

// The level nearest to x of scale · (q - zero) + offset; for codebooks the index.
std::uint8_t nearest_level(DType type, const QuantTraits& traits, float x, float scale, float offset) {
  const float value = scale == 0 ? 0 : (x - offset) / scale;
  const auto levels = codebook(type);
  if (!levels.empty()) return static_cast<std::uint8_t>(nearest_entry(value, levels));
  const float q = std::nearbyint(std::clamp(value, -1000.0f, 1000.0f)) + static_cast<float>(traits.zero);
  const float lowest = type == DType::kQ8_0 ? 1 : 0;  // -128 has no positive twin
  return static_cast<std::uint8_t>(std::clamp(q, lowest, static_cast<float>(traits.max)));
}

void quantize_block(DType type, const float* x, std::byte* out) {
  const DTypeInfo& info = dtype_info(type);
  const QuantTraits traits = quant_traits(type);
  float finite[256];
  for (int i = 0; i < info.block_size; ++i) finite[i] = std::isfinite(x[i]) ? x[i] : 0.0f;
  std::memset(out, 0, static_cast<std::size_t>(info.block_bytes));
  pack_header(type, fit_groups(type, finite, info.block_size), out);
  UnpackedBlock stored;
  unpack_block(type, out, stored);
  std::uint8_t q[256];
  for (int i = 0; i < info.block_size; ++i) {
    const int g = i / traits.group;
    q[i] = nearest_level(type, traits, finite[i], stored.scale[g], stored.offset[g]);
  }
  pack_levels(type, q, out);
}

}  // namespace

void quantize_row(DType type, const float* x, std::int64_t elements, std::byte* out) {
  const DTypeInfo& info = dtype_info(type);
  WEIR_CHECK(elements % info.block_size == 0, "{} elements of {}", elements, info.name);
  if (type == DType::kF32) {
    if (elements > 0) std::memcpy(out, x, static_cast<std::size_t>(elements) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < elements; i += info.block_size, x += info.block_size, out += info.block_bytes) {
    if (info.quantized) {
      quantize_block(type, x, out);
      continue;
    }
    const std::uint16_t bits = type == DType::kF16 ? float_to_f16(*x) : float_to_bf16(*x);
    std::memcpy(out, &bits, sizeof bits);
  }
}

}  // namespace weir::kernels
