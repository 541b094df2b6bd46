// SPDX-License-Identifier: Apache-2.0
// Quantised weights as the bf16 that tiles multiply: from panels, and from packed stripes without that detour.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/amx/kernels.h"
#include "kernels/packed_panels.h"
#include "kernels/unroll.h"
#include "tensor/block_formats.h"

#include "kernels/amx/target_round_begin.h"

namespace weir::kernels::amx {
namespace {

constexpr int kPairs = 16;  // 32-bit lanes: eight outputs' pairs of inputs

// Which bytes of a quad (four inputs of an output side by side) the lanes of a register take: inputs 2 · pair and 2 · pair + 1 of eight
// outputs. The other three bytes of each lane are zeros.
constexpr __mmask64 kLowBytes = 0x1111111111111111;
struct alignas(64) Index {
  std::int8_t at[64] = {};
};
constexpr Index bytes_of(int pair, int first_out) {
  Index index;
  for (int lane = 0; lane < kPairs; ++lane) index.at[4 * lane] = static_cast<std::int8_t>((first_out + lane / 2) * 4 + pair * 2 + lane % 2);
  return index;
}
constexpr Index kIndices[2][2] = {{bytes_of(0, 0), bytes_of(0, 8)}, {bytes_of(1, 0), bytes_of(1, 8)}};  // [pair][half of the outputs]

// clang-format off: each needs those before it
#include "kernels/avx512/bytes.inl"
#include "kernels/avx512/vec.inl"
#include "kernels/simd/tables.inl"
#include "kernels/avx512/line.inl"
#include "kernels/simd/expand.inl"
// clang-format on

struct Indices {
  __m512i of[2][2];  // [pair][half of the outputs]
};
inline Indices load_indices() {
  Indices indices;
  for (int pair = 0; pair < 2; ++pair)
    for (int half = 0; half < 2; ++half) indices.of[pair][half] = _mm512_load_si512(kIndices[pair][half].at);
  return indices;
}

// Scale and offset of a group, each output's twice: for eight outputs, then for the other eight.
struct PairScales {
  // `zero`: the zero point, where there are no offsets. Zero points are powers of two: the product is exact, and a weight is rounded once.
  PairScales(__m512 of_outs, __m512 offsets, bool has_offsets, float zero) {
    const __m512 from = has_offsets ? offsets : _mm512_mul_ps(of_outs, _mm512_set1_ps(-zero));
    const __m512i index[2] = {_mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0),
                              _mm512_set_epi32(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8)};
    WEIR_UNROLL
    for (int half = 0; half < 2; ++half) {
      scale[half] = _mm512_permutexvar_ps(index[half], of_outs);
      offset[half] = _mm512_permutexvar_ps(index[half], from);
    }
  }
  __m512 scale[2], offset[2];
};

// A quad's 64 values.
WEIR_INLINE void round_quad(__m512i bytes, const PairScales& s, const Indices& indices, std::uint16_t* out) {
  WEIR_UNROLL
  for (int pair = 0; pair < 2; ++pair) {
    __m512 weights[2];
    WEIR_UNROLL
    for (int half = 0; half < 2; ++half) {
      const __m512i lanes = _mm512_maskz_permutexvar_epi8(kLowBytes, indices.of[pair][half], bytes);
      weights[half] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(lanes), s.scale[half], s.offset[half]);
    }
    _mm512_storeu_si512(out + pair * 32, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(weights[1], weights[0])));
  }
}

template <int kGroup>
void round_groups(const Panel& panel, std::uint16_t* out) {
  const Indices indices = load_indices();
  const auto zero = static_cast<float>(panel.traits.zero);
  for (int group = 0; group < panel.k / kGroup; ++group) {
    const int at = group * kPanelOuts;
    const PairScales scales(_mm512_loadu_ps(panel.scale + at), _mm512_loadu_ps(panel.offset + at), panel.traits.has_offset, zero);
    const std::uint8_t* q = panel.q + group * kGroup * kPanelOuts;
    WEIR_UNROLL
    for (int quad = 0; quad < kGroup / 4; ++quad, q += 64, out += 64) round_quad(_mm512_loadu_si512(q), scales, indices, out);
  }
}

// 32 inputs of a packed panel.
template <class P, class Map>
WEIR_INLINE void round_block(const std::byte* unit, const std::byte* groups, const std::byte* values, int p, float zero,
                             const Indices& indices, Map map, std::uint16_t* out) {
  constexpr int kGroups = 32 / P::kGroup, kQuads = P::kGroup / 4;
  const GroupScale whole = unit_scale<P::kScales>(unit, p);
  for_each_index<kGroups>([&]<int g> {
    const GroupScale group = group_scale<P::kScales, kGroups>(whole, groups, p, g);
    const PairScales scales(group.scale.v, group.offset.v, has_offset(P::kScales), zero);
    for_each_index<kQuads>([&]<int i> {
      constexpr int kQuad = g * kQuads + i;
      round_quad(whole_quad<P::kLow, P::kHigh, kQuad>(values, map).w, scales, indices, out + kQuad * 64);
    });
  });
}

template <class P, class Map>
void round_packed_of(const PackedPanels& from, int k, Map map, std::uint16_t* const* out) {
  const PackedShape& shape = *from.shape;
  const Indices indices = load_indices();
  const auto zero = static_cast<float>(quant_traits(from.type).zero);
  for (int i = 0; i < k; i += 32) {
    const std::int64_t at = from.k_begin + i;
    const int inside = static_cast<int>(at % P::kUnit) / 32;
    const std::byte* unit = from.packed + at / P::kUnit * shape.unit_bytes;
    const std::byte* values = unit + shape.values + inside * shape.block_step;
    for (int p = 0; p < from.count; ++p) {
      round_block<P>(unit, unit + shape.groups + inside * shape.group_step, values + p * P::kPanelStep, p, zero, indices, map,
                     out[p] + i * kPanelOuts);
    }
  }
}

void round_packed(const PackedPanels& from, int k, std::uint16_t* const* out) {
  for_packed(from.type, [&](auto packed, auto map) { round_packed_of<decltype(packed)>(from, k, map, out); });
}

void round_panel(const Panel& panel, std::uint16_t* out) {
  panel.traits.group == 32 ? round_groups<32>(panel, out) : round_groups<16>(panel, out);
}

}  // namespace

void add_round_panel(KernelTable& table) {
  table.round_panel = round_panel;
  table.round_packed = round_packed;
}

}  // namespace weir::kernels::amx

#include "kernels/avx512/target_end.h"
#endif
