// SPDX-License-Identifier: Apache-2.0
// Products on tiles: 0 to 3 are sums, then come activations (kA tiles of 16 rows), then weights. Included inside an anonymous
// namespace, under the target of AVX-512.

constexpr int kFirstInput = 4;

template <class Tiles, int from, int count>
inline void load_inputs(const void* p, std::int64_t stride) {
  Tiles::template load<kFirstInput + from>(p, stride);
  if constexpr (from + 1 < count) load_inputs<Tiles, from + 1, count>(static_cast<const char*>(p) + kTileRows * stride, stride);
}

// int8: a group's sums are exact integers. They leave the tiles for AVX-512, which scales and adds them as avx512/panel.cc does.

constexpr int kGroupsTogether = 4;                 // groups whose sums are scaled in one pass over the results
constexpr int kTileSums = kTileRows * kPanelOuts;  // of one tile

inline TileConfig byte_config(int group) {
  TileConfig config;
  for (int t = 0; t < kFirstInput; ++t) config.set(t, kTileRows, kTileBytes);
  for (int t = 0; t < 2; ++t) config.set(kFirstInput + t, kTileRows, group);
  for (int t = 2; t < 4; ++t) config.set(kFirstInput + t, group / 4, kTileBytes);
  return config;
}

template <class Tiles, int a, int p>
inline void sums_of_tile(std::int32_t* sums) {
  constexpr int kSum = a * 2 + p;
  Tiles::template zero<kSum>();
  Tiles::template add_bytes<kSum, kFirstInput + a, kFirstInput + 2 + p>();
  Tiles::template store<kSum>(sums + kSum * kTileSums, kTileBytes);
}

// sums[a · 2 + p]: group `g`, 16 rows from `row` + 16 a on, panel p.
template <class Tiles, int kA, int kPanels, int kGroup>
inline void group_sums(const PanelTile& t, int row, int g, std::int32_t* sums) {
  const QuantizedRows& x = *t.x;
  load_inputs<Tiles, 0, kA>(x.q + (t.first_row + row) * x.k + t.k_begin + g * kGroup, x.k);
  Tiles::template load<kFirstInput + 2>(t.panels[0].q + g * kGroup * kPanelOuts, kTileBytes);
  if constexpr (kPanels == 2) Tiles::template load<kFirstInput + 3>(t.panels[1].q + g * kGroup * kPanelOuts, kTileBytes);
  sums_of_tile<Tiles, 0, 0>(sums);
  if constexpr (kPanels == 2) sums_of_tile<Tiles, 0, 1>(sums);
  if constexpr (kA == 2) sums_of_tile<Tiles, 1, 0>(sums);
  if constexpr (kA == 2 && kPanels == 2) sums_of_tile<Tiles, 1, 1>(sums);
}

// Adds groups [g, g + groups) of one tile to its 16 rows of results; the sums of a group follow those of the one before by `step`.
template <int kGroup, bool kOffset>
inline void scale_sums(const PanelTile& t, int p, int row, int g, int groups, const std::int32_t* sums, int step) {
  const QuantizedRows& x = *t.x;
  const Panel& panel = t.panels[p];
  const __m128i zero_bits = _mm_cvtsi32_si128(__builtin_ctz(static_cast<unsigned>(panel.traits.zero ? panel.traits.zero : 1)));
  for (int r = 0; r < kTileRows; ++r) {
    const std::int64_t at = (t.first_row + row + r) * x.k + t.k_begin + g * kGroup;
    const std::int32_t* minus_sum = (kGroup == 32 ? x.minus_sum32 : x.minus_sum16) + at / kGroup;
    const float* scaled_sum = (kGroup == 32 ? x.scaled_sum32 : x.scaled_sum16) + at / kGroup;
    float* acc = t.acc + p * t.acc_stride + (row + r) * kPanelOuts;
    __m512 total = _mm512_loadu_ps(acc);
    for (int i = 0; i < groups; ++i) {
      __m512i sum = _mm512_loadu_si512(sums + i * step + r * kPanelOuts);
      if constexpr (!kOffset) sum = _mm512_add_epi32(sum, _mm512_sll_epi32(_mm512_set1_epi32(minus_sum[i]), zero_bits));
      const __m512 row_scale = _mm512_set1_ps(x.scale[(at + i * kGroup) / 32]);
      const __m512 both = _mm512_mul_ps(_mm512_loadu_ps(panel.scale + (g + i) * kPanelOuts), row_scale);
      if constexpr (kOffset)
        total = _mm512_fmadd_ps(_mm512_loadu_ps(panel.offset + (g + i) * kPanelOuts), _mm512_set1_ps(scaled_sum[i]), total);
      total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), both, total);
    }
    _mm512_storeu_ps(acc, total);
  }
}

template <class Tiles, int kA, int kPanels, int kGroup, bool kOffset>
inline void rows_of_panels(const PanelTile& t, int row) {
  constexpr int kStep = 4 * kTileSums;
  alignas(64) std::int32_t sums[kGroupsTogether * kStep];
  const int groups = t.panels[0].k / kGroup;
  for (int g = 0; g < groups; g += kGroupsTogether) {
    const int count = groups - g < kGroupsTogether ? groups - g : kGroupsTogether;
    for (int i = 0; i < count; ++i) group_sums<Tiles, kA, kPanels, kGroup>(t, row, g + i, sums + i * kStep);
    for (int a = 0; a < kA; ++a)
      for (int p = 0; p < kPanels; ++p)
        scale_sums<kGroup, kOffset>(t, p, row + a * kTileRows, g, count, sums + (a * 2 + p) * kTileSums, kStep);
  }
}

// As many rows as fill tiles; returns how many.
template <class Tiles, int kPanels, int kGroup, bool kOffset>
inline int whole_tiles(const PanelTile& t) {
  const TileScope<Tiles> scope(byte_config(kGroup));
  int row = 0;
  for (; row + 2 * kTileRows <= t.rows; row += 2 * kTileRows) rows_of_panels<Tiles, 2, kPanels, kGroup, kOffset>(t, row);
  if (row + kTileRows <= t.rows) rows_of_panels<Tiles, 1, kPanels, kGroup, kOffset>(t, row), row += kTileRows;
  return row;
}

template <class Tiles, int kGroup, bool kOffset>
inline int whole_tiles(const PanelTile& t) {
  return t.count == 2 ? whole_tiles<Tiles, 2, kGroup, kOffset>(t) : whole_tiles<Tiles, 1, kGroup, kOffset>(t);
}

template <class Tiles>
void panel_tile(const PanelTile& t) {
  const QuantTraits& traits = t.panels[0].traits;
  int done = 0;
  if (t.rows >= kTileRows) {
    if (traits.group == 32) {
      done = traits.has_offset ? whole_tiles<Tiles, 32, true>(t) : whole_tiles<Tiles, 32, false>(t);
    } else {
      done = traits.has_offset ? whole_tiles<Tiles, 16, true>(t) : whole_tiles<Tiles, 16, false>(t);
    }
  }
  if (done == t.rows) return;
  PanelTile rest = t;
  rest.first_row += done;
  rest.rows -= done;
  rest.acc += done * kPanelOuts;
  avx512_table()->panel_tile(rest);
}

// bf16: any number of rows goes through the tiles, so that all meet the same order of sums: 32 inputs at a time, on top of the
// results so far.

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
