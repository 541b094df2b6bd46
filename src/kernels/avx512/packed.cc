// SPDX-License-Identifier: Apache-2.0
// Few rows times packed panels: values go from their 2 to 8 bits to the dot product in registers. Decoding reads each weight once, so
// nothing may stand between memory and the sums. Bits are unpacked anew for every six rows, on units that the products leave idle
// (Zen 4: the sums of six rows take the dot product's pipes for longer than unpacking takes the others), which beats storing them.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"
#include "kernels/packed_panels.h"
#include "tensor/block_formats.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kMostRows = 6;  // of a pass: 12 sums and 12 totals leave registers for values
// Panels one after the other, which reads memory strictly in order, cost up to so many rows nothing; more rows want each of their
// activations loaded once for both. (Q8_0 at 4 rows: 65 cycles a block instead of 170.)
constexpr int kRowsInOrder = 4;
constexpr std::int64_t kAheadBytes = 3072;  // of a single pass, whatever lies there; 2 to 4 KiB are alike

// clang-format off: each needs those before it
#include "kernels/avx512/bytes.inl"
#include "kernels/avx512/vec.inl"
#include "kernels/simd/tables.inl"
#include "kernels/avx512/line.inl"
#include "kernels/simd/expand.inl"
#include "kernels/avx512/row_start.inl"
// clang-format on

// What a pass brings nearer while it multiplies: of each block of 32 inputs, `lines` lines.
struct Ahead {
  const std::byte* at;
  int lines;
};

// Adds quads [kAt, kEnd) of a block of panels [kFrom, kTo), line after line of the low bits where the sums of a block are one.
template <class P, int kTile, int kAt, int kEnd, int kFrom, int kTo, class Map>
WEIR_INLINE void add_quads(const std::byte* values, const std::int8_t* q, std::int64_t stride, Map map, __m512i (*sums)[2]) {
  constexpr int kOfLine = 8 / P::kLow;
  constexpr int kQuad = P::kGroup == 32 ? kAt / kOfLine + kAt % kOfLine * P::kLow : kAt;
  __m512i weights[2];
  WEIR_UNROLL
  for (int p = kFrom; p < kTo; ++p) weights[p] = whole_quad<P::kLow, P::kHigh, kQuad>(values + p * P::kPanelStep, map).w;
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    const __m512i x = broadcast4(q + r * stride + 4 * kQuad);
    WEIR_UNROLL
    for (int p = kFrom; p < kTo; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], weights[p], x);
  }
  if constexpr (kAt + 1 < kEnd) add_quads<P, kTile, kAt + 1, kEnd, kFrom, kTo>(values, q, stride, map, sums);
}

// Group kAt of a block.
template <class P, int kTile, int kAt, class Map>
WEIR_INLINE void add_group(const RowStart<P::kGroup>& x, std::int64_t k, int block, const std::byte* unit, const std::byte* groups,
                           const std::byte* values, __m128i zero_bits, Map map, __m512 (*total)[2]) {
  constexpr bool kOffset = has_offset(P::kScales);
  constexpr int kGroups = 32 / P::kGroup, kQuads = P::kGroup / 4;
  const int group = block * kGroups + kAt;
  const std::int64_t stride = k / P::kGroup;
  __m512i sums[kTile][2];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r)
    sums[r][0] = sums[r][1] = kOffset ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[r * stride + group], zero_bits);
  constexpr int kFirst = kAt * kQuads, kEnd = kFirst + kQuads;
  if constexpr (kTile <= kRowsInOrder) {
    add_quads<P, kTile, kFirst, kEnd, 0, 1>(values, x.q + block * 32, k, map, sums);
    add_quads<P, kTile, kFirst, kEnd, 1, 2>(values, x.q + block * 32, k, map, sums);
  } else {
    add_quads<P, kTile, kFirst, kEnd, 0, 2>(values, x.q + block * 32, k, map, sums);
  }
  GroupScale scales[2];
  WEIR_UNROLL
  for (int p = 0; p < 2; ++p) scales[p] = group_scale<P::kScales, kGroups>(unit_scale<P::kScales>(unit, p), groups, p, kAt);
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    const __m512 row_scale = _mm512_set1_ps(x.scale[r * (k / 32) + block]);
    const __m512 scaled_sum = kOffset ? _mm512_set1_ps(x.scaled_sum[r * stride + group]) : row_scale;
    WEIR_UNROLL
    for (int p = 0; p < 2; ++p) {
      if constexpr (kOffset) total[r][p] = _mm512_fmadd_ps(scales[p].offset.v, scaled_sum, total[r][p]);
      total[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][p]), _mm512_mul_ps(scales[p].scale.v, row_scale), total[r][p]);
    }
  }
  if constexpr (kAt + 1 < kGroups) add_group<P, kTile, kAt + 1>(x, k, block, unit, groups, values, zero_bits, map, total);
}

