// SPDX-License-Identifier: Apache-2.0
// Every table that this machine runs against the reference: the same bits where sums are integers, close elsewhere, and
// the same row whatever the number of rows in the tile.
#include "kernels/kernel_table.h"

#include <cmath>
#include <memory>

#include "kernels/packed_panels.h"
#include "kernels/reference/kernels.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

class Tables : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(All, Tables, ::testing::ValuesIn(runnable_tables()),
                         [](const auto& info) { return std::string(info.param->name); });

struct OwnedPanel {
  OwnedPanel(DType type, int k)
      : q(static_cast<std::size_t>(k) * kPanelOuts),
        scale(q.size() / 16),
        offset(q.size() / 16),
        panel{quant_traits(type), k, q.data(), scale.data(), offset.data()} {}
  std::vector<std::uint8_t> q;
  Floats scale, offset;
  Panel panel;
};

struct OwnedRows {
  OwnedRows(std::int64_t rows, std::int64_t inputs) : OwnedRows(rows, inputs, inputs) {}
  OwnedRows(std::int64_t rows, std::int64_t inputs, std::int64_t k) {
    const auto n = static_cast<std::size_t>(rows * k);
    q.resize(n), scale.resize(n / 32), sum32f.resize(n / 32), sum16f.resize(n / 16), minus_sum32.resize(n / 32), minus_sum16.resize(n / 16);
    view = {inputs, k, q.data(), scale.data(), sum32f.data(), sum16f.data(), minus_sum32.data(), minus_sum16.data()};
  }
  std::vector<std::int8_t> q;
  Floats scale, sum32f, sum16f;
  std::vector<std::int32_t> minus_sum32, minus_sum16;
  QuantizedRows view;
};

TEST_P(Tables, UnpackPanelsAsTheReferenceDoes) {
  for (const DType type : kQuantized) {
    const int block = dtype_info(type).block_size, cols = block * (block == 32 ? 21 : 3);
    for (const int outs : {16, 5, 1}) {
      const auto weights = random_weights(type, outs, cols, 7);
      for (const int begin : {0, block}) {
        OwnedPanel expected(type, cols - begin), panel(type, cols - begin);
        reference::unpack_panel(type, weights.data(), row_bytes(type, cols), outs, begin, expected.panel);
        table().unpack_panel(type, weights.data(), row_bytes(type, cols), outs, begin, panel.panel);
        ASSERT_EQ(panel.q, expected.q) << dtype_name(type) << outs;
        ASSERT_TRUE(same_bits(panel.scale, expected.scale)) << dtype_name(type);
        ASSERT_TRUE(same_bits(panel.offset, expected.offset)) << dtype_name(type);
      }
    }
  }
}

TEST_P(Tables, QuantizeRowsAsTheReferenceDoes) {
  constexpr std::int64_t kCols = 19 * 32;
  Floats x = random_floats(2 * kCols, 3);
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0, x[32 + i] = 1e-38f, x[64 + i] = i % 2 ? 0.5f : 127.0f;  // halves: ties to even
  OwnedRows expected(2, kCols), rows(2, kCols);
  for (const std::int64_t r : {0, 1}) {
    reference::quantize_row(x.data() + r * kCols, r, expected.view);
    table().quantize_row(x.data() + r * kCols, r, rows.view);
  }
  EXPECT_EQ(rows.q, expected.q);
  EXPECT_EQ(rows.minus_sum32, expected.minus_sum32);
  EXPECT_EQ(rows.minus_sum16, expected.minus_sum16);
  EXPECT_TRUE(same_bits(rows.scale, expected.scale));
  EXPECT_TRUE(same_bits(rows.sum32f, expected.sum32f));
  EXPECT_TRUE(same_bits(rows.sum16f, expected.sum16f));
}

// Two panels of one type, and quantised rows: the first row gives the largest sums, one value a row is an outlier.
struct PanelsAndRows {
  PanelsAndRows(DType type, int rows)
      : cols(dtype_info(type).block_size * 2), panels{{type, cols}, {type, cols}}, x(rows, cols, cols + 32) {
    bytes = random_weights(type, 2 * kPanelOuts, cols, 11);
    for (int p = 0; p < 2; ++p) {
      const std::byte* from = bytes.data() + p * kPanelOuts * row_bytes(type, cols);
      reference::unpack_panel(type, from, row_bytes(type, cols), kPanelOuts, 0, panels[p].panel);
      both[p] = panels[p].panel;
    }
    Floats values = random_floats(rows * cols, 5);
    for (std::size_t i = 0; i < static_cast<std::size_t>(cols); ++i) values[i] = 100;
    for (int r = 0; r < rows; ++r) reference::quantize_row(values.data() + r * cols, r, x.view);
  }
  int cols;
  std::vector<std::byte> bytes;
  OwnedPanel panels[2];
  Panel both[2];
  OwnedRows x;
};

