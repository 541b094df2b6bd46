// SPDX-License-Identifier: Apache-2.0
// A step of attention on tiles: up to sixteen (row, head) pairs at a time meet a chunk of positions. Keys and values lie in the cache as
// tiles read them; scores and weights pass through the first-level cache, where AVX-512 makes the ones into the others. Tiles 0 to 3 are
// sums, 4 holds queries or weights, 6 and 7 take turns with keys or values. Weights of 32 positions are multiplied together, always the
// same 32: sums depend on a pair's own positions alone. Included inside an anonymous namespace, under the target of BF16, after
// simd/attention.inl.

constexpr int kWeightStride = kKvChunk + 2 * kKvTile;  // of an entry; an odd number of tiles writes one more
constexpr int kPairsOfChunk = kTilesOfChunk / 2;
constexpr int kTogether = 4;                 // tiles of sums
constexpr std::int64_t kMostValueDim = 256;  // with tiles

// Calls f.template operator()<i>() for i below `count`, up to kTogether.
template <class Function>
WEIR_INLINE void for_tiles(int count, Function f) {
  switch (count) {
    case 4: return for_each_index<4>(f);
    case 3: return for_each_index<3>(f);
    case 2: return for_each_index<2>(f);
    default: return for_each_index<1>(f);
  }
}

inline TileConfig attention_config(int entries) {
  TileConfig config;
  for (int t = 0; t < 5; ++t) config.set(t, entries, kTileBytes);
  for (int t = 5; t < kTiles; ++t) config.set(t, kTileRows, kTileBytes);
  return config;
}

inline void ask_for(const std::byte* first, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += kTileBytes) ask(first + at);
}

// out[e][t · 16 …] = scores of the entries at all tiles of positions.
template <class Tiles>
inline void score_entries(const AttentionStep& s, const float* q, bool ahead, float* out) {
  const std::int64_t query_bytes = s.key_words * 4;
  for (int tile = 0; tile < s.tiles; tile += kTogether) {
    const int count = s.tiles - tile < kTogether ? s.tiles - tile : kTogether;
    for_tiles(count, [&]<int i> { Tiles::template zero<i>(); });
    for (std::int64_t w = 0; w < s.key_words; w += kTileRows) {
      Tiles::template load<4>(q + w, query_bytes);
      for_tiles(count, [&]<int i> {
        Tiles::template load<6 + i % 2>(s.keys[tile + i] + w * kTileBytes, kTileBytes);
        Tiles::template add_bf16<i, 4, 6 + i % 2>();
        if (ahead) ask_for(s.next_keys[tile + i] + w * kTileBytes, kTileRows * kTileBytes);
      });
    }
    for_tiles(count, [&]<int i> { Tiles::template store<i>(out + (tile + i) * kKvTile, kKvChunk * 4); });
  }
}

// Values of each 32 positions of the chunk, [16][value_dim] pairs. Where the two tiles do not lie side by side they are copied; the
// partner that a tile has not got has weights of zero, so any values do.
class ValuePairs {
 public:
  explicit ValuePairs(const AttentionStep& s) {
    const std::int64_t bytes = kKvTile / 2 * s.value_dim * 4;
    for (int t = 0; t < s.tiles; ++t) {
      const int place = s.first_tile + t, pair = place / 2;
      if (place % 2 == 0 && t + 1 < s.tiles && s.values[t + 1] == s.values[t] + bytes) {
        at_[pair] = s.values[t++];
        continue;
      }
      const bool second = place % 2 == 1, alone = second || t + 1 == s.tiles;
      std::byte* room = room_ + pair * kPairBytes;
      __builtin_memcpy(room, s.values[t], static_cast<std::size_t>(bytes));
      __builtin_memcpy(room + bytes, s.values[alone ? t : t + 1], static_cast<std::size_t>(bytes));
      at_[pair] = room;
      if (!alone) ++t;
    }
  }
  const std::byte* operator[](int pair) const { return at_[pair]; }

 private:
  static constexpr std::int64_t kPairBytes = kKvTile * kMostValueDim * 4;
  const std::byte* at_[kPairsOfChunk];
  alignas(64) std::byte room_[kPairsOfChunk * kPairBytes];  // not cleared: what is read was copied
};

// acc[e] += weights · values.
template <class Tiles>
inline void weigh_entries(const AttentionStep& s, const std::uint16_t* weights, const ValuePairs& values, bool ahead,
                          const AttentionSums& sums) {
  const std::int64_t row_bytes = s.value_dim * 4, acc_bytes = sums.acc_stride * 4;
  const int first = s.first_tile / 2, last = (s.first_tile + s.tiles - 1) / 2;
  for (std::int64_t d = 0; d < s.value_dim; d += kTogether * kKvTile) {
    const auto parts = static_cast<int>(s.value_dim - d < kTogether * kKvTile ? (s.value_dim - d) / kKvTile : kTogether);
    for_tiles(parts, [&]<int i> { Tiles::template load<i>(sums.acc + d + i * kKvTile, acc_bytes); });
    for (int pair = first; pair <= last; ++pair) {
      Tiles::template load<4>(weights + pair * 2 * kKvTile, kWeightStride * 2);
      const std::byte* at = values[pair] + d * 4;
      for_tiles(parts, [&]<int i> {
        Tiles::template load<6 + i % 2>(at + i * kTileBytes, row_bytes);
        Tiles::template add_bf16<i, 4, 6 + i % 2>();
      });
    }
    for_tiles(parts, [&]<int i> { Tiles::template store<i>(sums.acc + d + i * kKvTile, acc_bytes); });
  }
  if (!ahead) return;
  for (int t = 0; t < s.tiles; ++t) ask_for(s.next_values[t], kKvTile / 2 * row_bytes);
}

// Entries [entry, entry + count), which fill the configured tiles.
template <class Tiles>
inline void attend_entries(AttentionStep s, int entry, int count, const ValuePairs& values, bool ahead) {
  s.tiles = seen_tiles(s, entry, count);
  if (s.tiles == 0) return;
  alignas(64) float scores[kTileRows * kKvChunk];
  alignas(64) std::uint16_t weights[kTileRows * kWeightStride];
  if (s.tiles < kTilesOfChunk) __builtin_memset(weights, 0, sizeof weights);
  score_entries<Tiles>(s, s.q + entry * s.key_words, ahead, scores);
  for (int e = 0; e < count; ++e)
    softmax<PairWords>(s, entry + e, scores + e * kKvChunk, weights + e * kWeightStride + s.first_tile * kKvTile);
  weigh_entries<Tiles>(s, weights, values, ahead, s.sums.from(entry));
}

// Keys of a multiple of 32 dimensions and values of a multiple of 16, up to kMostValueDim; others go without tiles.
template <class Tiles>
void tile_step(const AttentionStep& s) {
  if (s.key_words % kTileRows != 0 || s.value_dim % kKvTile != 0 || s.value_dim > kMostValueDim) return attention_step<PairWords>(s);
  const ValuePairs values(s);
  const int whole = s.entries / kTileRows * kTileRows;
  bool ahead = s.next_keys[0] != nullptr;
  const auto attend = [&](int begin, int end, int count) {
    const TileScope<Tiles> scope(attention_config(count));
    for (int entry = begin; entry < end; entry += count, ahead = false) attend_entries<Tiles>(s, entry, count, values, ahead);
  };
  if (whole > 0) attend(0, whole, kTileRows);
  if (whole < s.entries) attend(whole, s.entries, s.entries - whole);
}