template <class P, int kTile, class Map>
void rows_of_packed(const PackedTile& t, int first, Ahead ahead, Map map) {
  const PackedShape& shape = *t.panels.shape;
  const RowStart<P::kGroup> x(*t.x, t.first_row + first, t.panels.k_begin);
  const std::int64_t k = t.x->k;
  const __m128i zero_bits = zero_bits_of(quant_traits(t.panels.type));
  float* acc = t.acc + first * kPanelOuts;
  __m512 total[kTile][2];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    total[r][0] = _mm512_loadu_ps(acc + r * kPanelOuts);
    total[r][1] = _mm512_loadu_ps(acc + t.acc_stride + r * kPanelOuts);
  }
  ask_for<kTile>(t.out, first);
  const std::byte* unit = t.panels.packed + t.panels.k_begin / P::kUnit * shape.unit_bytes;
  const int blocks = t.k / 32;
  for (int b = 0, inside = 0; b < blocks; ++b, ++inside) {
    if (inside == P::kUnit / 32) inside = 0, unit += shape.unit_bytes;
    for (int line = 0; line < ahead.lines; ++line, ahead.at += 64) __builtin_prefetch(ahead.at, 0, 3);
    add_group<P, kTile, 0>(x, k, b, unit, unit + shape.groups + inside * shape.group_step, unit + shape.values + inside * shape.block_step,
                           zero_bits, map, total);
  }
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    _mm512_storeu_ps(acc + r * kPanelOuts, total[r][0]);
    _mm512_storeu_ps(acc + t.acc_stride + r * kPanelOuts, total[r][1]);
  }
}

template <class P, class Map>
void some_rows(const PackedTile& t, int first, int rows, Ahead ahead, Map map) {
  switch (rows) {
    case 6: return rows_of_packed<P, 6>(t, first, ahead, map);
    case 5: return rows_of_packed<P, 5>(t, first, ahead, map);
    case 4: return rows_of_packed<P, 4>(t, first, ahead, map);
    case 3: return rows_of_packed<P, 3>(t, first, ahead, map);
    case 2: return rows_of_packed<P, 2>(t, first, ahead, map);
    default: return;
  }
}

#include "kernels/avx512/packed_row.inl"

// Several passes share out what follows these inputs. A single one looks a little ahead of itself, but not where memory is all that
// counts (8 bits, read in order) and the processor's own prefetching is faster.
template <class P>
Ahead ahead_of(const PackedTile& t, int pass, int passes) {
  const PackedShape& shape = *t.panels.shape;
  const int blocks = t.k / 32, lines = static_cast<int>((t.ahead_bytes / 64 + blocks - 1) / blocks);
  const std::byte* units = t.panels.packed + t.panels.k_begin / P::kUnit * shape.unit_bytes;
  if (passes == 1) return {units + kAheadBytes, P::kLow == 8 && t.rows <= kRowsInOrder && t.row_ahead_bytes == 0 ? 0 : lines};
  const int each = (lines + passes - 1) / passes, left = lines - pass * each;
  return {units + t.k / P::kUnit * shape.unit_bytes + std::int64_t{pass} * each * blocks * 64, left > each ? each : left};
}

// Rows are shared out evenly, since a rest of one row would wait for latencies alone.
void packed_tile(const PackedTile& t) {
  for_packed(t.panels.type, [&](auto packed, auto map) {
    using P = decltype(packed);
    if (t.rows == 1) {
      const RowStart<P::kGroup> x(*t.x, t.first_row, t.panels.k_begin);
      return row_of_packed<P, 2>(t.panels, t.panels.k_begin, t.k, x, t.acc, t.acc_stride, map, t.row_ahead_bytes);
    }
    const int passes = (t.rows + kMostRows - 1) / kMostRows;
    for (int i = 0, row = 0; i < passes; ++i) {
      const int end = t.rows * (i + 1) / passes;
      some_rows<P>(t, row, end - row, ahead_of<P>(t, i, passes), map);
      row = end;
    }
  });
}

