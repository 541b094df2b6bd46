// SPDX-License-Identifier: Apache-2.0
// Keys and values as the tiles that a kernel table's attention reads: where they lie in the cache, and how those come that
// do not lie so (other types, odd block sizes, values that are a part of the keys).
#pragma once

#include <span>

#include "kernels/kernel_table.h"
#include "kernels/scratch.h"

namespace weir::kernels {

// Whether the layer's memory holds tiles (see KvLayer); else rows.
bool holds_tiles(const KvLayer& layer);
// Where the keys (values) of a block and KV head start.
std::byte* block_keys(const KvLayer& layer, std::int64_t block, std::int64_t head);
std::byte* block_values(const KvLayer& layer, std::int64_t block, std::int64_t head);

// One KV head of one sequence. Blocks of positions before `begin` may be gone.
struct KvPlace {
  std::span<const BlockId> blocks;
  std::int64_t head, begin, end;
};

// Consecutive tiles of it.
struct KvTiles {
  const std::byte* keys[kTilesOfChunk];
  const std::byte* values[kTilesOfChunk];
};

class KvReader {
 public:
  // `scratch` holds what had to be converted, until the next read().
  KvReader(const KernelTable& table, const KvLayer& layer, Scratch& scratch);

  // Tiles from `position` (a multiple of kKvTile) on. Only positions [begin, end) of the sequence are there to be read; the
  // values of later ones come as zeros.
  void read(const KvPlace& place, std::int64_t position, int tiles, KvTiles& out);
  // Where the tiles lie that will be read next, for a step to ask for; those of a shorter chunk are repeated. When tiles do not
  // come as they lie, they are asked for at once, and `out` has nothing.
  void look_ahead(const KvPlace& place, std::int64_t position, int tiles, KvTiles& out) const;

  // What the table's kernels for this layer are.
  static KvWord word(const KernelTable& table, const KvLayer& layer);

 private:
  void read_tile(const KvPlace& place, std::int64_t position, int tile, KvTiles& out);
  void gather_tile(const KvPlace& place, std::int64_t position, int tile, KvTiles& tiles);
  const std::byte* keys_of(const std::byte* stored, int tile);
  const std::byte* values_of(const std::byte* stored, int count, int tile);
  const std::byte* latent_values(const std::byte* keys, int count, int tile);
  std::byte* key_room(int tile) { return keys_ + tile * key_bytes_; }
  std::byte* value_room(int tile) { return values_ + tile * value_bytes_; }

  const KernelTable& table_;
  const KvLayer& layer_;
  bool tiled_;
  KvWord stored_, word_;  // of the tiles in the cache, and of those that come out
  std::int64_t key_bytes_, value_bytes_;
  std::byte *keys_ = nullptr, *values_ = nullptr;  // [kTilesOfChunk] tiles
  float* rows_ = nullptr;                          // [kKvTile][the larger dimension]
};

}  // namespace weir::kernels
