// SPDX-License-Identifier: Apache-2.0
// Tile registers in memory, one set a thread. What the processor would fault on is a failed check here.
#pragma once

#include <cstring>

#include "base/check.h"
#include "kernels/amx/tiles.h"
#include "kernels/reference/half.h"

namespace weir::kernels::amx {

class EmulatedTiles {
 public:
  static void configure(const TileConfig& config) {
    WEIR_CHECK(config.palette == 1 && config.start_row == 0);
    for (int t = 0; t < 16; ++t) {
      const bool used = config.rows[t] > 0;
      WEIR_CHECK(used == (config.row_bytes[t] > 0) && (!used || t < kTiles), "tile {}", t);
      WEIR_CHECK(config.rows[t] <= kTileRows && config.row_bytes[t] <= kTileBytes && config.row_bytes[t] % 4 == 0, "tile {}", t);
    }
    state() = {.config = config, .ready = true, .data = {}};
  }
  static void release() { state().ready = false; }

  template <int tile>
  static void zero() {
    std::memset(data(tile), 0, sizeof(Data));
  }
  template <int tile>
  static void load(const void* p, std::int64_t stride) {
    zero<tile>();
    for (int r = 0; r < rows(tile); ++r) std::memcpy(data(tile)[r], static_cast<const char*>(p) + r * stride, row_bytes(tile));
  }
  template <int tile>
  static void store(void* p, std::int64_t stride) {
    for (int r = 0; r < rows(tile); ++r) std::memcpy(static_cast<char*>(p) + r * stride, data(tile)[r], row_bytes(tile));
  }

  template <int c, int a, int b>
  static void add_bytes() {
    add_bytes_of<std::uint8_t>(c, a, b);
  }
  template <int c, int a, int b>
  static void add_signed_bytes() {
    add_bytes_of<std::int8_t>(c, a, b);
  }

  // Products of bf16 are exact in float, so that multiplying and adding rounds as the fused instruction does.
  template <int c, int a, int b>
  static void add_bf16() {
    check_product(c, a, b);
    for (int m = 0; m < rows(c); ++m) {
      float results[kTileBytes / 4];
      std::uint16_t x[kTileBytes / 2], w[kTileBytes / 2];
      float sums[kTileBytes / 2] = {};
      std::memcpy(results, data(c)[m], sizeof results);
      std::memcpy(x, data(a)[m], sizeof x);
      for (int k = 0; k < rows(b); ++k) {
        std::memcpy(w, data(b)[k], sizeof w);
        for (int n = 0; n < kTileBytes / 2; ++n) sums[n] = flushed(sums[n] + flushed(value(x[k * 2 + n % 2]) * value(w[n])));
      }
      for (int n = 0; n < kTileBytes / 4; ++n) results[n] = flushed(flushed(results[n]) + flushed(sums[2 * n] + sums[2 * n + 1]));
      std::memcpy(data(c)[m], results, row_bytes(c));
    }
  }

 private:
  using Data = std::uint8_t[kTileRows][kTileBytes];
  struct State {
    TileConfig config;
    bool ready = false;
    Data data[kTiles] = {};
  };

  static State& state() {
    thread_local State tiles;
    return tiles;
  }
  static Data& data(int tile) {
    WEIR_CHECK(state().ready && state().config.rows[tile] > 0, "tile {} is not configured", tile);
    return state().data[tile];
  }
  static int rows(int tile) { return state().config.rows[tile]; }
  static std::size_t row_bytes(int tile) { return state().config.row_bytes[tile]; }
  static void check_product(int c, int a, int b) {
    WEIR_CHECK(c != a && c != b && a != b);
    WEIR_CHECK(rows(c) == rows(a) && row_bytes(c) == row_bytes(b) && row_bytes(a) == static_cast<std::size_t>(rows(b)) * 4,
               "tiles of {}x{}, {}x{}, {}x{}", rows(c), row_bytes(c), rows(a), row_bytes(a), rows(b), row_bytes(b));
  }

  template <class Byte>
  static void add_bytes_of(int c, int a, int b) {
    check_product(c, a, b);
    for (int m = 0; m < rows(c); ++m) {
      std::int32_t sums[kTileBytes / 4];
      std::int8_t x[kTileBytes];
      std::memcpy(sums, data(c)[m], sizeof sums);
      std::memcpy(x, data(a)[m], sizeof x);
      for (int k = 0; k < rows(b); ++k) {
        Byte w[kTileBytes];
        std::memcpy(w, data(b)[k], sizeof w);
        for (int n = 0; n < kTileBytes / 4; ++n)
          for (int i = 0; i < 4; ++i) sums[n] += x[k * 4 + i] * w[n * 4 + i];
      }
      std::memcpy(data(c)[m], sums, row_bytes(c));
    }
  }

  static float value(std::uint16_t bits) { return flushed(bf16_to_float(bits)); }
  static float flushed(float x) { return x > -0x1p-126f && x < 0x1p-126f ? 0.0f * x : x; }
};

}  // namespace weir::kernels::amx
