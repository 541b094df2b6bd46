// SPDX-License-Identifier: Apache-2.0
// Products of int8 on tiles. A group's sums are exact integers; they leave the tiles for AVX-512, which scales and adds them as
// avx512/panel.cc does. While it scales the sums of some groups, the tiles multiply the next ones. Included inside an anonymous
// namespace, under the target of AVX-512.

constexpr int kGroup = 32;                         // weights that share a scale; with 16, AVX-512 alone is faster
constexpr int kGroupsTogether = 4;                 // groups of a step: their sums have a tile each
constexpr int kTileSums = kTileRows * kPanelOuts;  // of one tile
constexpr int kRowsOfGroup = kTileRows / kGroupsTogether;
constexpr int kFewestTileRows = 8;  // fewer are faster without tiles

// Tiles 0 to 3 are the sums of a step's groups, then come activations and weights, two of each by turns.
inline TileConfig byte_config(int rows) {
  TileConfig config;
  for (int t = 0; t < 4; ++t) config.set(t, rows, kTileBytes);
  for (int t = 4; t < 6; ++t) config.set(t, rows, kGroup);
  for (int t = 6; t < 8; ++t) config.set(t, kGroup / 4, kTileBytes);
  return config;
}

// Some groups of a panel for the rows that fill a tile.
struct Step {
  int row;  // of the products' rows
  int panel;
  int group;  // the first: a multiple of kGroupsTogether
  int count;  // of groups, up to kGroupsTogether
};

// What will be expanded next, asked for while the tiles multiply: `lines` at a time until there are none left.
struct Asking {
  const std::byte *at, *end;
  std::int64_t lines;

  void ask() {
    for (std::int64_t i = 0; i < lines && at < end; ++i, at += 64) __builtin_prefetch(at, 0, 2);
  }
};

// Spread evenly over the quarters of all steps.
inline Asking asking_of(const PanelTile& t, int groups) {
  const std::int64_t row_tiles = (t.rows + kTileRows - 1) / kTileRows, steps = (groups + kGroupsTogether - 1) / kGroupsTogether;
  const std::int64_t times = row_tiles * steps * t.count * kGroupsTogether, lines = (t.ahead_bytes + 63) / 64;
  return {t.ahead, t.ahead + t.ahead_bytes, (lines + times - 1) / times};
}

// What all steps of a tile read, with the weights as signed bytes where they have a zero point.
struct ByteTile {
  const PanelTile* t;
  const std::uint8_t* q[kPanelsTogether];
  int groups;
};

inline bool advance(const ByteTile& b, int end_row, Step& step) {
  step.group += step.count;
  if (step.group == b.groups) {
    step.group = 0;
    if (++step.panel == b.t->count) step.panel = 0, step.row += kTileRows;
  }
  step.count = b.groups - step.group < kGroupsTogether ? b.groups - step.group : kGroupsTogether;
  return step.row < end_row;
}

// Calls f.template operator()<i>() when the step has a group `i`.
template <class Function>
inline void for_group(const Step& step, int i, Function f) {
  if (i < 0 || i >= step.count) return;
  switch (i) {
    case 0: return f.template operator()<0>();
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    default: return f.template operator()<3>();
  }
}

// Sums of the step's group `i`, which stay in their tile.
template <class Tiles, bool kOffset>
inline void multiply_group(const ByteTile& b, const Step& step, int group) {
  for_group(step, group, [&]<int i> {
    const QuantizedRows& x = *b.t->x;
    const std::int64_t at = std::int64_t{step.group + i} * kGroup;
    constexpr int kX = 4 + i % 2, kW = 6 + i % 2;
    Tiles::template load<kX>(x.q + (b.t->first_row + step.row) * x.k + b.t->k_begin + at, x.k);
    Tiles::template load<kW>(b.q[step.panel] + at * kPanelOuts, kTileBytes);
    Tiles::template zero<i>();
    if constexpr (kOffset) {
      Tiles::template add_bytes<i, kX, kW>();
    } else {
      Tiles::template add_signed_bytes<i, kX, kW>();
    }
  });
}

template <class Tiles>
inline void store_group(const Step& step, int group, std::int32_t* sums) {
  for_group(step, group, [&]<int i> { Tiles::template store<i>(sums + i * kTileSums, kTileBytes); });
}

