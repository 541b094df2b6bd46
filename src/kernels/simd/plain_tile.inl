// SPDX-License-Identifier: Apache-2.0
// Products with panels of F32, F16 and BF16 weights on V: outputs are lanes, a tile is kPlainRows rows by kTilePanels panels, one
// register of sums for each. Before inclusion: those two, which fill the registers.

// A line is what one load brings: kSteps inputs of 16 outputs.
struct F32Line {
  static constexpr int kSteps = 1, kBytes = 64;
  template <int step>
  static V weights(const std::byte* line) {
    return load(reinterpret_cast<const float*>(line));
  }
};
struct F16Line {
  static constexpr int kSteps = 1, kBytes = 32;
  template <int step>
  static V weights(const std::byte* line) {
    return load_f16(line);
  }
};
struct Bf16Line {
  static constexpr int kSteps = 2, kBytes = 64;
  template <int step>
  static V weights(const std::byte* line) {
    return step == 0 ? low_bf16(line) : high_bf16(line);
  }
};

template <class Line, int step, int kRows, int kPanels>
inline __attribute__((always_inline)) void add_input(const PlainTile& t, const float* x, const std::byte* line, V (&sums)[kRows][kPanels]) {
  V weights[kPanels];
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) weights[p] = Line::template weights<step>(line + p * t.block.stride);
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const V input = set1(x[r * t.x_stride]);
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) sums[r][p] = fma(input, weights[p], sums[r][p]);
  }
}

template <class Line, int kRows, int kPanels>
inline void plain_block(const PlainTile& t, int row, int panel) {
  V sums[kRows][kPanels];
  WEIR_UNROLL
  for (auto& line : sums) WEIR_UNROLL
  for (V& v : line) v = zero();
  const float* x = t.x + row * t.x_stride;
  const std::byte* line = t.block.w + panel * t.block.stride;
  Ahead ahead = ahead_of(t.block, t.rows, row, kPlainRows, panel, kPanels);
  for (std::int64_t k = t.block.k / Line::kSteps; k > 0; --k, x += Line::kSteps, line += Line::kBytes) {
    ask(ahead);
    add_input<Line, 0>(t, x, line, sums);
    if constexpr (Line::kSteps == 2) add_input<Line, 1>(t, x + 1, line, sums);
  }
  if (Line::kSteps == 2 && t.block.k % 2) add_input<Line, 0>(t, x, line, sums);
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    float* acc = t.acc + (panel + p) * t.acc_stride + (row + r) * kPanelOuts;
    store(acc, load(acc) + sums[r][p]);
  }
}

template <class Line, int kRows, int kPanels>
inline void plain_rest(const PlainTile& t, int row, int panel) {
  if constexpr (kRows > 0) {
    if (t.rows - row == kRows) return plain_block<Line, kRows, kPanels>(t, row, panel);
    plain_rest<Line, kRows - 1, kPanels>(t, row, panel);
  }
}

template <class Line, int kPanels>
inline void plain_rows(const PlainTile& t, int panel) {
  int row = 0;
  for (; row + kPlainRows <= t.rows; row += kPlainRows) plain_block<Line, kPlainRows, kPanels>(t, row, panel);
  plain_rest<Line, kPlainRows - 1, kPanels>(t, row, panel);
}

template <class Line>
inline void plain_panels(const PlainTile& t) {
  int panel = 0;
  for (; panel + kTilePanels <= t.block.panels; panel += kTilePanels) plain_rows<Line, kTilePanels>(t, panel);
  if (kTilePanels > 2 && panel + 2 <= t.block.panels) plain_rows<Line, 2>(t, panel), panel += 2;
  if (panel < t.block.panels) plain_rows<Line, 1>(t, panel);
}

inline void plain_tile(const PlainTile& t) {
  if (t.block.type == DType::kF32) return plain_panels<F32Line>(t);
  if (t.block.type == DType::kF16) return plain_panels<F16Line>(t);
  plain_panels<Bf16Line>(t);
}

inline void widen_plain(DType type, const std::byte* panel, std::int64_t k, float* wide) {
  if (type == DType::kF32) return reference::widen_plain(type, panel, k, wide);
  for (std::int64_t i = 0; i < k; i += 2, panel += 64, wide += 2 * kPanelOuts) {
    store(wide, type == DType::kF16 ? load_f16(panel) : low_bf16(panel));
    store(wide + kPanelOuts, type == DType::kF16 ? load_f16(panel + 32) : high_bf16(panel));
  }
}

// Sixteen outputs by sixteen floats, or pairs of halves.
inline void pack_square(const std::byte* const* rows, std::int64_t at, DType type, std::byte* panel) {
  V lines[16];
  WEIR_UNROLL
  for (int o = 0; o < 16; ++o) lines[o] = load(reinterpret_cast<const float*>(rows[o] + at));
  if (type != DType::kF16) return transpose16(lines, reinterpret_cast<float*>(panel), kPanelOuts);
  alignas(64) float pairs[256];
  transpose16(lines, pairs, kPanelOuts);
  for (int i = 0; i < 16; ++i) store_unzipped(panel + i * 64, load(pairs + i * kPanelOuts));
}

inline void pack_plain(const PlainSource& s, std::byte* panel) {
  std::int64_t k = 0;
  if (s.layout == WeightLayout::kOutIn) {
    const std::int64_t inputs = s.type == DType::kF32 ? 16 : 32, bytes = s.type == DType::kF32 ? 4 : 2;
    const std::byte* rows[kPanelOuts];
    for (int o = 0; o < kPanelOuts; ++o) rows[o] = s.w + (o < s.outs ? o : s.outs - 1) * s.stride;
    for (; k + inputs <= s.k; k += inputs) pack_square(rows, k * bytes, s.type, panel + k * bytes * kPanelOuts);
  } else if (s.outs == kPanelOuts) {
    for (; k + 2 <= s.k; k += 2) {
      const std::byte *first = s.w + k * s.stride, *second = first + s.stride;
      if (s.type == DType::kBF16) {
        store_zipped(panel + k * 32, first, second);
      } else {
        const std::int64_t line = s.type == DType::kF32 ? 64 : 32;
        __builtin_memcpy(panel + k * line, first, static_cast<std::size_t>(line));
        __builtin_memcpy(panel + (k + 1) * line, second, static_cast<std::size_t>(line));
      }
    }
  }
  reference::pack_plain(s, k, panel);
}
