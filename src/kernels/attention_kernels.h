// SPDX-License-Identifier: Apache-2.0
// Attention's part of a kernel table. Keys and values come in tiles of sixteen positions whose words a register holds side
// by side, so that nothing is transposed while attending; a word is what one multiply-add takes of each position or
// dimension: a float, an F16, or a pair of BF16 for the instruction that multiplies pairs. The cache keeps its tiles in this
// form (KvLayer); what lies otherwise is packed on the way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::kernels {

inline constexpr int kKvTile = 16;       // positions side by side
inline constexpr int kKvChunk = 128;     // positions of one step of the online softmax, aligned to absolute positions
inline constexpr int kKvSegment = 1024;  // positions whose partial results are merged in order; a multiple of the chunk
inline constexpr int kTilesOfChunk = kKvChunk / kKvTile;

// A row's maximum only moves when a score exceeds it by more than this (in powers of two): weights then stay below
// 2^kMaxSlack, and sums are rescaled a few times instead of at every chunk.
inline constexpr float kMaxSlack = 8;

// What a tile's words are. Keys of a tile: [words of a key][kKvTile]. Values: kF32 and kF16 [kKvTile][dim]; kBF16Pairs
// [kKvTile / 2][dim], a word holding two positions.
enum class KvWord { kF32, kF16, kBF16Pairs };

constexpr std::int64_t key_words(KvWord word, std::int64_t dim) { return word == KvWord::kBF16Pairs ? (dim + 1) / 2 : dim; }
constexpr std::int64_t word_bytes(KvWord word) { return word == KvWord::kF16 ? 2 : 4; }
constexpr std::int64_t key_tile_bytes(KvWord word, std::int64_t dim) { return key_words(word, dim) * kKvTile * word_bytes(word); }
constexpr std::int64_t value_tile_bytes(KvWord word, std::int64_t dim) {
  return (word == KvWord::kBF16Pairs ? kKvTile / 2 : kKvTile) * dim * word_bytes(word);
}

// (row, head) pairs that share keys and values: each has a running maximum (in powers of two), sixteen partial sums of its
// weights (of positions that are equal modulo 16) and its weighted values so far.
struct AttentionSums {
  float* max;               // [entries]
  float* weights;           // [entries][kKvTile]
  float* acc;               // [entries][acc_stride]
  std::int64_t acc_stride;  // a multiple of 16

  AttentionSums from(std::int64_t entry) const { return {max + entry, weights + entry * kKvTile, acc + entry * acc_stride, acc_stride}; }
};

// One chunk of at most kTilesOfChunk tiles for all entries. An entry's arithmetic depends neither on its neighbours nor on
// tiles of which it sees nothing (these add exact zeros).
struct AttentionStep {
  int entries;
  const float* q;  // [entries][key_words] 32-bit words, as pack_query wrote them
  std::int64_t key_words, value_dim;
  int tiles;
  const std::byte* const* keys;       // [tiles]
  const std::byte* const* values;     // [tiles]; finite also where no entry looks
  const std::byte* const* next_keys;  // [tiles] what is read next: asked for ahead of time; the first is null when there is none
  const std::byte* const* next_values;
  const int* begin;  // [entries] positions that the entry sees, counted from the first tile; none when begin ≥ end
  const int* end;
  float softcap;  // > 0: capped scores, in powers of two, are softcap · tanh(score)
  AttentionSums sums;
  int first_tile = 0;  // of the chunk's, by position: only a window's first chunk begins behind its start
};

// Rows as floats into a tile. Positions from `count` on are zeros.
struct TileRows {
  const float* rows;  // [count], `stride` floats apart
  std::int64_t stride;
  int count;  // ≤ kKvTile
  std::int64_t dim;
};

// One kind of words: the step, and how queries and rows become what it reads.
struct TileKernels {
  void (*step)(const AttentionStep& step);
  void (*pack_query)(const float* q, std::int64_t dim, float scale, float* out);  // out = scale · q as words; an odd last BF16 gets a zero
  void (*pack_keys)(const TileRows& rows, std::byte* tile);
  void (*pack_values)(const TileRows& rows, std::byte* tile);
};

struct AttentionKernels {
  TileKernels f32;
  TileKernels bf16;  // queries and weights rounded to BF16, sums in float; step is null where there are no such instructions
  void (*step_f16)(const AttentionStep& step);  // F16 tiles, otherwise as f32

  // The first `dim` dimensions of a tile of keys as rows [kKvTile][dim] of floats.
  void (*key_rows)(KvWord word, const std::byte* tile, std::int64_t dim, float* rows);
  // A row of Q8_0 to floats.
  void (*q8_0_row)(const std::byte* row, std::int64_t dim, float* out);
  // `rows` rows of n pairs of BF16 to 2 · rows rows of n floats: first halves, then second halves.
  void (*split_pairs)(const std::byte* words, std::int64_t rows, std::int64_t n, float* out);

  // One entry: `total` continues with `part`, whose positions follow.
  void (*merge)(const AttentionSums& total, const AttentionSums& part, std::int64_t dim);
  // out = weighted values / sum of weights. `sink`: one more logit (in powers of two) without a value, or null.
  void (*finish)(const AttentionSums& sums, const float* sink, std::int64_t dim, float* out);
};

}  // namespace weir::kernels
