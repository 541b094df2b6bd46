// SPDX-License-Identifier: Apache-2.0
// Tiles do what the instructions are specified to do, and products on them have the bits of the avx512 table.
#include "kernels/amx/emulated_tiles.h"
#include "kernels/test_support.h"

namespace weir::kernels::amx {
namespace {

using namespace test;

// On tiles in memory, and on the processor's where it has them.
template <class Check>
void on_tiles(Check check) {
  check.template operator()<EmulatedTiles>();
#if defined(__x86_64__)
  if (cpu_features().amx) check.template operator()<HardwareTiles>();
#endif
}

TEST(Tiles, AddSignedTimesUnsignedBytes) {
  on_tiles([]<class Tiles>() {
    TileConfig config;
    config.set(0, 2, 8), config.set(1, 2, 4), config.set(2, 1, 8);  // c: 2 x 2, a: 2 x 4 bytes, b: 4 x 2 bytes
    const TileScope<Tiles> scope(config);
    const std::int8_t a[2][4] = {{-128, 127, 1, 0}, {1, -2, 3, -4}};
    const std::uint8_t b[8] = {255, 255, 7, 9, 1, 2, 3, 4};
    std::int32_t c[2][2] = {{10, 20}, {30, 40}};
    Tiles::template load<0>(c, 8), Tiles::template load<1>(a, 4), Tiles::template load<2>(b, 8);
    Tiles::template add_bytes<0, 1, 2>();
    Tiles::template store<0>(c, 8);
    EXPECT_EQ(c[0][0], 10 - 128 * 255 + 127 * 255 + 7);
    EXPECT_EQ(c[0][1], 20 - 128 + 254 + 3);
    EXPECT_EQ(c[1][0], 30 + 255 - 510 + 21 - 36);
    EXPECT_EQ(c[1][1], 40 + 1 - 4 + 9 - 16);
  });
}

TEST(Tiles, AddSignedTimesSignedBytes) {
  on_tiles([]<class Tiles>() {
    TileConfig config;
    config.set(0, 1, 8), config.set(1, 1, 4), config.set(2, 1, 8);  // c: 1 x 2, a: 1 x 4 bytes, b: 4 x 2 bytes
    const TileScope<Tiles> scope(config);
    const std::int8_t a[4] = {-128, 127, 1, 0}, b[8] = {-128, -128, 7, 9, 127, -2, 3, 4};
    std::int32_t c[2] = {10, 20};
    Tiles::template load<0>(c, 8), Tiles::template load<1>(a, 4), Tiles::template load<2>(b, 8);
    Tiles::template add_signed_bytes<0, 1, 2>();
    Tiles::template store<0>(c, 8);
    EXPECT_EQ(c[0], 10 + 128 * 128 - 127 * 128 + 7);
    EXPECT_EQ(c[1], 20 - 128 * 127 - 127 * 2 + 3);
  });
}

template <class Tiles>
float add_two_pairs(const std::uint16_t (&a)[4], const std::uint16_t (&b)[4], float c) {
  TileConfig config;
  config.set(0, 1, 4), config.set(1, 1, 8), config.set(2, 2, 4);
  const TileScope<Tiles> scope(config);
  Tiles::template load<0>(&c, 4), Tiles::template load<1>(a, 8), Tiles::template load<2>(b, 4);
  Tiles::template add_bf16<0, 1, 2>();
  Tiles::template store<0>(&c, 4);
  return c;
}

// First and second inputs of the pairs are summed apart: 2^24 + 1 is lost in one sum, but not beside it. Subnormals count as zeros.
TEST(Tiles, AddPairsOfBf16InTheirOrder) {
  on_tiles([]<class Tiles>() {
    const auto half = [](float x) { return float_to_bf16(x); };
    const std::uint16_t one = half(1), big = half(0x1p24f);
    EXPECT_EQ(add_two_pairs<Tiles>({big, one, one, one}, {one, one, one, one}, 0), 0x1p24f + 2);  // (2^24 + 1) + (1 + 1)
    EXPECT_EQ(add_two_pairs<Tiles>({one, big, one, half(-0x1p24f)}, {one, one, one, one}, 5), 7);
    EXPECT_EQ(add_two_pairs<Tiles>({1, 0, 0, 0}, {half(0x1p100f), 0, 0, 0}, 3), 3);
  });
}

struct Rows {
  Rows(std::int64_t rows, std::int64_t k) : k_(k), q(at(rows)), floats(4 * at(rows) / 16), ints(2 * at(rows) / 16) {
    const std::size_t step = at(rows) / 16;
    view.inputs = view.k = k;
    view.q = q.data();
    view.scale = floats.data(), view.scaled_sum32 = &floats[step], view.scaled_sum16 = &floats[2 * step];
    view.minus_sum32 = ints.data(), view.minus_sum16 = &ints[step];
    const Floats x = random_floats(rows * k, 4);
    for (std::int64_t r = 0; r < rows; ++r) reference_table().quantize_row(x.data() + r * k, r, view);
  }
  std::size_t at(std::int64_t rows) const { return static_cast<std::size_t>(rows * k_); }
  std::int64_t k_;
  std::vector<std::int8_t> q;
  Floats floats;
  std::vector<std::int32_t> ints;
  QuantizedRows view;
};

TEST(AmxProducts, OfBytesHaveTheBitsOfAvx512) {
  if (!cpu_features().avx512_bf16) GTEST_SKIP() << "needs AVX-512";
  std::vector<const KernelTable*> tables{amx_emulated_table()};
  if (cpu_features().amx) tables.push_back(amx_table());
  constexpr int kRows = 57, kFirst = 3;
  for (const DType type : kQuantized) {
    const int k = dtype_info(type).block_size == 32 ? 416 : 512, begin = k / 2 / 32 * 32;  // groups that do not come in fours too
    const auto weights = random_weights(type, 2 * kPanelOuts, k, 3);
    std::vector<std::uint8_t> q(static_cast<std::size_t>(k * 2 * kPanelOuts));
    Floats scale(q.size() / 16), offset(q.size() / 16);
    const auto step = static_cast<std::size_t>(k * kPanelOuts);
    const Panel panels[2] = {{quant_traits(type), k, q.data(), scale.data(), offset.data()},
                             {quant_traits(type), k, &q[step], &scale[step / 16], &offset[step / 16]}};
    for (int p = 0; p < 2; ++p) {
      reference_table().unpack_panel(type, weights.data() + p * kPanelOuts * row_bytes(type, k), row_bytes(type, k), kPanelOuts, 0,
                                     panels[p]);
    }
    const Rows x(kRows + kFirst, k + begin);
    for (const int count : {1, 2}) {
      for (const int rows : {7, 8, 15, 16, 17, 31, 32, 48, kRows}) {
        Floats expected(2 * kRows * kPanelOuts, 0.25f);
        PanelTile tile{panels, count, &x.view, kFirst, rows, begin, expected.data(), kRows * kPanelOuts};
        avx512_table()->panel_tile(tile);
        for (const KernelTable* table : tables) {
          Floats acc(expected.size(), 0.25f);
          tile.acc = acc.data();
          table->panel_tile(tile);
          EXPECT_TRUE(same_bits(acc, expected)) << table->name << " " << dtype_name(type) << " " << rows << " rows, panels " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::kernels::amx
