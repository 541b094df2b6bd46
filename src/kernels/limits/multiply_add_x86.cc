// SPDX-License-Identifier: Apache-2.0
// Each loop is compiled for its own instruction set by a target attribute and only called where the processor has it and the
// system lets this process use it (cpu_features.h).
#include "kernels/limits/multiply_add_x86.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>
#include <utility>

#include "kernels/amx/tiles.h"
#include "kernels/cpu_features.h"
#endif

namespace weir::kernels {

#if defined(__x86_64__)
namespace {

// Defines NAME(steps): twelve sums in registers, each step adds x · x to all. The empty assembly keeps each in its register
// and the compiler from folding the loop. A macro, since the intrinsics must be expanded in a function with the target.
#define WEIR_MULTIPLY_ADD_LOOP(NAME, TARGET, VECTOR, ZERO, ONES, STEP)                            \
  __attribute__((target(TARGET))) std::uint64_t NAME(std::int64_t steps) {                        \
    const auto x = ONES;                                                                          \
    VECTOR a = ZERO, b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a, l = a; \
    for (std::int64_t n = 0; n < steps; ++n) {                                                    \
      a = STEP(a), b = STEP(b), c = STEP(c), d = STEP(d), e = STEP(e), f = STEP(f);               \
      g = STEP(g), h = STEP(h), i = STEP(i), j = STEP(j), k = STEP(k), l = STEP(l);               \
      __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f));                \
      __asm__ volatile("" : "+v"(g), "+v"(h), "+v"(i), "+v"(j), "+v"(k), "+v"(l));                \
    }                                                                                             \
    std::uint64_t word = 0;                                                                       \
    std::memcpy(&word, &a, sizeof word);                                                          \
    return word;                                                                                  \
  }

constexpr int kSums = 12;

#define WEIR_STEP(sum) _mm256_fmadd_ps(x, x, sum)
WEIR_MULTIPLY_ADD_LOOP(f32_256, "avx2,fma", __m256, _mm256_setzero_ps(), _mm256_set1_ps(1), WEIR_STEP)
#undef WEIR_STEP
#define WEIR_STEP(sum) _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, sum), x))
WEIR_MULTIPLY_ADD_LOOP(int8_256, "avx2,fma", __m256i, _mm256_setzero_si256(), _mm256_set1_epi8(1), WEIR_STEP)
#undef WEIR_STEP
#define WEIR_STEP(sum) _mm256_dpbusd_avx_epi32(sum, x, x)
WEIR_MULTIPLY_ADD_LOOP(int8_vnni_256, "avx2,avxvnni", __m256i, _mm256_setzero_si256(), _mm256_set1_epi8(1), WEIR_STEP)
#undef WEIR_STEP
#define WEIR_STEP(sum) _mm512_fmadd_ps(x, x, sum)
WEIR_MULTIPLY_ADD_LOOP(f32_512, "avx512f", __m512, _mm512_setzero_ps(), _mm512_set1_ps(1), WEIR_STEP)
#undef WEIR_STEP
#define WEIR_STEP(sum) _mm512_dpbusd_epi32(sum, x, x)
WEIR_MULTIPLY_ADD_LOOP(int8_512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), _mm512_set1_epi8(1), WEIR_STEP)
#undef WEIR_STEP
#define WEIR_STEP(sum) _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)x)
WEIR_MULTIPLY_ADD_LOOP(bf16_512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), _mm512_set1_epi16(0x3f80), WEIR_STEP)
#undef WEIR_STEP
#define WEIR_STEP(sum) _mm512_fmadd_ph(x, x, sum)
WEIR_MULTIPLY_ADD_LOOP(f16_512, "avx512f,avx512bw,avx512vl,avx512fp16", __m512h, _mm512_setzero_ph(),
                       _mm512_castsi512_ph(_mm512_set1_epi16(0x3c00)), WEIR_STEP)
#undef WEIR_STEP
#undef WEIR_MULTIPLY_ADD_LOOP

