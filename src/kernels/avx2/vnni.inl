// SPDX-License-Identifier: Apache-2.0
// int8 products by dot(sums, w, x): sums += four unsigned bytes of w · four signed bytes of x. Exact for all weights.

struct DotSums {
  static constexpr bool kSigned = false;

  template <int kTile, int kGroup>
  static inline void add(const std::uint8_t* weights, const std::int8_t* const* q, __m256i* sums) {
    WEIR_UNROLL
    for (int quad = 0; quad < kGroup / 4; ++quad) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + quad * 64));
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) sums[r] = dot(sums[r], w, broadcast4(q[r] + quad * 4));
    }
  }
};

void panel_tile(const PanelTile& t) { t.panels[0].traits.group == 32 ? tile<DotSums, 32>(t) : tile<DotSums, 16>(t); }
void residual_tile(const ResidualTile& t) { t.panels[0].traits.group == 32 ? residuals<DotSums, 32>(t) : residuals<DotSums, 16>(t); }

// The avx2 table with these products, under a name of its own.
inline KernelTable table_with_products(const char* name) {
  KernelTable table = *avx2_table();
  table.name = name;
  table.panel_tile = panel_tile;
  table.residual_tile = residual_tile;
  return table;
}
