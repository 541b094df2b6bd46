// SPDX-License-Identifier: Apache-2.0
// Products of int8 on tiles. A group's sums are exact integers; they leave the tiles for AVX-512, which scales and adds them as
// avx512/panel.cc does. While it scales the sums of some groups, the tiles multiply the next ones. Included inside an anonymous
// namespace, under the target of AVX-512.

constexpr int kGroup = 32;                         // weights that share a scale; with 16, AVX-512 alone is faster
constexpr int kGroupsTogether = 4;                 // groups of a step: their sums have a tile each
constexpr int kTileSums = kTileRows * kPanelOuts;  // of one tile
constexpr int kQuarters = kGroupsTogether;         // of a step's rows: between them, the tiles get a group each
constexpr int kFewestTileRows = 8;                 // fewer are faster without tiles

// Tiles 0 to 3 are the sums of a step's groups, then come activations and weights, two of each by turns.
inline TileConfig byte_config(int rows) {
  TileConfig config;
  for (int t = 0; t < 4; ++t) config.set(t, rows, kTileBytes);
  for (int t = 4; t < 6; ++t) config.set(t, rows, kGroup);
  for (int t = 6; t < 8; ++t) config.set(t, kGroup / 4, kTileBytes);
  return config;
}

// What will be expanded next, spread evenly over the quarters of all steps.
inline LinesAhead lines_ahead(const PanelTile& t, int groups) {
  const std::int64_t row_tiles = (t.rows + kTileRows - 1) / kTileRows, steps = (groups + kGroupsTogether - 1) / kGroupsTogether;
  const std::int64_t times = row_tiles * steps * t.count * kGroupsTogether, lines = (t.ahead_bytes + 63) / 64;
  return {.row = t.ahead, .rows_left = lines > 0 ? 1 : 0, .lines = lines, .each = (lines + times - 1) / times};
}

// What all steps of a tile read, with the weights as signed bytes where they have a zero point.
struct ByteTile {
  const PanelTile* t;
  const std::uint8_t* q[kPanelsTogether];
  int groups;
};

// Some groups of a panel for the rows that fill a tile.
struct Step {
  int row;  // of the products' rows
  int panel;
  int group;  // the first: a multiple of kGroupsTogether
  int count;  // of groups, up to kGroupsTogether; 0: there is nothing left to do
  const std::int8_t* x;
  const std::uint8_t* q;

  void locate(const ByteTile& b) {
    const QuantizedRows& from = *b.t->x;
    count = b.groups - group < kGroupsTogether ? b.groups - group : kGroupsTogether;
    x = from.q + (b.t->first_row + row) * from.k + b.t->k_begin + std::int64_t{group} * kGroup;
    q = b.q[panel] + std::int64_t{group} * kGroup * kPanelOuts;
  }
};

inline Step first_step(const ByteTile& b, int row) {
  Step step{row, 0, 0, 0, nullptr, nullptr};
  step.locate(b);
  return step;
}

inline Step step_after(const ByteTile& b, int end_row, Step step) {
  step.group += step.count;
  if (step.group == b.groups) {
    step.group = 0;
    if (++step.panel == b.t->count) step.panel = 0, step.row += kTileRows;
  }
  step.count = 0;
  if (step.row < end_row) step.locate(b);
  return step;
}

// Sums of the step's group i, which stay in their tile.
template <class Tiles, bool kOffset, int i>
WEIR_INLINE void multiply_group(const ByteTile& b, const Step& step) {
  if (i >= step.count) return;
  constexpr int kX = 4 + i % 2, kW = 6 + i % 2;
  Tiles::template load<kX>(step.x + i * kGroup, b.t->x->k);
  Tiles::template load<kW>(step.q + i * kGroup * kPanelOuts, kTileBytes);
  Tiles::template zero<i>();
  if constexpr (kOffset) {
    Tiles::template add_bytes<i, kX, kW>();
  } else {
    Tiles::template add_signed_bytes<i, kX, kW>();
  }
}

template <class Tiles, int i>
WEIR_INLINE void store_group(const Step& step, std::int32_t* sums) {
  if (i < step.count) Tiles::template store<i>(sums + i * kTileSums, kTileBytes);
}

// What a step's sums are scaled by and added to.
struct Scaling {
  const float *scale, *offset;          // of the weights: [group][kPanelOuts]
  const float *row_scale, *scaled_sum;  // of the activations: [row][group], `stride` floats from row to row
  std::int64_t stride;
  const std::int32_t* sums;  // [group][kTileSums]
  float* acc;                // [row][kPanelOuts]
};

inline Scaling scaling_of(const ByteTile& b, const Step& step, const std::int32_t* sums) {
  const PanelTile& t = *b.t;
  const Panel& panel = t.panels[step.panel];
  const RowStart<kGroup> x(*t.x, t.first_row + step.row, t.k_begin + std::int64_t{step.group} * kGroup);
  const std::int64_t at = std::int64_t{step.group} * kPanelOuts;
  return {panel.scale + at,
          panel.offset + at,
          x.scale,
          x.scaled_sum,
          t.x->k / kGroup,
          sums,
          t.acc + step.panel * t.acc_stride + step.row * kPanelOuts};
}