// Adds a step's sums to its results; before each quarter of the rows, `next(quarter)` gives the tiles work.
template <bool kOffset, int kCount, class Next>
inline void scale_step(const ByteTile& b, const Step& step, int rows, const std::int32_t* sums, Next next) {
  const PanelTile& t = *b.t;
  const RowStart<kGroup> x(*t.x, t.first_row + step.row, t.k_begin + std::int64_t{step.group} * kGroup);
  const std::int64_t stride = t.x->k / kGroup;
  const Panel& panel = t.panels[step.panel];
  float* acc = t.acc + step.panel * t.acc_stride + step.row * kPanelOuts;
  __m512 scale[kCount], offset[kCount];
  WEIR_UNROLL
  for (int i = 0; i < kCount; ++i) {
    scale[i] = _mm512_loadu_ps(panel.scale + (step.group + i) * kPanelOuts);
    if constexpr (kOffset) offset[i] = _mm512_loadu_ps(panel.offset + (step.group + i) * kPanelOuts);
  }
  const float *row_scale = x.scale, *scaled_sum = x.scaled_sum;
  for (int quarter = 0, r = 0; quarter < kGroupsTogether; ++quarter) {
    next(quarter);
    for (const int end = rows < (quarter + 1) * kRowsOfGroup ? rows : (quarter + 1) * kRowsOfGroup; r < end; ++r) {
      __m512 total = _mm512_loadu_ps(acc);
      WEIR_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + i * kTileSums));
        const __m512 both = _mm512_mul_ps(scale[i], _mm512_set1_ps(row_scale[i]));
        if constexpr (kOffset) total = _mm512_fmadd_ps(offset[i], _mm512_set1_ps(scaled_sum[i]), total);
        total = _mm512_fmadd_ps(sum, both, total);
      }
      _mm512_storeu_ps(acc, total);
      sums += kPanelOuts, acc += kPanelOuts, row_scale += stride, scaled_sum += stride;
    }
  }
}

template <bool kOffset, class Next>
inline void scale_step(const ByteTile& b, const Step& step, int rows, const std::int32_t* sums, Next next) {
  switch (step.count) {
    case 4: return scale_step<kOffset, 4>(b, step, rows, sums, next);
    case 3: return scale_step<kOffset, 3>(b, step, rows, sums, next);
    case 2: return scale_step<kOffset, 2>(b, step, rows, sums, next);
    default: return scale_step<kOffset, 1>(b, step, rows, sums, next);
  }
}

// Rows [begin, end): `rows` at a time, all of which fill the configured tiles.
template <class Tiles, bool kOffset>
inline void multiply_rows(const ByteTile& b, int begin, int end, int rows, Asking& asking) {
  const TileScope<Tiles> scope(byte_config(rows));
  alignas(64) std::int32_t sums[2][kGroupsTogether * kTileSums];
  Step now{begin, 0, 0, 0};
  advance(b, end, now);
  for (int i = 0; i < kGroupsTogether; ++i) multiply_group<Tiles, kOffset>(b, now, i), store_group<Tiles>(now, i, sums[0]);
  for (int turn = 0;; turn ^= 1) {
    Step next = now;
    const bool more = advance(b, end, next);
    if (!more) next.count = 0;
    scale_step<kOffset>(b, now, rows, sums[turn], [&](int i) {
      asking.ask();
      store_group<Tiles>(next, i - 1, sums[turn ^ 1]);  // a quarter later than it was multiplied: it need not be waited for
      multiply_group<Tiles, kOffset>(b, next, i);
    });
    if (!more) return;
    store_group<Tiles>(next, kGroupsTogether - 1, sums[turn ^ 1]);
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
  Asking asking = asking_of(t, b.groups);
  const int whole = t.rows / kTileRows * kTileRows, rest = t.rows - whole;
  if (whole > 0) multiply_rows<Tiles, kOffset>(b, 0, whole, kTileRows, asking);
  if (rest >= kFewestTileRows) return multiply_rows<Tiles, kOffset>(b, whole, t.rows, rest, asking);
  if (rest > 0) multiply_without_tiles(t, whole);
}

template <class Tiles>
void panel_tile(const PanelTile& t) {
  const QuantTraits& traits = t.panels[0].traits;
  if (t.rows < kFewestTileRows || traits.group != kGroup) return multiply_without_tiles(t, 0);
  traits.has_offset ? multiply_tile<Tiles, true>(t) : multiply_tile<Tiles, false>(t);
}