TEST_P(Tables, MultiplyPanelsToTheSameBitsAsTheReference) {
  constexpr int kRows = 19;
  constexpr std::int64_t kStride = kRows * kPanelOuts;
  for (const DType type : kQuantized) {
    const PanelsAndRows in(type, kRows);
    const Floats start(2 * kStride, 0.25f);
    Floats expected = start;
    reference::panel_tile({in.both, 2, &in.x.view, 0, kRows, 0, expected.data(), kStride});
    for (const int count : {1, 2}) {
      for (int rows = 1; rows <= kRows; ++rows) {
        Floats acc = start;
        table().panel_tile({in.both, count, &in.x.view, 0, rows, 0, acc.data(), kStride});
        for (int p = 0; p < count; ++p) {
          const auto size = static_cast<std::size_t>(rows) * kPanelOuts * sizeof(float);
          ASSERT_EQ(std::memcmp(acc.data() + p * kStride, expected.data() + p * kStride, size), 0) << dtype_name(type) << rows;
        }
      }
      Floats alone = start;
      for (int r = 0; r < kRows; ++r) table().panel_tile({in.both, count, &in.x.view, r, 1, 0, alone.data() + r * kPanelOuts, kStride});
      ASSERT_EQ(std::memcmp(alone.data(), expected.data(), static_cast<std::size_t>(count * kStride) * sizeof(float)), 0);
    }
  }
}

struct alignas(64) AlignedLine {
  float floats[16];
};

struct PackedStripe {
  explicit PackedStripe(DType type, const PanelsAndRows& in)
      : shape(packed_shape(type, in.cols)), bytes(static_cast<std::size_t>(shape.bytes)), panels{type, &shape, bytes.data(), 2, 0} {
    pack_stripe({type, {kStripeOuts, in.cols}, in.bytes}, 0, bytes.data());
  }
  PackedShape shape;
  std::vector<std::byte> bytes;
  PackedPanels panels;
};

TEST_P(Tables, AddResidualBlocksToTheSameBitsAsTheReference) {
  constexpr int kRows = 5;
  constexpr std::int64_t kStride = kRows * kPanelOuts;
  for (const DType type : kQuantized) {
    const PanelsAndRows in(type, kRows);
    const PackedStripe stripe(type, in);
    OwnedRows residuals(4, 32);
    const Floats values = random_floats(4 * 32, 8, 0.01f);
    for (int e = 0; e < 4; ++e) reference::quantize_row(values.data() + e * 32, e, residuals.view);
    const ResidualBlock blocks[] = {{0, 1, 0}, {3, 0, 1}, {3, 1, 2}, {4, 1, 3}};
    Floats expected(2 * kStride, 0.25f), acc = expected, packed = expected;
    reference::residual_tile({in.both, 2, &residuals.view, 0, blocks, expected.data(), kStride});
    table().residual_tile({in.both, 2, &residuals.view, 0, blocks, acc.data(), kStride});
    EXPECT_TRUE(same_bits(acc, expected)) << dtype_name(type);
    table().packed_residuals({stripe.panels, &residuals.view, blocks, packed.data(), kStride});
    EXPECT_TRUE(same_bits(packed, expected)) << dtype_name(type);
    EXPECT_EQ(acc[kPanelOuts], 0.25f) << "a row without residuals changed";
    EXPECT_NE(acc[0], 0.25f);
  }
}

TEST_P(Tables, MultiplyRowsOfPackedPanelsToTheSameBitsAsTheirExpansion) {
  constexpr int kRows = 19;
  constexpr std::int64_t kStride = kRows * kPanelOuts;
  for (const DType type : kQuantized) {
    const PanelsAndRows in(type, kRows);
    const PackedStripe stripe(type, in);
    const Floats start(2 * kStride, 0.25f);
    Floats expected = start;
    reference::panel_tile({in.both, 2, &in.x.view, 0, kRows, 0, expected.data(), kStride});
    for (int rows = 1; rows <= kRows; ++rows) {  // in two pieces, if they are units: the first asks for the second
      const int unit = stripe.shape.unit_inputs, half = in.cols > unit ? in.cols / 2 : unit;
      Floats acc = start;
      PackedTile tile{stripe.panels, half, &in.x.view, 0, rows, acc.data(), kStride, stripe.shape.bytes / 2};
      table().packed_tile(tile);
      tile.panels.k_begin = half, tile.ahead_bytes = 0;
      if (half < in.cols) table().packed_tile(tile);
      for (std::int64_t p = 0; p < 2; ++p) {
        const auto size = static_cast<std::size_t>(rows) * kPanelOuts * sizeof(float);
        ASSERT_EQ(std::memcmp(acc.data() + p * kStride, expected.data() + p * kStride, size), 0) << dtype_name(type) << rows;
      }
    }
    Floats alone = start;
    for (int r = 0; r < kRows; ++r) table().packed_tile({stripe.panels, in.cols, &in.x.view, r, 1, alone.data() + r * kPanelOuts, kStride});
    ASSERT_TRUE(same_bits(alone, expected)) << dtype_name(type);
  }
}