// Blocks that follow each other in the list and are the same of the panels are unpacked once; a single one goes as a row does.
template <class P, class Map>
void residuals_of_packed(const PackedResiduals& t, Map map) {
  constexpr bool kOffset = has_offset(P::kScales);
  constexpr int kGroups = 32 / P::kGroup, kQuads = P::kGroup / 4;
  const PackedShape& shape = *t.panels.shape;
  const __m128i zero_bits = zero_bits_of(quant_traits(t.panels.type));
  alignas(64) std::uint8_t q[2][32 * kPanelOuts];
  GroupScale scales[kGroups][2];
  std::int32_t held = -1;
  for (std::size_t at_block = 0; at_block < t.blocks.size(); ++at_block) {
    const ResidualBlock& b = t.blocks[at_block];
    const bool again = at_block + 1 < t.blocks.size() && t.blocks[at_block + 1].block == b.block;
    if (b.block != held && !again) {
      const RowStart<P::kGroup> x(*t.residuals, b.entry, 0);
      row_of_packed<P, 2>(t.panels, std::int64_t{b.block} * 32, 32, x, t.acc + b.row * kPanelOuts, t.acc_stride, map);
      continue;
    }
    if (b.block != held) {
      held = b.block;
      const std::int64_t at = std::int64_t{held} * 32, inside = at % P::kUnit / 32;
      const std::byte* unit = t.panels.packed + at / P::kUnit * shape.unit_bytes;
      for (int p = 0; p < 2; ++p) {
        expand_block<P::kLow, P::kHigh>(unit + shape.values + inside * shape.block_step + p * P::kPanelStep, q[p], map);
        const GroupScale whole = unit_scale<P::kScales>(unit, p);
        for (int g = 0; g < kGroups; ++g)
          scales[g][p] = group_scale<P::kScales, kGroups>(whole, unit + shape.groups + inside * shape.group_step, p, g);
      }
    }
    const RowStart<P::kGroup> x(*t.residuals, b.entry, 0);
    const __m512 row_scale = _mm512_set1_ps(*x.scale);
    float* acc = t.acc + b.row * kPanelOuts;
    __m512 total[2] = {_mm512_loadu_ps(acc), _mm512_loadu_ps(acc + t.acc_stride)};
    WEIR_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      __m512i sums[2][2];
      WEIR_UNROLL
      for (int p = 0; p < 2; ++p) {
        sums[p][0] = kOffset ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[g], zero_bits);
        sums[p][1] = _mm512_setzero_si512();
      }
      WEIR_UNROLL
      for (int quad = 0; quad < kQuads; ++quad) {
        const __m512i values = broadcast4(x.q + (g * kQuads + quad) * 4);
        WEIR_UNROLL
        for (int p = 0; p < 2; ++p)
          sums[p][quad % 2] = _mm512_dpbusd_epi32(sums[p][quad % 2], _mm512_load_si512(q[p] + (g * kQuads + quad) * 64), values);
      }
      WEIR_UNROLL
      for (int p = 0; p < 2; ++p) {
        if constexpr (kOffset) total[p] = _mm512_fmadd_ps(scales[g][p].offset.v, _mm512_set1_ps(x.scaled_sum[g]), total[p]);
        const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(sums[p][0], sums[p][1]));
        total[p] = _mm512_fmadd_ps(sum, _mm512_mul_ps(scales[g][p].scale.v, row_scale), total[p]);
      }
    }
    _mm512_storeu_ps(acc, total[0]);
    _mm512_storeu_ps(acc + t.acc_stride, total[1]);
  }
}

void packed_residuals(const PackedResiduals& t) {
  for_packed(t.panels.type, [&](auto packed, auto map) { residuals_of_packed<decltype(packed)>(t, map); });
}

}  // namespace

void add_packed(KernelTable& table) {
  table.packed_tile = packed_tile;
  table.packed_residuals = packed_residuals;
  table.most_packed_rows = table.most_packed_rows_of_k = 64;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
