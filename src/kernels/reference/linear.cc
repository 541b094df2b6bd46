// SPDX-License-Identifier: Apache-2.0
// Products, plainly. The float ones sum in 16 lanes; the int8 ones define the arithmetic that every table repeats bit by
// bit: exact integer sums per group, then one fused multiply-add per group in order of the groups.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/reference/dequantize.h"
#include "kernels/reference/half.h"
#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {
namespace {

constexpr int kLanes = 16;

float load(DType type, const std::byte* at) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

float sum_lanes(const float* lanes) {
  float sums[kLanes];
  std::copy_n(lanes, kLanes, sums);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  return sums[0];
}

float dot_f32(const float* x, const std::byte* w, std::int64_t k) {
  float lanes[kLanes] = {};
  float values[kLanes];
  std::int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    std::memcpy(values, w + i * 4, sizeof values);
    for (int l = 0; l < kLanes; ++l) lanes[l] += x[i + l] * values[l];
  }
  for (; i < k; ++i) lanes[i % kLanes] += x[i] * load(DType::kF32, w + i * 4);
  return sum_lanes(lanes);
}

float dot_half(DType type, const float* x, const std::byte* w, std::int64_t k) {
  float lanes[kLanes] = {};
  for (std::int64_t i = 0; i < k; ++i) lanes[i % kLanes] += x[i] * load(type, w + i * 2);
  return sum_lanes(lanes);
}

}  // namespace

void widen(DType type, const std::byte* row, std::int64_t n, float* out) { dequantize_row(type, row, n, out); }

void narrow(DType type, const float* x, std::int64_t n, std::byte* out) {
  if (type == DType::kF32) {
    if (n > 0) std::memcpy(out, x, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  WEIR_CHECK(type == DType::kF16 || type == DType::kBF16, "narrow to {}", dtype_name(type));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t bits = type == DType::kF16 ? float_to_f16(x[i]) : float_to_bf16(x[i]);
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

void float_tile(const FloatTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    for (int o = 0; o < t.outs; ++o) {
      const float* x = t.x + r * t.x_stride;
      const std::byte* w = t.w + o * t.w_stride;
      t.dots[r * kPanelOuts + o] = t.type == DType::kF32 ? dot_f32(x, w, t.k) : dot_half(t.type, x, w, t.k);
    }
  }
}

void column_tile(const ColumnTile& t) {
  const int element = t.type == DType::kF32 ? 4 : 2;
  std::fill_n(t.dots, static_cast<std::size_t>(t.rows) * kPanelOuts, 0.0f);
  for (std::int64_t k = 0; k < t.k; ++k) {
    const std::byte* w = t.w + k * t.w_stride;
    float values[kPanelOuts];
    for (int o = 0; o < t.outs; ++o) values[o] = load(t.type, w + o * element);
    for (int r = 0; r < t.rows; ++r) {
      const float x = t.x[r * t.x_stride + k];
      for (int o = 0; o < t.outs; ++o) t.dots[r * kPanelOuts + o] += x * values[o];
    }
  }
}

void write_dots(const DotsTile& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    float* out = t.out + r * t.out_stride;
    for (int o = 0; o < t.outs; ++o) {
      const float dot = t.dots[r * kPanelOuts + o], value = t.bias ? dot + t.bias[o] : dot;
      out[o] = t.accumulate ? out[o] + value : value;
    }
  }
}

void quantize_row(const float* x, std::int64_t row, const QuantizedRows& out) {
  for (std::int64_t b = 0; b < out.k / 32; ++b) {
    const float* from = x + b * 32;
    float largest = 0;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(from[i]));
    const bool flat = largest < kSmallestBlock;
    const float scale = flat ? 0.0f : largest / 127.0f;
    const float inverse = flat ? 0.0f : 127.0f / largest;
    std::int32_t sums[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      const float rounded = std::nearbyint(from[i] * inverse);
      const int q = static_cast<int>(rounded > -127.0f ? std::min(rounded, 127.0f) : -127.0f);  // NaN too
      out.q[row * out.k + b * 32 + i] = static_cast<std::int8_t>(q);
      sums[i / 16] += q;
    }
    const std::int64_t at = row * (out.k / 32) + b;
    out.scale[at] = scale;
    out.sum32[at] = sums[0] + sums[1];
    out.scaled_sum32[at] = scale * static_cast<float>(sums[0] + sums[1]);
    for (int h = 0; h < 2; ++h) {
      out.sum16[2 * at + h] = sums[h];
      out.scaled_sum16[2 * at + h] = scale * static_cast<float>(sums[h]);
    }
  }
}

