// SPDX-License-Identifier: Apache-2.0
// Panels of F32, F16 and BF16 weights, plainly: how they are laid out, and products in the order that all tables share.
#include <algorithm>
#include <cstring>

#include "kernels/reference/half.h"
#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {
namespace {

std::int64_t element_bytes(DType type) { return type == DType::kF32 ? 4 : 2; }

// Where in a panel the weight of input `k` and output `o` is.
std::int64_t place(DType type, std::int64_t k, int o) {
  if (type == DType::kBF16) return (k / 2 * kPanelOuts + o) * 4 + k % 2 * 2;
  return (k * kPanelOuts + o) * element_bytes(type);
}

float weight_at(DType type, const std::byte* panel, std::int64_t k, int o) {
  const std::byte* at = panel + place(type, k, o);
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

}  // namespace

void pack_plain(const PlainSource& s, std::int64_t k_begin, std::byte* panel) {
  const std::int64_t element = element_bytes(s.type);
  for (std::int64_t k = k_begin; k < plain_padded(s.k); ++k) {
    for (int o = 0; o < kPanelOuts; ++o) {
      std::byte* to = panel + place(s.type, k, o);
      const std::int64_t out = std::min(o, s.outs - 1);
      const std::int64_t from = s.layout == WeightLayout::kOutIn ? out * s.stride + k * element : k * s.stride + out * element;
      if (k < s.k) {
        std::memcpy(to, s.w + from, static_cast<std::size_t>(element));
      } else {
        std::memset(to, 0, static_cast<std::size_t>(element));
      }
    }
  }
}

void pack_plain(const PlainSource& s, std::byte* panel) { pack_plain(s, 0, panel); }

void widen_plain(DType type, const std::byte* panel, std::int64_t k, float* wide) {
  for (std::int64_t i = 0; i < k; ++i)
    for (int o = 0; o < kPanelOuts; ++o) wide[i * kPanelOuts + o] = weight_at(type, panel, i, o);
}

void plain_tile(const PlainTile& t) {
  for (int p = 0; p < t.block.panels; ++p) {
    const std::byte* w = t.block.w + p * t.block.stride;
    for (int r = 0; r < t.rows; ++r) {
      const float* x = t.x + r * t.x_stride;
      float sums[kPanelOuts] = {};
      for (std::int64_t k = 0; k < t.block.k; ++k)
        for (int o = 0; o < kPanelOuts; ++o) sums[o] += x[k] * weight_at(t.block.type, w, k, o);
      for (int o = 0; o < kPanelOuts; ++o) t.acc[p * t.acc_stride + r * kPanelOuts + o] += sums[o];
    }
  }
}

}  // namespace weir::kernels::reference
