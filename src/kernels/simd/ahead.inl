// SPDX-License-Identifier: Apache-2.0
// Asking for the next block of weights while this one is multiplied: the tile's passes over its rows share the panels among them,
// so that memory is kept busy from the first pass to the last.

struct Ahead {
  const std::byte* at;
  std::int64_t stride, step;
  int panels;
};

// For the pass that starts at `row`, of passes of `pass_rows` rows, over panels [panel, panel + panels) of the block.
inline Ahead ahead_of(const PanelBlock& block, int rows, int row, int pass_rows, int panel, int panels) {
  if (!block.next) return {block.next, 0, 0, 0};
  const int passes = (rows + pass_rows - 1) / pass_rows, pass = row / pass_rows;
  const auto first_of = [&](int p) { return (p * panels + passes - 1) / passes; };  // the panels whose turn is before pass p
  const int first = first_of(pass);
  return {block.next + (panel + first) * block.next_stride, block.next_stride, block.next_step, first_of(pass + 1) - first};
}

inline void ask(Ahead& ahead) {
  for (int p = 0; p < ahead.panels; ++p) _mm_prefetch(reinterpret_cast<const char*>(ahead.at + p * ahead.stride), _MM_HINT_T1);
  ahead.at += ahead.step;
}
