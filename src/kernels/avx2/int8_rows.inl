// SPDX-License-Identifier: Apache-2.0
// int8 products on 256 bits, given Sums: how the integer sums of a group come about. Sums::add<kTile, kGroup>(weights, q, sums) adds
// those of eight outputs and kTile rows; kSigned says whether it takes the zero point from the weights itself.

inline __m256i broadcast4(const std::int8_t* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _mm256_set1_epi32(bits);
}

// Rows `row` to `row` + kTile over `blocks` groups of a panel, from group `first` on.
template <class Sums, int kTile, int kGroup>
inline void rows_of_panel(const Panel& panel, int first, int groups, const QuantizedRows& x, std::int64_t row, std::int64_t k_begin,
                          float* acc) {
  const std::int8_t* q[kTile];
  std::int64_t block[kTile];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    q[r] = x.q + (row + r) * x.k + k_begin;
    block[r] = ((row + r) * x.k + k_begin) / kGroup;
  }
  const std::int32_t* minus_sum = kGroup == 32 ? x.minus_sum32 : x.minus_sum16;
  const float* scaled_sum = kGroup == 32 ? x.scaled_sum32 : x.scaled_sum16;
  const int zero_point = Sums::kSigned ? 0 : panel.traits.zero;
  for (int half = 0; half < 2; ++half) {
    __m256 total[kTile];
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) total[r] = _mm256_loadu_ps(acc + r * kPanelOuts + 8 * half);
    for (int g = 0; g < groups; ++g) {
      const std::int8_t* at[kTile];
      __m256i sums[kTile];
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        at[r] = q[r] + g * kGroup;
        sums[r] = _mm256_set1_epi32(zero_point * minus_sum[block[r] + g]);
      }
      Sums::template add<kTile, kGroup>(panel.q + (first + g) * kGroup * kPanelOuts + 32 * half, at, sums);
      const __m256 scale = _mm256_loadu_ps(panel.scale + (first + g) * kPanelOuts + 8 * half);
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[(block[r] + g) * kGroup / 32]));
        if (panel.traits.has_offset) {
          const __m256 offset = _mm256_loadu_ps(panel.offset + (first + g) * kPanelOuts + 8 * half);
          total[r] = _mm256_fmadd_ps(offset, _mm256_set1_ps(scaled_sum[block[r] + g]), total[r]);
        }
        total[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r]), both, total[r]);
      }
    }
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) _mm256_storeu_ps(acc + r * kPanelOuts + 8 * half, total[r]);
  }
}

template <class Sums, int kGroup>
void tile(const PanelTile& t) {
  for (int p = 0; p < t.count; ++p) {
    const Panel& panel = t.panels[p];
    const int groups = panel.k / kGroup;
    float* acc = t.acc + p * t.acc_stride;
    int r = 0;
    for (; r + 4 <= t.rows; r += 4)
      rows_of_panel<Sums, 4, kGroup>(panel, 0, groups, *t.x, t.first_row + r, t.k_begin, acc + r * kPanelOuts);
    for (; r < t.rows; ++r) rows_of_panel<Sums, 1, kGroup>(panel, 0, groups, *t.x, t.first_row + r, t.k_begin, acc + r * kPanelOuts);
  }
}

template <class Sums, int kGroup>
void residuals(const ResidualTile& t) {
  constexpr int kGroups = 32 / kGroup;
  for (const ResidualBlock& b : t.blocks) {
    for (int p = 0; p < t.count; ++p) {
      rows_of_panel<Sums, 1, kGroup>(t.panels[p], static_cast<int>(b.block - t.first_block) * kGroups, kGroups, *t.residuals, b.entry, 0,
                                     t.acc + p * t.acc_stride + b.row * kPanelOuts);
    }
  }
}
