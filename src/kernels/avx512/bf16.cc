// SPDX-License-Identifier: Apache-2.0
// Products with bf16 weights by the bf16 dot product instruction: one adds two products to each of sixteen outputs. It rounds as
// it likes (to nearest, no subnormals), so this is another arithmetic than the fp32 one, in a table of its own.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_bf16_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kRows = 6;  // by kPlainPanels panels: 24 registers of sums, four of weights

#include "kernels/simd/ahead.inl"

inline __m512bh load_pairs(const std::byte* p) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p)); }
inline __m512bh broadcast_pair(const std::uint16_t* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
}

template <int kTile, int kPanels>
inline void block(const Bf16Tile& t, int row, int panel) {
  __m512 sums[kTile][kPanels];
  WEIR_UNROLL
  for (auto& line : sums) WEIR_UNROLL
  for (__m512& v : line) v = _mm512_setzero_ps();
  const std::uint16_t* x = t.x + row * t.x_stride;
  const std::byte* w = t.block.w + panel * t.block.stride;
  Ahead ahead = ahead_of(t.block, t.rows, row, kRows, panel, kPanels);
  for (std::int64_t k = 0; k < t.block.k; k += 2, x += 2, w += 64) {
    ask(ahead);
    __m512bh weights[kPanels];
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) weights[p] = load_pairs(w + p * t.block.stride);
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) {
      const __m512bh input = broadcast_pair(x + r * t.x_stride);
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbf16_ps(sums[r][p], weights[p], input);
    }
  }
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    float* acc = t.acc + (panel + p) * t.acc_stride + (row + r) * kPanelOuts;
    _mm512_storeu_ps(acc, t.fresh ? sums[r][p] : _mm512_add_ps(_mm512_loadu_ps(acc), sums[r][p]));
  }
}

template <int kTile, int kPanels>
inline void rest(const Bf16Tile& t, int row, int panel) {
  if constexpr (kTile > 0) {
    if (t.rows - row == kTile) return block<kTile, kPanels>(t, row, panel);
    rest<kTile - 1, kPanels>(t, row, panel);
  }
}

template <int kPanels>
inline void all_rows(const Bf16Tile& t, int panel) {
  int row = 0;
  for (; row + kRows <= t.rows; row += kRows) block<kRows, kPanels>(t, row, panel);
  rest<kRows - 1, kPanels>(t, row, panel);
}

void bf16_tile(const Bf16Tile& t) {
  int panel = 0;
  for (; panel + kPlainPanels <= t.block.panels; panel += kPlainPanels) all_rows<kPlainPanels>(t, panel);
  if (panel + 2 <= t.block.panels) all_rows<2>(t, panel), panel += 2;
  if (panel < t.block.panels) all_rows<1>(t, panel);
}

void round(const float* x, std::int64_t n, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + 16), _mm512_loadu_ps(x + i))));
  if (i == n) return;
  alignas(64) float last[32] = {};
  __builtin_memcpy(last, x + i, static_cast<std::size_t>(n - i) * sizeof(float));
  _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_load_ps(last + 16), _mm512_load_ps(last))));
}

}  // namespace

void add_bf16(KernelTable& table) {
  table.plain.bf16_tile = bf16_tile;
  table.plain.round = round;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