TEST_P(Tables, RoundPanelsToTheNearestBf16) {
  if (!table().round_panel) return;  // no products in bf16 with quantised weights
  for (const DType type : kQuantized) {
    const int cols = dtype_info(type).block_size * 2;
    const auto weights = random_weights(type, kPanelOuts, cols, 13);
    OwnedPanel owned(type, cols);
    reference::unpack_panel(type, weights.data(), row_bytes(type, cols), kPanelOuts, 0, owned.panel);
    std::vector<std::uint16_t> rounded(static_cast<std::size_t>(cols) * kPanelOuts);
    table().round_panel(owned.panel, rounded.data());
    const Panel& panel = owned.panel;
    for (int k = 0; k < cols; ++k) {
      for (int o = 0; o < kPanelOuts; ++o) {
        const int group = k / panel.traits.group * kPanelOuts + o;
        const auto q = static_cast<float>(panel.q[(k / 4 * kPanelOuts + o) * 4 + k % 4] - panel.traits.zero);
        const float exact = std::fma(q, panel.scale[group], panel.traits.has_offset ? panel.offset[group] : 0.0f);
        // Signs of zeros apart: the product may be written as a difference.
        ASSERT_EQ(bf16_to_float(rounded[static_cast<std::size_t>((k / 2 * kPanelOuts + o) * 2 + k % 2)]),
                  bf16_to_float(float_to_bf16(exact)))
            << dtype_name(type) << " input " << k << " output " << o;
      }
    }
  }
}

TEST_P(Tables, RoundPackedStripesToTheSameBitsAsTheirPanels) {
  if (!table().round_packed) return;
  for (const DType type : kQuantized) {
    const PanelsAndRows in(type, 1);
    const PackedStripe stripe(type, in);
    const auto size = static_cast<std::size_t>(in.cols) * kPanelOuts;
    std::vector<std::uint16_t> expected(size), whole(2 * size), second(size);
    const auto from_begin = [&](int p) { return whole.data() + static_cast<std::size_t>(p) * size; };
    std::uint16_t* const both[2] = {from_begin(0), from_begin(1)};
    table().round_packed(stripe.panels, in.cols, both);
    // The later half, of one panel alone.
    const int unit = stripe.shape.unit_inputs, half = in.cols > unit ? in.cols / 2 : 0;
    PackedPanels later = stripe.panels;
    later.k_begin = half, later.count = 1;
    std::uint16_t* const one[2] = {second.data(), nullptr};
    table().round_packed(later, in.cols - half, one);
    for (int p = 0; p < 2; ++p) {
      table().round_panel(in.both[p], expected.data());
      ASSERT_EQ(std::memcmp(from_begin(p), expected.data(), size * sizeof(std::uint16_t)), 0) << dtype_name(type) << " panel " << p;
    }
    const std::size_t rest = size - static_cast<std::size_t>(half) * kPanelOuts;
    ASSERT_EQ(std::memcmp(second.data(), from_begin(0) + (size - rest), rest * sizeof(std::uint16_t)), 0) << dtype_name(type);
  }
}

