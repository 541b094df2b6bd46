// SPDX-License-Identifier: Apache-2.0
// Products of bf16 on tiles: 0 to 3 are sums, then come activations (kA tiles of 16 rows), then weights. Any number of rows goes
// through the tiles, so that all meet the same order of sums: 32 inputs at a time, on top of the results so far. Included inside an
// anonymous namespace, under the target of AVX-512.

constexpr int kFirstInput = 4;
// Of 32 inputs, between a sum's load and its store: two panels take up to 20 KiB then, a part of the first-level cache.
constexpr std::int64_t kPieceSteps = 10;

inline TileConfig bf16_config(int rows, int tiles_a) {
  TileConfig config;
  for (int t = 0; t < kFirstInput + tiles_a; ++t) config.set(t, rows, kTileBytes);
  for (int t = kFirstInput + tiles_a; t < kTiles; ++t) config.set(t, kTileRows, kTileBytes);
  return config;
}

// Where a piece's operands lie. Plain pointers, all worked out before the loop: what a tile instruction waits for is then in registers.
struct Bf16Piece {
  const std::byte *x, *w;
  float* acc;
  std::int64_t x_stride, w_stride, acc_stride;  // bytes from row to row, bytes and floats from panel to panel
  std::int64_t steps;                           // of 32 inputs
  bool fresh;
};

// Calls f.template operator()<tile>(its sums) for each tile of sums.
template <int kA, int kPanels, class Function>
WEIR_INLINE void for_sums(float* acc, std::int64_t acc_stride, Function f) {
  for_each_index<kA * kPanels>([&]<int at> { f.template operator()<at>(acc + at % kPanels * acc_stride + at / kPanels * kTileSums); });
}

// The sums of rows `a` with panels from p on; the weights lie in their tiles when a > 0.
template <class Tiles, int kA, int kPanels, int a, int p = 0>
WEIR_INLINE void add_products_of(const std::byte* w, std::int64_t stride) {
  if constexpr (p < kPanels) {
    constexpr int kWeights = kFirstInput + kA + p % (kTiles - kFirstInput - kA);
    if constexpr (a == 0) Tiles::template load<kWeights>(w + p * stride, kTileBytes);
    Tiles::template add_bf16<a * kPanels + p, kFirstInput + a, kWeights>();
    add_products_of<Tiles, kA, kPanels, a, p + 1>(w, stride);
  }
}

// Loads and products take turns: a tenth faster than all loads before all products.
// ask() is called with every 32 inputs.
template <class Tiles, int kA, int kPanels, class Ask>
WEIR_INLINE void bf16_piece(const Bf16Piece piece, Ask ask) {
  const std::byte *x = piece.x, *w = piece.w;
  const std::int64_t x_stride = piece.x_stride, w_stride = piece.w_stride;
  if (piece.fresh) {
    for_each_index<kA * kPanels>([]<int at> { Tiles::template zero<at>(); });
  } else {
    for_sums<kA, kPanels>(piece.acc, piece.acc_stride, []<int at>(float* acc) { Tiles::template load<at>(acc, kTileBytes); });
  }
  for (std::int64_t i = piece.steps; i > 0; --i, x += kTileBytes, w += kTileRows * kTileBytes) {
    Tiles::template load<kFirstInput>(x, x_stride);
    add_products_of<Tiles, kA, kPanels, 0>(w, w_stride);
    if constexpr (kA == 2) {
      Tiles::template load<kFirstInput + 1>(x + kTileRows * x_stride, x_stride);
      add_products_of<Tiles, kA, kPanels, 1>(w, w_stride);
    }
    ask();
  }
  for_sums<kA, kPanels>(piece.acc, piece.acc_stride, []<int at>(float* acc) { Tiles::template store<at>(acc, kTileBytes); });
}

// Rows from `row` on times panels from `panel` on, inputs [begin, end) of the block.
template <class Tiles, int kA, int kPanels>
WEIR_INLINE void multiply_piece(const Bf16Tile& t, int row, int panel, std::int64_t begin, std::int64_t end) {
  const Bf16Piece piece{.x = reinterpret_cast<const std::byte*>(t.x + row * t.x_stride + begin),
                        .w = t.block.w + panel * t.block.stride + begin * kPanelOuts * 2,
                        .acc = t.acc + panel * t.acc_stride + row * kPanelOuts,
                        .x_stride = t.x_stride * 2,
                        .w_stride = t.block.stride,
                        .acc_stride = t.acc_stride,
                        .steps = (end - begin) / 32,
                        .fresh = t.fresh && begin == 0};
  if (t.block.next) {
    Ahead ahead = ahead_of(t.block, t.rows, row, kA * kTileRows, panel, kPanels);
    ahead.at += begin / 2 * ahead.step;
    return bf16_piece<Tiles, kA, kPanels>(piece, [ahead] mutable {
      for (int line = 0; line < kTileRows; ++line) ask(ahead);
    });
  }
  if (!t.ahead || t.ahead->rows_left == 0) return bf16_piece<Tiles, kA, kPanels>(piece, [] {});
  LinesAhead lines = *t.ahead;
  bf16_piece<Tiles, kA, kPanels>(piece, [&lines] { lines.ask(); });
  *t.ahead = lines;
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
          multiply_piece<Tiles, kA, kTogether>(t, row, panel, begin, end);
        } else {
          for (int p = panel; p < t.block.panels; ++p) multiply_piece<Tiles, kA, 1>(t, row, p, begin, end);
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
