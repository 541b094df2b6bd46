// SPDX-License-Identifier: Apache-2.0
// Products of bf16 on tiles: 0 to 3 are sums, then come activations (kA tiles of 16 rows), then weights. Any number of rows goes
// through the tiles, so that all meet the same order of sums: 32 inputs at a time, on top of the results so far. Included inside an
// anonymous namespace, under the target of AVX-512.

constexpr int kFirstInput = 4;
// Of 32 inputs, between a sum's load and its store: two panels take 16 KiB then, a part of the first-level cache.
constexpr std::int64_t kPieceSteps = 8;

inline TileConfig bf16_config(int rows, int tiles_a) {
  TileConfig config;
  for (int t = 0; t < kFirstInput + tiles_a; ++t) config.set(t, rows, kTileBytes);
  for (int t = kFirstInput + tiles_a; t < kTiles; ++t) config.set(t, kTileRows, kTileBytes);
  return config;
}

// Calls f.template operator()<a, p>() for each tile of sums.
template <int kA, int kPanels, class Function>
WEIR_INLINE void for_sums(Function f) {
  for_each_index<kA * kPanels>([&]<int at> { f.template operator()<at / kPanels, at % kPanels>(); });
}

// The sums of rows `a` with panels from p on; the weights lie in their tiles when a > 0.
template <class Tiles, int kA, int kPanels, int a, int p = 0>
inline void add_products_of(const std::byte* w, std::int64_t stride) {
  if constexpr (p < kPanels) {
    constexpr int kWeights = kFirstInput + kA + p % (kTiles - kFirstInput - kA);
    if constexpr (a == 0) Tiles::template load<kWeights>(w + p * stride, kTileBytes);
    Tiles::template add_bf16<a * kPanels + p, kFirstInput + a, kWeights>();
    add_products_of<Tiles, kA, kPanels, a, p + 1>(w, stride);
  }
}

// Rows from `row` on times panels from `panel` on, inputs [begin, end) of the block. Loads and products take turns: a tenth faster than
// all loads before all products.
template <class Tiles, int kA, int kPanels>
inline void bf16_piece(const Bf16Tile& t, int row, int panel, std::int64_t begin, std::int64_t end) {
  const auto acc = [&](int a, int p) { return t.acc + (panel + p) * t.acc_stride + (row + a * kTileRows) * kPanelOuts; };
  const std::uint16_t* x = t.x + row * t.x_stride + begin;
  const std::byte* w = t.block.w + panel * t.block.stride + begin * kPanelOuts * 2;
  Ahead ahead = ahead_of(t.block, t.rows, row, kA * kTileRows, panel, kPanels);
  ahead.at += begin / 2 * ahead.step;
  for_sums<kA, kPanels>([&]<int a, int p> { Tiles::template load<a * kPanels + p>(acc(a, p), kTileBytes); });
  for (std::int64_t k = begin; k < end; k += 32, x += 32, w += kTileRows * kTileBytes) {
    Tiles::template load<kFirstInput>(x, t.x_stride * 2);
    add_products_of<Tiles, kA, kPanels, 0>(w, t.block.stride);
    if constexpr (kA == 2) {
      Tiles::template load<kFirstInput + 1>(x + kTileRows * t.x_stride, t.x_stride * 2);
      add_products_of<Tiles, kA, kPanels, 1>(w, t.block.stride);
    }
    for (int i = 0; i < kTileRows && ahead.panels > 0; ++i) ask(ahead);
  }
  for_sums<kA, kPanels>([&]<int a, int p> { Tiles::template store<a * kPanels + p>(acc(a, p), kTileBytes); });
}

// Rows [row_begin, row_end), kA tiles of them at a time, all of which fill the configured tiles. A few panels of a piece stay in the
// first-level cache while all rows pass by.
template <class Tiles, int kA>
inline void bf16_rows(const Bf16Tile& t, int row_begin, int row_end, int rows) {
  constexpr int kTogether = 4 / kA;
  const TileScope<Tiles> scope(bf16_config(rows, kA));
  const std::int64_t steps = t.block.k / 32, pieces = (steps + kPieceSteps - 1) / kPieceSteps;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::int64_t begin = steps * piece / pieces * 32, end = steps * (piece + 1) / pieces * 32;
    for (int panel = 0; panel < t.block.panels; panel += kTogether) {
      for (int row = row_begin; row < row_end; row += kA * kTileRows) {
        if (panel + kTogether <= t.block.panels) {
          bf16_piece<Tiles, kA, kTogether>(t, row, panel, begin, end);
        } else {
          for (int p = panel; p < t.block.panels; ++p) bf16_piece<Tiles, kA, 1>(t, row, p, begin, end);
        }
      }
    }
  }
}

template <class Tiles>
void bf16_tile(const Bf16Tile& t) {
  const int pairs = t.rows / (2 * kTileRows) * (2 * kTileRows), whole = t.rows / kTileRows * kTileRows;
  if (pairs > 0) bf16_rows<Tiles, 2>(t, 0, pairs, kTileRows);
  if (whole > pairs) bf16_rows<Tiles, 1>(t, pairs, whole, kTileRows);
  if (t.rows > whole) bf16_rows<Tiles, 1>(t, whole, t.rows, t.rows - whole);
}
