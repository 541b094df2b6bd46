// SPDX-License-Identifier: Apache-2.0
// Products of bf16 on tiles: 0 to 3 are sums, then come activations (kA tiles of 16 rows), then weights. Any number of rows goes
// through the tiles, so that all meet the same order of sums: 32 inputs at a time, on top of the results so far. Included inside an
// anonymous namespace, under the target of AVX-512.

constexpr int kFirstInput = 4;

template <class Tiles, int from, int count>
inline void load_inputs(const void* p, std::int64_t stride) {
  Tiles::template load<kFirstInput + from>(p, stride);
  if constexpr (from + 1 < count) load_inputs<Tiles, from + 1, count>(static_cast<const char*>(p) + kTileRows * stride, stride);
}

inline TileConfig bf16_config(int rows, int tiles_a) {
  TileConfig config;
  for (int t = 0; t < kFirstInput + tiles_a; ++t) config.set(t, rows, kTileBytes);
  for (int t = kFirstInput + tiles_a; t < kTiles; ++t) config.set(t, kTileRows, kTileBytes);
  return config;
}

// Calls f.template operator()<a, p>() for each tile of sums.
template <int kA, int kPanels, int at = 0, class Function>
inline void for_sums(Function f) {
  if constexpr (at < kA * kPanels) {
    f.template operator()<at / kPanels, at % kPanels>();
    for_sums<kA, kPanels, at + 1>(f);
  }
}

template <class Tiles, int kA, int kPanels, int p = 0>
inline void multiply_panels(const std::byte* w, std::int64_t stride) {
  if constexpr (p < kPanels) {
    constexpr int kWeights = kFirstInput + kA + p % (kTiles - kFirstInput - kA);
    Tiles::template load<kWeights>(w + p * stride, kTileBytes);
    Tiles::template add_bf16<p, kFirstInput, kWeights>();
    if constexpr (kA == 2) Tiles::template add_bf16<kPanels + p, kFirstInput + 1, kWeights>();
    multiply_panels<Tiles, kA, kPanels, p + 1>(w, stride);
  }
}

template <class Tiles, int kA, int kPanels>
inline void bf16_block(const Bf16Tile& t, int row, int panel) {
  const auto acc = [&](int a, int p) { return t.acc + (panel + p) * t.acc_stride + (row + a * kTileRows) * kPanelOuts; };
  const std::uint16_t* x = t.x + row * t.x_stride;
  const std::byte* w = t.block.w + panel * t.block.stride;
  Ahead ahead = ahead_of(t.block, t.rows, row, kA * kTileRows, panel, kPanels);
  for_sums<kA, kPanels>([&]<int a, int p> { Tiles::template load<a * kPanels + p>(acc(a, p), kTileBytes); });
  for (std::int64_t k = 0; k < t.block.k; k += 32, x += 32, w += kTileRows * kTileBytes) {
    load_inputs<Tiles, 0, kA>(x, t.x_stride * 2);
    multiply_panels<Tiles, kA, kPanels>(w, t.block.stride);
    for (int i = 0; i < kTileRows; ++i) ask(ahead);
  }
  for_sums<kA, kPanels>([&]<int a, int p> { Tiles::template store<a * kPanels + p>(acc(a, p), kTileBytes); });
}

template <class Tiles, int kA>
inline void bf16_panels(const Bf16Tile& t, int row) {
  constexpr int kTogether = 4 / kA;
  int panel = 0;
  for (; panel + kTogether <= t.block.panels; panel += kTogether) bf16_block<Tiles, kA, kTogether>(t, row, panel);
  for (; panel < t.block.panels; ++panel) bf16_block<Tiles, kA, 1>(t, row, panel);
}

template <class Tiles>
void bf16_tile(const Bf16Tile& t) {
  int row = 0;
  if (t.rows >= 2 * kTileRows) {
    const TileScope<Tiles> scope(bf16_config(kTileRows, 2));
    for (; row + 2 * kTileRows <= t.rows; row += 2 * kTileRows) bf16_panels<Tiles, 2>(t, row);
  }
  for (int count; row < t.rows; row += count) {
    count = t.rows - row < kTileRows ? t.rows - row : kTileRows;
    const TileScope<Tiles> scope(bf16_config(count, 1));
    bf16_panels<Tiles, 1>(t, row);
  }
}