TEST_P(Tables, WriteSumsToTheOutputWhicheverWayTheyGo) {
  constexpr std::int64_t kRows = 7, kStride = 64;  // floats of a row of the output: whole lines
  const Floats dots = random_floats(3 * kRows * kPanelOuts, 4), bias = random_floats(kStride, 5),
               before = random_floats(kRows * kStride, 6);
  for (const int outs : {48, 37}) {
    for (const int shift : {0, 1}) {  // at the start of a line, and not
      for (const int ways : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const bool with_bias = ways & 1, accumulate = ways & 2, past_caches = ways & 4;
        auto room = std::make_unique<AlignedLine[]>(kRows * kStride / 16 + 1);
        float* out = room[0].floats + shift;
        std::copy(before.begin(), before.end(), out);
        table().write_dots(
            {dots.data(), with_bias ? bias.data() : nullptr, accumulate, outs, kRows, out, kStride, kRows * kPanelOuts, past_caches});
        for (std::int64_t r = 0; r < kRows; ++r) {
          for (std::int64_t o = 0; o < kStride; ++o) {
            const float old = before[static_cast<std::size_t>(r * kStride + o)];
            float expected = old;
            if (o < outs) {
              expected = dots[static_cast<std::size_t>(o / kPanelOuts * kRows * kPanelOuts + r * kPanelOuts + o % kPanelOuts)];
              if (with_bias) expected += bias[static_cast<std::size_t>(o)];
              if (accumulate) expected = old + expected;
            }
            ASSERT_EQ(out[r * kStride + o], expected) << outs << " outputs, shift " << shift << ", ways " << ways << ", row " << r;
          }
        }
      }
    }
  }
}

TEST_P(Tables, WidenPanelsToTheFloatsOfTheReference) {
  for (const DType type : kQuantized) {
    const int cols = dtype_info(type).block_size * 2;
    const auto weights = random_weights(type, kPanelOuts, cols, 13);
    OwnedPanel panel(type, cols);
    reference::unpack_panel(type, weights.data(), row_bytes(type, cols), kPanelOuts, 0, panel.panel);
    Floats wide(static_cast<std::size_t>(cols) * kPanelOuts), plain(static_cast<std::size_t>(cols));
    table().widen_panel(panel.panel, wide.data());
    for (int o = 0; o < kPanelOuts; ++o) {
      reference::widen(type, weights.data() + o * row_bytes(type, cols), cols, plain.data());
      for (int k = 0; k < cols; ++k)
        ASSERT_EQ(wide[static_cast<std::size_t>(k * kPanelOuts + o)], plain[static_cast<std::size_t>(k)]) << dtype_name(type);
    }
    constexpr int kRows = 6;
    const Floats x = random_floats(kRows * cols, 3);
    Floats acc(kRows * 4 * kPanelOuts, 0.5f), alone = acc, expected = acc;
    table().wide_tile(wide.data(), cols, x.data(), cols, kRows, acc.data());
    reference::wide_tile(wide.data(), cols, x.data(), cols, kRows, expected.data());
    for (int r = 0; r < kRows; ++r) table().wide_tile(wide.data(), cols, x.data() + r * cols, cols, 1, alone.data() + r * 4 * kPanelOuts);
    EXPECT_TRUE(same_bits(acc, alone));
    EXPECT_LT(largest_difference(acc, expected), 1e-4f) << dtype_name(type);
  }
}

TEST_P(Tables, WidenAndNarrowAsTheReferenceDoes) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_K, DType::kQ8_0}) {
    const std::int64_t n = dtype_info(type).quantized ? 256 : 53;
    const auto bytes = random_weights(type, 1, n, 9);
    Floats expected(static_cast<std::size_t>(n)), values = expected;
    reference::widen(type, bytes.data(), n, expected.data());
    table().widen(type, bytes.data(), n, values.data());
    EXPECT_TRUE(same_bits(values, expected));
    if (dtype_info(type).quantized) continue;
    const Floats x = random_floats(n, 12, 1000.0f);
    std::vector<std::byte> narrow(bytes.size()), narrow_expected(bytes.size());
    reference::narrow(type, x.data(), n, narrow_expected.data());
    table().narrow(type, x.data(), n, narrow.data());
    EXPECT_EQ(narrow, narrow_expected);
  }
}

double exact_activation(Activation kind, double x) {
  switch (kind) {
    case Activation::kSilu: return x / (1 + std::exp(-x));
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kRelu: return std::max(x, 0.0);
    case Activation::kReluSquared: return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
  }
  return 0;
}

TEST_P(Tables, ActivateCloseToTheDefinition) {
  Floats x;
  for (float v = -30; v < 30; v += 0.0137f) x.push_back(v);
  for (const float v : {0.0f, -0.0f, 1e-20f, -1e-20f, 100.0f, -100.0f, 1e30f, -1e30f}) x.push_back(v);
  const auto n = static_cast<std::int64_t>(x.size());
  const Floats factor = random_floats(n, 1);
  for (const Activation kind : {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf, Activation::kRelu, Activation::kReluSquared,
                                Activation::kSigmoid}) {
    Floats out(x.size()), product(x.size());
    table().activate(kind, x.data(), nullptr, n, out.data());
    table().activate(kind, x.data(), factor.data(), n, product.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = exact_activation(kind, x[i]);
      if (std::abs(exact) < 1e38) {
        ASSERT_NEAR(out[i], exact, 4e-7 * std::abs(exact) + 3e-7 * std::min(1.0f, std::abs(x[i])))
            << static_cast<int>(kind) << " of " << x[i];
      }
      ASSERT_EQ(product[i], out[i] * factor[i]);
      float single = 0;
      table().activate(kind, &x[i], nullptr, 1, &single);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(single), std::bit_cast<std::uint32_t>(out[i])) << "depends on its place: " << x[i];
    }
  }
}

