// SPDX-License-Identifier: Apache-2.0
// F32, F16 and BF16 weights: panels hold the file's values, products are close to exact, and a row is the same whatever is
// computed beside it and wherever its weights lie.
#include "kernels/plain_panels.h"

#include <cmath>

#include "kernels/cpu_backend_impl.h"
#include "kernels/reference/kernels.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

class PlainPanels : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(All, PlainPanels, ::testing::ValuesIn(runnable_tables()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(PlainPanels, AreLaidOutAsTheReferenceDoes) {
  for (const DType type : kPlain) {
    for (const WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut}) {
      for (const std::int64_t k : {1, 31, 32, 33, 64, 131}) {
        for (const int outs : {16, 5}) {
          const bool rows = layout == WeightLayout::kOutIn;
          const std::int64_t cols = rows ? k + 3 : outs + 3;  // a piece of a wider matrix
          const auto weights = random_weights(type, rows ? outs : k, cols, 3);
          const PlainSource source{type, layout, weights.data(), row_bytes(type, cols), outs, k};
          std::vector<std::byte> expected(static_cast<std::size_t>(plain_panel_bytes(type, k)), std::byte{0xAA}), panel = expected;
          reference::pack_plain(source, expected.data());
          table().plain.pack(source, panel.data());
          ASSERT_EQ(panel, expected) << dtype_name(type) << " " << k << " " << outs << " " << rows;
          Floats wide(static_cast<std::size_t>(plain_padded(k) * kPanelOuts)), row(static_cast<std::size_t>(cols));
          table().plain.widen(type, panel.data(), plain_padded(k), wide.data());
          if (!rows) continue;
          for (int o = 0; o < outs; ++o) {
            reference::widen(type, weights.data() + o * row_bytes(type, cols), cols, row.data());
            for (std::int64_t i = 0; i < plain_padded(k); ++i)
              ASSERT_EQ(wide[static_cast<std::size_t>(i * kPanelOuts + o)], i < k ? row[static_cast<std::size_t>(i)] : 0);
          }
        }
      }
    }
  }
}

struct Product {
  Product(DType t, std::int64_t rows_, std::int64_t out_, std::int64_t in_, unsigned seed)
      : type(t), rows(rows_), out(out_), in(in_), bytes(random_weights(t, out, in, seed)), x(random_floats(rows * in, seed + 1)) {
    weight.view = {type, {out, in}, bytes};
  }
  Floats run(Backend& backend, std::int64_t first = 0, std::int64_t count = -1) const {
    if (count < 0) count = rows;
    Floats y(static_cast<std::size_t>(count * out));
    const LinearJob job{{x.data() + first * in, count, in}, &weight, nullptr, {y.data(), count, out}, false};
    backend.linear({&job, 1});
    return y;
  }
  DType type;
  std::int64_t rows, out, in;
  std::vector<std::byte> bytes;
  Floats x;
  Weight weight;
};

// Each product and each sum rounds once: an error of at most (inputs of a block + blocks) roundings of the sum of magnitudes.
// Activations rounded to bf16 add 2^-8 of it.
TEST_P(PlainPanels, ProductsAreExactToTheirRounding) {
  for (const Activations activations : {Activations::kF32, Activations::kInt8}) {
    CpuBackend cpu(table(), activations, 2);
    for (const DType type : kPlain) {
      for (const std::int64_t in : {1, 40, 603, 1100}) {
        const Product p(type, 9, 83, in, 5);
        Floats wide(static_cast<std::size_t>(p.out * in));
        reference::widen(type, p.bytes.data(), p.out * in, wide.data());
        const Floats y = p.run(cpu);
        const bool rounded = activations == Activations::kInt8 && type == DType::kBF16 && table().plain.bf16_tile;
        const double unit = std::ldexp(std::min<double>(static_cast<double>(in), 512) + 4, -24) + (rounded ? std::ldexp(1.01, -8) : 0);
        for (std::int64_t r = 0; r < p.rows; ++r) {
          for (std::int64_t o = 0; o < p.out; ++o) {
            double exact = 0, size = 0;
            for (std::int64_t i = 0; i < in; ++i) {
              const double term =
                  static_cast<double>(p.x[static_cast<std::size_t>(r * in + i)]) * wide[static_cast<std::size_t>(o * in + i)];
              exact += term, size += std::abs(term);
            }
            ASSERT_NEAR(y[static_cast<std::size_t>(r * p.out + o)], exact, unit * size) << dtype_name(type) << " " << in;
          }
        }
      }
    }
  }
}

TEST_P(PlainPanels, ResultsDoNotDependOnRowsThreadsOrPacking) {
  constexpr std::int64_t kRows = 512, kOut = 83, kIn = 545;
  for (const Activations activations : {Activations::kF32, Activations::kInt8}) {
    for (const DType type : kPlain) {
      Product p(type, kRows, kOut, kIn, 2);
      CpuBackend one(table(), activations, 1);
      const Floats together = p.run(one);
      std::vector<std::byte> packed(static_cast<std::size_t>(one.packed_bytes(p.weight)) + 64);
      std::byte* aligned = packed.data() + (64 - reinterpret_cast<std::uintptr_t>(packed.data()) % 64) % 64;
      one.pack(p.weight, {aligned, packed.size() - 64});
      for (const bool use_packed : {false, true}) {
        p.weight.packed = use_packed ? aligned : nullptr;
        for (const int threads : {1, 2, 3}) {
          CpuBackend cpu(table(), activations, threads);
          EXPECT_TRUE(same_bits(p.run(cpu), together)) << dtype_name(type) << threads;
          for (const std::int64_t count : {1, 2, 7, 16, 64}) {
            const std::int64_t first = 300;
            const Floats some = p.run(cpu, first, count);
            EXPECT_TRUE(same_bits(some, {together.begin() + first * kOut, together.begin() + (first + count) * kOut}))
                << dtype_name(type) << " " << count << " rows, " << threads << " threads, packed " << use_packed;
          }
        }
      }
    }
  }
}

TEST_P(PlainPanels, TransposedWeightsGiveTheSameBits) {
  for (const DType type : kPlain) {
    constexpr std::int64_t kIn = 77, kOut = 50, kRows = 8;
    const Product p(type, kRows, kOut, kIn, 4);
    std::vector<std::byte> turned(p.bytes.size());
    const auto element = static_cast<std::size_t>(row_bytes(type, 1));
    for (std::size_t o = 0; o < kOut; ++o)
      for (std::size_t i = 0; i < kIn; ++i) std::memcpy(&turned[(i * kOut + o) * element], &p.bytes[(o * kIn + i) * element], element);
    Product t = p;
    t.bytes = turned;
    t.weight.view = {type, {kIn, kOut}, t.bytes};
    t.weight.layout = WeightLayout::kInOut;
    CpuBackend cpu(table(), Activations::kInt8, 2);
    EXPECT_TRUE(same_bits(t.run(cpu), p.run(cpu))) << dtype_name(type);
  }
}

}  // namespace
}  // namespace weir::kernels