// The sums lie in four tiles, two tiles of left operands meet two of right ones.
using amx::HardwareTiles;

amx::TileConfig full_tiles() {
  amx::TileConfig config;
  for (int tile = 0; tile < amx::kTiles; ++tile) config.set(tile, amx::kTileRows, amx::kTileBytes);
  return config;
}

// Operands are numbers as models have them: of zeros tiles multiply up to a fifth more, since those take less power.
struct alignas(64) Operands {
  explicit Operands(bool bf16) {
    std::uint32_t random = 1;
    for (std::uint16_t& v : values) {
      random = random * 1664525 + 1013904223;
      v = static_cast<std::uint16_t>(bf16 ? 0x3f00 | (random >> 16 & 0x80ff) : random >> 16);  // ±0.5 to ±2
    }
  }
  static constexpr int kTileValues = amx::kTileRows * amx::kTileBytes / 2;
  std::uint16_t values[4 * kTileValues];
};

void fill_tiles(bool bf16) {
  const Operands operands(bf16);
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    (HardwareTiles::zero<tile>(), ...);
    (HardwareTiles::load<4 + tile>(operands.values + tile * Operands::kTileValues, amx::kTileBytes), ...);
  }(std::make_integer_sequence<int, 4>{});
}

std::uint64_t amx_int8(std::int64_t steps) {
  const amx::TileScope<HardwareTiles> scope(full_tiles());
  fill_tiles(false);
  for (std::int64_t n = 0; n < steps; ++n) {
    HardwareTiles::add_bytes<0, 4, 6>();
    HardwareTiles::add_bytes<1, 4, 7>();
    HardwareTiles::add_bytes<2, 5, 6>();
    HardwareTiles::add_bytes<3, 5, 7>();
  }
  return 0;
}

std::uint64_t amx_bf16(std::int64_t steps) {
  const amx::TileScope<HardwareTiles> scope(full_tiles());
  fill_tiles(true);
  for (std::int64_t n = 0; n < steps; ++n) {
    HardwareTiles::add_bf16<0, 4, 6>();
    HardwareTiles::add_bf16<1, 4, 7>();
    HardwareTiles::add_bf16<2, 5, 6>();
    HardwareTiles::add_bf16<3, 5, 7>();
  }
  return 0;
}

}  // namespace

void add_x86_loops(std::vector<MultiplyAddLoop>& loops) {
  const CpuFeatures& f = cpu_features();
  constexpr double kTileOps = 4.0 * 2 * 16 * 16;
  const MultiplyAddLoop all[] = {
      {"fp32 fma, 256 bit", Arithmetic::kF32, kSums * 16, f.avx2, f32_256},
      {"fp32 fma, 512 bit", Arithmetic::kF32, kSums * 32, f.avx512_vnni, f32_512},
      {"fp16 fma, 512 bit", Arithmetic::kF16, kSums * 64, f.avx512_fp16, f16_512},
      {"bf16 vdpbf16ps, 512 bit", Arithmetic::kBF16, kSums * 64, f.avx512_bf16, bf16_512},
      {"bf16 tiles", Arithmetic::kBF16, kTileOps * 32, f.amx, amx_bf16},
      {"int8 vpmaddubsw, 256 bit", Arithmetic::kInt8, kSums * 64, f.avx2, int8_256},
      {"int8 vpdpbusd, 256 bit", Arithmetic::kInt8, kSums * 64, f.avx_vnni, int8_vnni_256},
      {"int8 vpdpbusd, 512 bit", Arithmetic::kInt8, kSums * 128, f.avx512_vnni, int8_512},
      {"int8 tiles", Arithmetic::kInt8, kTileOps * 64, f.amx, amx_int8},
  };
  loops.insert(loops.end(), std::begin(all), std::end(all));
}
#else
void add_x86_loops(std::vector<MultiplyAddLoop>&) {}
#endif

}  // namespace weir::kernels
