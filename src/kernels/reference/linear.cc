// SPDX-License-Identifier: Apache-2.0
// Products with int8 activations, plainly. They define the arithmetic that every table repeats bit by bit: exact integer sums
// per group, then one fused multiply-add per group in order of the groups.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/packed_panels.h"
#include "kernels/reference/dequantize.h"
#include "kernels/reference/half.h"
#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {
namespace {

// A panel's inputs [begin, begin + count) for one row, whose matching inputs start at x_begin: acc[o] continues.
void row_of_panel(const Panel& panel, int begin, int count, const QuantizedRows& x, std::int64_t row, std::int64_t x_begin, float* acc) {
  const int group = panel.traits.group;
  const std::int64_t x_at = row * x.k + x_begin;
  const std::int32_t* minus_sum = (group == 32 ? x.minus_sum32 : x.minus_sum16) + x_at / group;
  const float* scaled_sum = (group == 32 ? x.scaled_sum32 : x.scaled_sum16) + x_at / group;
  for (int g = 0; g < count / group; ++g) {
    const std::int8_t* q = x.q + x_at + g * group;
    const float scale = x.scale[(x_at + g * group) / 32];
    for (int o = 0; o < kPanelOuts; ++o) {
      std::int32_t dot = panel.traits.zero * minus_sum[g];
      for (int i = 0; i < group; ++i) {
        const int k = begin + g * group + i;
        dot += panel.q[(k / 4 * kPanelOuts + o) * 4 + k % 4] * q[i];
      }
      const int at = (begin / group + g) * kPanelOuts + o;
      if (panel.traits.has_offset) acc[o] = std::fma(panel.offset[at], scaled_sum[g], acc[o]);
      acc[o] = std::fma(static_cast<float>(dot), panel.scale[at] * scale, acc[o]);
    }
  }
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

void write_dots(const DotsTile& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    float* out = t.out + r * t.out_stride;
    for (int o = 0; o < t.outs; ++o) {
      const float dot = t.dots[o / kPanelOuts * t.dots_stride + r * kPanelOuts + o % kPanelOuts], value = t.bias ? dot + t.bias[o] : dot;
      out[o] = t.accumulate ? out[o] + value : value;
    }
  }
}

void quantize_row(const float* x, std::int64_t row, const QuantizedRows& out) {
  for (std::int64_t b = 0; b < out.inputs / 32; ++b) {
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
    out.minus_sum32[at] = -(sums[0] + sums[1]);
    out.scaled_sum32[at] = scale * static_cast<float>(sums[0] + sums[1]);
    for (int h = 0; h < 2; ++h) {
      out.minus_sum16[2 * at + h] = -sums[h];
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

void panel_tile(const PanelTile& t) {
  for (int p = 0; p < t.count; ++p) {
    for (int r = 0; r < t.rows; ++r)
      row_of_panel(t.panels[p], 0, t.panels[p].k, *t.x, t.first_row + r, t.k_begin, t.acc + p * t.acc_stride + r * kPanelOuts);
  }
}

void residual_tile(const ResidualTile& t) {
  for (const ResidualBlock& b : t.blocks) {
    for (int p = 0; p < t.count; ++p)
      row_of_panel(t.panels[p], static_cast<int>(b.block - t.first_block) * 32, 32, *t.residuals, b.entry, 0,
                   t.acc + p * t.acc_stride + b.row * kPanelOuts);
  }
}

namespace {

// One block of the type, of both panels of a stripe.
struct PackedBlock {
  explicit PackedBlock(const PackedPanels& from) : size(dtype_info(from.type).block_size), q(static_cast<std::size_t>(size) * kStripeOuts) {
    for (int p = 0; p < kPanelsTogether; ++p)
      panels[p] = {
          .traits = quant_traits(from.type), .k = size, .q = q.data() + p * size * kPanelOuts, .scale = scale[p], .offset = offset[p]};
  }
  void load(PackedPanels from, std::int64_t input) {  // the one that holds the input
    from.k_begin = input / size * size;
    from.count = kPanelsTogether;
    expand_panels(from, panels);
  }
  int size;
  std::vector<std::uint8_t> q;
  float scale[kPanelsTogether][16 * kPanelOuts], offset[kPanelsTogether][16 * kPanelOuts];
  Panel panels[kPanelsTogether];
};

}  // namespace

void packed_tile(const PackedTile& t) {
  PackedBlock block(t.panels);
  for (int i = 0; i < t.k; i += block.size) {
    block.load(t.panels, t.panels.k_begin + i);
    for (int p = 0; p < kPanelsTogether; ++p) {
      for (int r = 0; r < t.rows; ++r)
        row_of_panel(block.panels[p], 0, block.size, *t.x, t.first_row + r, t.panels.k_begin + i,
                     t.acc + p * t.acc_stride + r * kPanelOuts);
    }
  }
}

void packed_residuals(const PackedResiduals& t) {
  PackedBlock block(t.panels);
  for (const ResidualBlock& b : t.blocks) {
    const std::int64_t input = std::int64_t{b.block} * 32;
    block.load(t.panels, input);
    for (int p = 0; p < kPanelsTogether; ++p)
      row_of_panel(block.panels[p], static_cast<int>(input % block.size), 32, *t.residuals, b.entry, 0,
                   t.acc + p * t.acc_stride + b.row * kPanelOuts);
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