void unpack_panel(DType type, const std::byte* w, std::int64_t w_stride, int outs, std::int64_t k_begin, const Panel& panel) {
  const DTypeInfo& info = dtype_info(type);
  const int groups = info.block_size / panel.traits.group;
  UnpackedBlock block;
  for (int o = 0; o < kPanelOuts; ++o) {
    const std::byte* row = w + std::min(o, outs - 1) * w_stride + row_bytes(type, k_begin);
    for (int k = 0; k < panel.k; k += info.block_size) {
      unpack_block(type, row + row_bytes(type, k), block);
      for (int i = 0; i < info.block_size; ++i) panel.q[((k + i) / 4 * kPanelOuts + o) * 4 + (k + i) % 4] = block.q[i];
      for (int g = 0; g < groups; ++g) {
        const int at = (k / panel.traits.group + g) * kPanelOuts + o;
        panel.scale[at] = block.scale[g];
        if (panel.traits.has_offset) panel.offset[at] = block.offset[g];
      }
    }
  }
}

void panel_tile(const Panel& panel, const QuantizedRows& x, std::int64_t first_row, int rows, std::int64_t k_begin, float* acc) {
  const int group = panel.traits.group;
  for (int r = 0; r < rows; ++r) {
    const std::int64_t row = first_row + r;
    const std::int8_t* q = x.q + row * x.k + k_begin;
    const float* scale = x.scale + (row * x.k + k_begin) / 32;
    const std::int32_t* sum = (group == 32 ? x.sum32 : x.sum16) + (row * x.k + k_begin) / group;
    const float* scaled_sum = (group == 32 ? x.scaled_sum32 : x.scaled_sum16) + (row * x.k + k_begin) / group;
    for (int g = 0; g < panel.k / group; ++g) {
      for (int o = 0; o < kPanelOuts; ++o) {
        std::int32_t dot = -panel.traits.zero * sum[g];
        for (int i = g * group; i < (g + 1) * group; ++i) dot += panel.q[(i / 4 * kPanelOuts + o) * 4 + i % 4] * q[i];
        float& a = acc[r * kPanelOuts + o];
        const int at = g * kPanelOuts + o;
        if (panel.traits.has_offset) a = std::fma(panel.offset[at], scaled_sum[g], a);
        a = std::fma(static_cast<float>(dot), panel.scale[at] * scale[g * group / 32], a);
      }
    }
  }
}

void widen_panel(const Panel& panel, float* wide) {
  for (int k = 0; k < panel.k; ++k) {
    for (int o = 0; o < kPanelOuts; ++o) {
      const int group = k / panel.traits.group * kPanelOuts + o;
      const float product = panel.scale[group] * static_cast<float>(panel.q[(k / 4 * kPanelOuts + o) * 4 + k % 4] - panel.traits.zero);
      wide[k * kPanelOuts + o] = panel.traits.has_offset ? product + panel.offset[group] : product;
    }
  }
}

void wide_tile(const float* wide, std::int64_t k, const float* x, std::int64_t x_stride, int rows, float* acc) {
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < k; ++i) {
      float* sums = acc + (r * 4 + i % 4) * kPanelOuts;
      for (int o = 0; o < kPanelOuts; ++o) sums[o] += x[r * x_stride + i] * wide[i * kPanelOuts + o];
    }
  }
}

}  // namespace weir::kernels::reference