TEST_P(Tables, ClampSwigluAsGptOssDoes) {
  const Floats gate = random_floats(37, 1, 6), up = random_floats(37, 2, 6);
  Floats out(37);
  table().clamped_swiglu(gate.data(), up.data(), 1.702f, 7.0f, 37, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double g = std::min(gate[i], 7.0f), u = std::clamp(up[i], -7.0f, 7.0f);
    ASSERT_NEAR(out[i], g / (1 + std::exp(-1.702 * g)) * (u + 1), 2e-6 * (1 + std::abs(g * (u + 1))));
  }
}

TEST_P(Tables, SoftCapAndScaleRows) {
  for (const float spread : {0.01f, 1.0f, 200.0f}) {
    const Floats x = random_floats(45, 8, spread);
    Floats y = x;
    table().scale(0.5f, 30.0f, 45, y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = 30 * std::tanh(0.5 * x[i] / 30);
      ASSERT_NEAR(y[i], exact, 5e-7 * std::abs(exact));
    }
  }
}

TEST_P(Tables, NormaliseRows) {
  for (const std::int64_t n : {1, 16, 37, 576}) {
    Floats x = random_floats(n, 4), weight = random_floats(n, 5), bias = random_floats(n, 6);
    for (float& v : x) v += 100.0f;  // a mean far from zero
    double mean = 0, squares = 0, variance = 0;
    for (const float v : x) mean += v, squares += static_cast<double>(v) * v;
    mean /= static_cast<double>(n), squares /= static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    Floats rms(x.size()), layer(x.size());
    table().rms_norm({x.data(), weight.data(), nullptr, rms.data(), n, 1e-6f});
    table().layer_norm({x.data(), weight.data(), bias.data(), layer.data(), n, 1e-5f});
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(rms[i], x[i] / std::sqrt(squares + 1e-6f) * weight[i], 1e-6 * std::abs(weight[i]));
      ASSERT_NEAR(layer[i], (x[i] - mean) / std::sqrt(variance + 1e-5f) * weight[i] + bias[i], 2e-4);
    }
    Floats plain(x.size());
    table().rms_norm({x.data(), nullptr, nullptr, plain.data(), n, 1e-6f});
    table().rms_norm({x.data(), weight.data(), nullptr, x.data(), n, 1e-6f});  // in place
    EXPECT_TRUE(same_bits(x, rms));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(plain[i] * weight[i], rms[i]);
  }
}

TEST_P(Tables, RotateHalvesAndPairs) {
  constexpr std::int64_t kHalf = 21;
  const Floats x = random_floats(2 * kHalf, 1), angles = random_floats(kHalf, 2);
  Floats cosines(kHalf), sines(kHalf);
  for (std::size_t i = 0; i < kHalf; ++i) cosines[i] = std::cos(angles[i]), sines[i] = std::sin(angles[i]);
  Floats halves = x, pairs = x;
  table().rope(halves.data(), cosines.data(), sines.data(), kHalf, false);
  table().rope(pairs.data(), cosines.data(), sines.data(), kHalf, true);
  for (std::size_t i = 0; i < kHalf; ++i) {
    EXPECT_NEAR(halves[i], x[i] * cosines[i] - x[i + kHalf] * sines[i], 1e-6);
    EXPECT_NEAR(halves[i + kHalf], x[i] * sines[i] + x[i + kHalf] * cosines[i], 1e-6);
    EXPECT_NEAR(pairs[2 * i], x[2 * i] * cosines[i] - x[2 * i + 1] * sines[i], 1e-6);
    EXPECT_NEAR(pairs[2 * i + 1], x[2 * i] * sines[i] + x[2 * i + 1] * cosines[i], 1e-6);
  }
}

TEST_P(Tables, AddAndMultiplyRows) {
  const Floats x = random_floats(29, 1);
  Floats sum = random_floats(29, 2), product = sum;
  const Floats before = sum;
  table().add(x.data(), 0.5f, 29, sum.data());
  table().multiply(x.data(), 29, product.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(sum[i], before[i] + 0.5f * x[i], 1e-6);
    EXPECT_EQ(product[i], before[i] * x[i]);
  }
}

}  // namespace
}  // namespace weir::kernels
