// SPDX-License-Identifier: Apache-2.0
// Float products with a panel of quantised weights: outputs are lanes, four partial sums each. Before inclusion: kWideRows,
// rows of a tile.

inline void widen_panel(const Panel& panel, float* wide) {
  const V zero_point = set1(static_cast<float>(panel.traits.zero));
  for (int k = 0; k < panel.k; k += 4) {
    const int group = k / panel.traits.group * kPanelOuts;
    const V scale = load(panel.scale + group), offset = panel.traits.has_offset ? load(panel.offset + group) : zero();
    const Quads quads = load_quads(panel.q + k * kPanelOuts);
    const V bytes[4] = {quad_byte<0>(quads), quad_byte<1>(quads), quad_byte<2>(quads), quad_byte<3>(quads)};
    WEIR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const V product = scale * (bytes[i] - zero_point);
      store(wide + (k + i) * kPanelOuts, panel.traits.has_offset ? product + offset : product);
    }
  }
}

template <int kTile>
inline void wide_rows(const float* wide, std::int64_t k, const float* x, std::int64_t x_stride, float* acc) {
  V sums[kTile][4];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) WEIR_UNROLL
  for (int i = 0; i < 4; ++i) sums[r][i] = load(acc + (r * 4 + i) * kPanelOuts);
  for (std::int64_t at = 0; at < k; at += 4) {
    WEIR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const V weights = load(wide + (at + i) * kPanelOuts);
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) sums[r][i] = fma(set1(x[r * x_stride + at + i]), weights, sums[r][i]);
    }
  }
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) WEIR_UNROLL
  for (int i = 0; i < 4; ++i) store(acc + (r * 4 + i) * kPanelOuts, sums[r][i]);
}

inline void wide_tile(const float* wide, std::int64_t k, const float* x, std::int64_t x_stride, int rows, float* acc) {
  int r = 0;
  for (; r + kWideRows <= rows; r += kWideRows) wide_rows<kWideRows>(wide, k, x + r * x_stride, x_stride, acc + r * 4 * kPanelOuts);
  for (; r < rows; ++r) wide_rows<1>(wide, k, x + r * x_stride, x_stride, acc + r * 4 * kPanelOuts);
}
