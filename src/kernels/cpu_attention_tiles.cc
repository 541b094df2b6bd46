// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu_attention_tiles.h"

#include <algorithm>
#include <cstring>

namespace weir::kernels {
namespace {

std::int64_t block_offset(const KvLayer& layer, std::int64_t dim, std::int64_t block, std::int64_t head) {
  const std::int64_t of_head = layer.block_tokens * row_bytes(layer.type, dim);
  const std::int64_t stride = layer.block_stride > 0 ? layer.block_stride : layer.kv_heads * of_head;
  return block * stride + head * of_head;
}

KvWord stored_word(const KvLayer& layer) {
  return layer.type == DType::kF16 ? KvWord::kF16 : layer.type == DType::kBF16 ? KvWord::kBF16Pairs : KvWord::kF32;
}

// Positions from `count` on become zeros.
void clear_tail(KvWord word, std::byte* tile, std::int64_t dim, int count) {
  const bool pairs = word == KvWord::kBF16Pairs;
  const std::int64_t row = dim * word_bytes(word), first = pairs ? (count + 1) / 2 : count, rows = pairs ? kKvTile / 2 : kKvTile;
  if (first < rows) std::memset(tile + first * row, 0, static_cast<std::size_t>((rows - first) * row));
  if (!pairs || count % 2 == 0) return;
  std::byte* half = tile + count / 2 * row + 2;  // the second of each pair
  for (std::int64_t d = 0; d < dim; ++d) std::memset(half + 4 * d, 0, 2);
}

}  // namespace

bool holds_tiles(const KvLayer& layer) {
  if (layer.block_tokens % kKvTile != 0) return false;
  return layer.type == DType::kF32 || layer.type == DType::kF16 || (layer.type == DType::kBF16 && layer.key_dim % 2 == 0);
}

std::byte* block_keys(const KvLayer& layer, std::int64_t block, std::int64_t head) {
  return layer.keys + block_offset(layer, layer.key_dim, block, head);
}
std::byte* block_values(const KvLayer& layer, std::int64_t block, std::int64_t head) {
  return layer.values + block_offset(layer, layer.value_dim, block, head);
}

KvWord KvReader::word(const KernelTable& table, const KvLayer& layer) {
  const bool pairs = layer.type == DType::kBF16 || layer.type == DType::kQ8_0;
  if (pairs && table.attention.bf16.step) return KvWord::kBF16Pairs;
  return layer.type == DType::kF16 && holds_tiles(layer) && layer.values ? KvWord::kF16 : KvWord::kF32;
}

KvReader::KvReader(const KernelTable& table, const KvLayer& layer, Scratch& scratch)
    : table_(table),
      layer_(layer),
      tiled_(holds_tiles(layer)),
      stored_(stored_word(layer)),
      word_(word(table, layer)),
      key_bytes_((key_tile_bytes(word_, layer.key_dim) + 63) / 64 * 64),
      value_bytes_((value_tile_bytes(word_, layer.value_dim) + 63) / 64 * 64) {
  if (!tiled_ || stored_ != word_) keys_ = scratch.take<std::byte>(kTilesOfChunk * key_bytes_);
  values_ = scratch.take<std::byte>(kTilesOfChunk * value_bytes_);
  if (!tiled_ || !layer.values) rows_ = scratch.take<float>(kKvTile * std::int64_t{std::max(layer.key_dim, layer.value_dim)});
}

void KvReader::read(const KvPlace& place, std::int64_t position, int tiles, KvTiles& out) {
  for (int t = 0; t < tiles; ++t, position += kKvTile) tiled_ ? read_tile(place, position, t, out) : gather_tile(place, position, t, out);
}

void KvReader::read_tile(const KvPlace& place, std::int64_t position, int tile, KvTiles& out) {
  const std::int64_t token = position % layer_.block_tokens;
  const std::int64_t block = place.blocks[static_cast<std::size_t>(position / layer_.block_tokens)].value;
  const auto count = static_cast<int>(std::min<std::int64_t>(place.end - position, kKvTile));
  const std::byte* keys = block_keys(layer_, block, place.head) + token * row_bytes(layer_.type, layer_.key_dim);
  out.keys[tile] = keys_of(keys, tile);
  if (!layer_.values) {
    out.values[tile] = latent_values(keys, count, tile);
    return;
  }
  out.values[tile] = values_of(block_values(layer_, block, place.head) + token * row_bytes(layer_.type, layer_.value_dim), count, tile);
}

const std::byte* KvReader::keys_of(const std::byte* stored, int tile) {
  if (stored_ == word_) return stored;
  auto* room = reinterpret_cast<float*>(key_room(tile));
  if (stored_ == KvWord::kF16) {
    table_.widen(DType::kF16, stored, std::int64_t{layer_.key_dim} * kKvTile, room);
  } else {
    table_.attention.split_pairs(stored, layer_.key_dim / 2, kKvTile, room);
  }
  return key_room(tile);
}

const std::byte* KvReader::values_of(const std::byte* stored, int count, int tile) {
  if (stored_ == word_) {
    if (count == kKvTile) return stored;
    std::memcpy(value_room(tile), stored, static_cast<std::size_t>(value_tile_bytes(word_, layer_.value_dim)));
  } else {
    table_.attention.split_pairs(stored, kKvTile / 2, layer_.value_dim, reinterpret_cast<float*>(value_room(tile)));
  }
  if (count < kKvTile) clear_tail(word_, value_room(tile), layer_.value_dim, count);
  return value_room(tile);
}

const std::byte* KvReader::latent_values(const std::byte* keys, int count, int tile) {
  table_.attention.key_rows(stored_, keys, layer_.value_dim, rows_);
  const TileRows rows{rows_, layer_.value_dim, count, layer_.value_dim};
  (word_ == KvWord::kBF16Pairs ? table_.attention.bf16 : table_.attention.f32).pack_values(rows, value_room(tile));
  return value_room(tile);
}

void KvReader::gather_tile(const KvPlace& place, std::int64_t position, int tile, KvTiles& tiles) {
  const TileKernels& kernels = word_ == KvWord::kBF16Pairs ? table_.attention.bf16 : table_.attention.f32;
  const std::int64_t first = std::max(position, place.begin), last = std::min(position + kKvTile, place.end);
  const auto gather = [&](auto start_of, std::int64_t dim) {
    std::fill_n(rows_, (first - position) * dim, 0.0f);
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t block = place.blocks[static_cast<std::size_t>(p / layer_.block_tokens)].value, token = p % layer_.block_tokens;
      const std::byte* row = start_of(layer_, block, place.head) + token * row_bytes(layer_.type, dim);
      float* out = rows_ + (p - position) * dim;
      layer_.type == DType::kQ8_0 ? table_.attention.q8_0_row(row, dim, out) : table_.widen(layer_.type, row, dim, out);
    }
  };
  const auto count = static_cast<int>(last - position);
  gather(block_keys, layer_.key_dim);
  kernels.pack_keys({rows_, layer_.key_dim, count, layer_.key_dim}, key_room(tile));
  if (layer_.values) gather(block_values, layer_.value_dim);
  kernels.pack_values({rows_, layer_.values ? layer_.value_dim : layer_.key_dim, count, layer_.value_dim}, value_room(tile));
  tiles.keys[tile] = key_room(tile);
  tiles.values[tile] = value_room(tile);
}

void KvReader::look_ahead(const KvPlace& place, std::int64_t position, int tiles, KvTiles& out) const {
  const auto ask = [](const std::byte* from, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
  };
  out.keys[0] = out.values[0] = nullptr;
  if (!tiled_) return;
  const bool in_place = stored_ == word_ && layer_.values;
  const std::int64_t key = row_bytes(layer_.type, layer_.key_dim), value = row_bytes(layer_.type, layer_.value_dim);
  for (int t = 0; t < kTilesOfChunk; ++t) {
    const std::int64_t at = position + std::min(t, tiles - 1) * kKvTile, token = at % layer_.block_tokens;
    const std::int64_t block = place.blocks[static_cast<std::size_t>(at / layer_.block_tokens)].value;
    const std::byte* keys = block_keys(layer_, block, place.head) + token * key;
    const std::byte* values = layer_.values ? block_values(layer_, block, place.head) + token * value : nullptr;
    if (in_place) {
      out.keys[t] = keys;
      out.values[t] = values;
    } else if (t < tiles) {
      ask(keys, kKvTile * key);
      if (values) ask(values, kKvTile * value);
    }
  }
}

}  // namespace weir::kernels
