// SPDX-License-Identifier: Apache-2.0
// Panels of quantised weights as the bf16 that tiles multiply.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/amx/kernels.h"
#include "kernels/unroll.h"

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

// Each of eight entries twice.
inline __m512 twice(const float* p) {
  const __m512i index = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

template <int kGroup>
void round_groups(const Panel& panel, std::uint16_t* out) {
  __m512i index[2][2];
  for (int pair = 0; pair < 2; ++pair)
    for (int half = 0; half < 2; ++half) index[pair][half] = _mm512_load_si512(kIndices[pair][half].at);
  const __m512 minus_zero = _mm512_set1_ps(static_cast<float>(-panel.traits.zero));
  for (int group = 0; group < panel.k / kGroup; ++group) {
    __m512 scale[2], offset[2];
    WEIR_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int at = group * kPanelOuts + half * 8;
      scale[half] = twice(panel.scale + at);
      // Zero points are powers of two: this product is exact, and the one below is rounded once.
      offset[half] = panel.traits.has_offset ? twice(panel.offset + at) : _mm512_mul_ps(scale[half], minus_zero);
    }
    const std::uint8_t* q = panel.q + group * kGroup * kPanelOuts;
    WEIR_UNROLL
    for (int quad = 0; quad < kGroup / 4; ++quad, q += 64, out += 64) {
      const __m512i bytes = _mm512_loadu_si512(q);
      WEIR_UNROLL
      for (int pair = 0; pair < 2; ++pair) {
        __m512 weights[2];
        WEIR_UNROLL
        for (int half = 0; half < 2; ++half) {
          const __m512i lanes = _mm512_maskz_permutexvar_epi8(kLowBytes, index[pair][half], bytes);
          weights[half] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(lanes), scale[half], offset[half]);
        }
        _mm512_storeu_si512(out + pair * 32, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(weights[1], weights[0])));
      }
    }
  }
}

void round_panel(const Panel& panel, std::uint16_t* out) {
  panel.traits.group == 32 ? round_groups<32>(panel, out) : round_groups<16>(panel, out);
}

}  // namespace

void add_round_panel(KernelTable& table) { table.round_panel = round_panel; }

}  // namespace weir::kernels::amx

#include "kernels/avx512/target_end.h"
#endif
