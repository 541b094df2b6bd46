// SPDX-License-Identifier: Apache-2.0
// The eight tile registers of AMX behind one set of names: HardwareTiles are the instructions, EmulatedTiles
// (emulated_tiles.h) plain C++ with the same meaning, so that kernels written on a Tiles type run in tests on any machine.
#pragma once

#include <cstdint>

namespace weir::kernels::amx {

inline constexpr int kTiles = 8, kTileRows = 16, kTileBytes = 64;  // of a row

struct alignas(64) TileConfig {  // as the processor reads it
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, int tile_rows, int bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

// A thread's tiles have this shape from here on, and are given back at the end of the scope: the system then need not save them.
template <class Tiles>
class TileScope {
 public:
  explicit TileScope(const TileConfig& config) { Tiles::configure(config); }
  ~TileScope() { Tiles::release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

#if defined(__x86_64__)
// Written as assembly, because GCC's intrinsics take a tile's number as a token, which no template argument is.
struct HardwareTiles {
  static void configure(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config)); }
  static void release() { __asm__ volatile("tilerelease"); }
  template <int tile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  static void load(const void* p, std::int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* p, std::int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(tile) : "memory");
  }
  // c[m][n] += four signed bytes of a[m] · four unsigned bytes of b, for each four of a's row.
  template <int c, int a, int b>
  static void add_bytes() {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
  template <int c, int a, int b>
  static void add_signed_bytes() {  // b signed as well
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
  // The same with pairs of bf16, in float: first and second of the pairs are summed apart, then added, then added to c.
  template <int c, int a, int b>
  static void add_bf16() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
};
#endif

}  // namespace weir::kernels::amx