// Rows [row, row + kRows) of kCount groups: group by group, so that the rows' chains of additions overlap.
template <bool kOffset, int kCount, int kRows>
WEIR_INLINE void scale_rows(const Scaling& s, int row) {
  const float *row_scale = s.row_scale + row * s.stride, *scaled_sum = s.scaled_sum + row * s.stride;
  const std::int32_t* sums = s.sums + row * kPanelOuts;
  float* acc = s.acc + row * kPanelOuts;
  __m512 total[kRows];
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) total[r] = _mm512_loadu_ps(acc + r * kPanelOuts);
  WEIR_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const __m512 scale = _mm512_loadu_ps(s.scale + i * kPanelOuts);
    const __m512 offset = kOffset ? _mm512_loadu_ps(s.offset + i * kPanelOuts) : _mm512_setzero_ps();
    WEIR_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + i * kTileSums + r * kPanelOuts));
      const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(row_scale[r * s.stride + i]));
      if constexpr (kOffset) total[r] = _mm512_fmadd_ps(offset, _mm512_set1_ps(scaled_sum[r * s.stride + i]), total[r]);
      total[r] = _mm512_fmadd_ps(sum, both, total[r]);
    }
  }
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(acc + r * kPanelOuts, total[r]);
}

// Adds a step's sums to its results, a quarter of the rows at a time; before each quarter the tiles get a group of the next step. A
// group leaves its tile a quarter later than it was multiplied: it need not be waited for. kRows: of the tiles, 0 when they are fewer
// than kTileRows.
template <class Tiles, bool kOffset, int kCount, int kRows>
inline void run_step(const ByteTile& b, const Scaling& s, int rows, const Step& next, std::int32_t* next_sums, LinesAhead& ahead) {
  const int quarter_rows = kRows > 0 ? kRows / kQuarters : (rows + kQuarters - 1) / kQuarters;
  for_each_index<kQuarters>([&]<int i> {
    ahead.ask();
    if constexpr (i > 0) store_group<Tiles, i - 1>(next, next_sums);
    multiply_group<Tiles, kOffset, i>(b, next);
    if constexpr (kRows > 0) return scale_rows<kOffset, kCount, kRows / kQuarters>(s, i * (kRows / kQuarters));
    const int end = rows < (i + 1) * quarter_rows ? rows : (i + 1) * quarter_rows;
    for (int r = i * quarter_rows; r < end; ++r) scale_rows<kOffset, kCount, 1>(s, r);
  });
  store_group<Tiles, kQuarters - 1>(next, next_sums);
}

// Rows [begin, end): `rows` at a time, all of which fill the configured tiles.
template <class Tiles, bool kOffset, int kRows>
inline void multiply_rows(const ByteTile& b, int begin, int end, int rows, LinesAhead& ahead) {
  const TileScope<Tiles> scope(byte_config(rows));
  alignas(64) std::int32_t sums[2][kGroupsTogether * kTileSums];
  Step now = first_step(b, begin);
  for_each_index<kGroupsTogether>([&]<int i> { multiply_group<Tiles, kOffset, i>(b, now), store_group<Tiles, i>(now, sums[0]); });
  for (int turn = 0; now.count > 0; turn ^= 1) {
    const Step next = step_after(b, end, now);
    const Scaling s = scaling_of(b, now, sums[turn]);
    const auto run = [&]<int kCount> { run_step<Tiles, kOffset, kCount, kRows>(b, s, rows, next, sums[turn ^ 1], ahead); };
    switch (now.count) {
      case 4: run.template operator()<4>(); break;
      case 3: run.template operator()<3>(); break;
      case 2: run.template operator()<2>(); break;
      default: run.template operator()<1>();
    }
    now = next;
  }
}

// Weights less their zero point: what is left needs no correction.
inline void subtract_zero_point(const Panel& panel, std::uint8_t* q) {
  const __m512i zero = _mm512_set1_epi8(static_cast<char>(panel.traits.zero));
  for (int at = 0; at < panel.k * kPanelOuts; at += 64) _mm512_store_si512(q + at, _mm512_sub_epi8(_mm512_loadu_si512(panel.q + at), zero));
}

// Rows from `first` on.
inline void multiply_without_tiles(const PanelTile& t, int first) {
  PanelTile rest = t;
  rest.first_row += first;
  rest.rows -= first;
  rest.acc += first * kPanelOuts;
  avx512_table()->panel_tile(rest);
}

template <class Tiles, bool kOffset>
void multiply_tile(const PanelTile& t) {
  alignas(64) std::uint8_t less[kOffset ? 1 : kPanelsTogether][kOffset ? 64 : kMostPanelInputs * kPanelOuts];
  ByteTile b{.t = &t, .q = {}, .groups = t.panels[0].k / kGroup};
  for (int p = 0; p < t.count; ++p) {
    b.q[p] = t.panels[p].q;
    if constexpr (!kOffset) subtract_zero_point(t.panels[p], less[p]), b.q[p] = less[p];
  }
  LinesAhead ahead = lines_ahead(t, b.groups);
  const int whole = t.rows / kTileRows * kTileRows, rest = t.rows - whole;
  if (whole > 0) multiply_rows<Tiles, kOffset, kTileRows>(b, 0, whole, kTileRows, ahead);
  if (rest >= kFewestTileRows) return multiply_rows<Tiles, kOffset, 0>(b, whole, t.rows, rest, ahead);
  if (rest > 0) multiply_without_tiles(t, whole);
}

template <class Tiles>
void panel_tile(const PanelTile& t) {
  const QuantTraits& traits = t.panels[0].traits;
  if (t.rows < kFewestTileRows || traits.group != kGroup) return multiply_without_tiles(t, 0);
  traits.has_offset ? multiply_tile<Tiles, true>(t) : multiply_tile<Tiles, false>(t);
}
