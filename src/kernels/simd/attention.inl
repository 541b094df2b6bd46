// SPDX-License-Identifier: Apache-2.0
// Attention over one chunk of positions on V. A block of entries takes each word of keys (or values) from its register many
// times; scores stay in the first-level cache between the three steps of a block: scores, softmax, weighted values. Before
// inclusion: kBlockEntries, kScoreTiles and kValueParts say how many registers of sums a block has, and `Words` what a word
// is: how it is loaded, spread and multiplied, and how a score becomes a weight.

constexpr float kNothing = -__builtin_inff();

inline void ask(const std::byte* p) { __builtin_prefetch(p, 0, 2); }  // into the second-level cache

// out[e][t · 16 …] = scores of kEntries entries at kTiles tiles of positions.
template <class Words, int kEntries, int kTiles, bool kAhead>
inline void score_tiles(const AttentionStep& s, const float* q, int tile, float* out) {
  V acc[kEntries][kTiles];
  const std::byte* keys[kTiles];
  WEIR_UNROLL
  for (int t = 0; t < kTiles; ++t) {
    keys[t] = s.keys[tile + t];
    WEIR_UNROLL
    for (int e = 0; e < kEntries; ++e) acc[e][t] = zero();
  }
  for (std::int64_t w = 0; w < s.key_words; ++w) {
    typename Words::Lanes key[kTiles];
    WEIR_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      key[t] = Words::lanes(keys[t] + w * kKvTile * Words::kBytes);
      if (kAhead) ask(s.next_keys[tile + t] + w * kKvTile * Words::kBytes);
    }
    WEIR_UNROLL
    for (int e = 0; e < kEntries; ++e) {
      const auto x = Words::spread(q + e * s.key_words + w);
      WEIR_UNROLL
      for (int t = 0; t < kTiles; ++t) acc[e][t] = Words::dot(acc[e][t], x, key[t]);
    }
  }
  WEIR_UNROLL
  for (int e = 0; e < kEntries; ++e) WEIR_UNROLL
  for (int t = 0; t < kTiles; ++t) store(out + e * kKvChunk + (tile + t) * kKvTile, acc[e][t]);
}

template <class Words, int kEntries, bool kAhead>
inline void score_block(const AttentionStep& s, const float* q, float* out) {
  int tile = 0;
  for (; tile + kScoreTiles <= s.tiles; tile += kScoreTiles) score_tiles<Words, kEntries, kScoreTiles, kAhead>(s, q, tile, out);
  for (; tile < s.tiles; ++tile) score_tiles<Words, kEntries, 1, kAhead>(s, q, tile, out);
}

// Scores of one entry as the softmax sees them: capped, and nothing where the entry may not look.
inline void mask_scores(const AttentionStep& s, int entry, float* scores) {
  alignas(64) static constexpr float kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const V lanes = load(kLanes), nothing = set1(kNothing);
  for (int t = 0; t < s.tiles; ++t) {
    V x = load(scores + t * kKvTile);
    if (s.softcap > 0) x = set1(s.softcap) * tanh(x);
    const V from = set1(static_cast<float>(s.begin[entry] - t * kKvTile)), to = set1(static_cast<float>(s.end[entry] - t * kKvTile));
    store(scores + t * kKvTile, choose_less(lanes, from, nothing, choose_less(lanes, to, x, nothing)));
  }
}

inline void rescale(const AttentionSums& sums, float factor, std::int64_t dim) {
  const V f = set1(factor);
  store(sums.weights, load(sums.weights) * f);
  for (std::int64_t d = 0; d < dim; d += kKvTile) store(sums.acc + d, load(sums.acc + d) * f);
}

// Two tiles' scores to weights, the second only if there is one.
template <class Words>
WEIR_INLINE void weigh_pair(const float* scores, bool second, V level, V& total, typename Words::Weight* weights) {
  const V low = Words::weight_of(load(scores) - level);
  const V high = second ? Words::weight_of(load(scores + kKvTile) - level) : zero();
  total = total + low;
  total = total + high;
  Words::put_weights(weights, low, high);
}

// Scores of kTiles (0: `some`) tiles to weights relative to the entry's maximum.
template <class Words, int kTiles>
inline void softmax_entry(const AttentionSums& sums, int some, std::int64_t dim, const float* scores, typename Words::Weight* weights) {
  V most = load(scores);
  if constexpr (kTiles > 0) {
    WEIR_UNROLL
    for (int t = 1; t < kTiles; ++t) most = max(most, load(scores + t * kKvTile));
  } else {
    for (int t = 1; t < some; ++t) most = max(most, load(scores + t * kKvTile));
  }
  if (any_less(set1(*sums.max + kMaxSlack), most)) [[unlikely]] {
    const float before = *sums.max;
    *sums.max = largest(most);
    if (before != kNothing) rescale(sums, first_lane(exp2_exact(set1(before - *sums.max))), dim);  // else they are zeros
  }
  const V level = set1(*sums.max);
  V total = load(sums.weights);
  if constexpr (kTiles > 0) {
    WEIR_UNROLL
    for (int t = 0; t < kTiles; t += 2) weigh_pair<Words>(scores + t * kKvTile, t + 1 < kTiles, level, total, weights + t * kKvTile);
  } else {
    for (int t = 0; t < some; t += 2) weigh_pair<Words>(scores + t * kKvTile, t + 1 < some, level, total, weights + t * kKvTile);
  }
  store(sums.weights, total);
}

template <class Words>
inline void softmax(const AttentionStep& s, int entry, float* scores, typename Words::Weight* weights) {
  if (s.begin[entry] >= s.end[entry]) {
    for (int t = 0; t < s.tiles; t += 2) Words::put_weights(weights + t * kKvTile, zero(), zero());
    return;
  }
  if (s.softcap > 0 || s.begin[entry] > 0 || s.end[entry] < s.tiles * kKvTile) mask_scores(s, entry, scores);
  if (s.tiles == kTilesOfChunk) return softmax_entry<Words, kTilesOfChunk>(s.sums.from(entry), 0, s.value_dim, scores, weights);
  softmax_entry<Words, 0>(s.sums.from(entry), s.tiles, s.value_dim, scores, weights);
}

// acc[e][d …] += weights · values for kEntries entries and kParts registers of dimensions, of which the last has `count`.
template <class Words, int kEntries, int kParts, bool kAhead>
inline void weigh_parts(const AttentionStep& s, const typename Words::Weight* weights, const AttentionSums& sums, std::int64_t d,
                        std::int64_t count) {
  V acc[kEntries][kParts];
  WEIR_UNROLL
  for (int e = 0; e < kEntries; ++e) WEIR_UNROLL
  for (int p = 0; p < kParts; ++p) acc[e][p] = load(sums.acc + e * sums.acc_stride + d + p * 16);
  for (int t = 0; t < s.tiles; ++t) {
    const std::byte* value = s.values[t] + d * Words::kBytes;
    const std::byte* next = kAhead ? s.next_values[t] + d * Words::kBytes : nullptr;
    const typename Words::Weight* weight = weights + t * kKvTile;
    for (int w = 0; w < Words::kValueRows; ++w, value += s.value_dim * Words::kBytes) {
      typename Words::Lanes x[kParts];
      WEIR_UNROLL
      for (int p = 0; p < kParts; ++p) {
        const std::byte* part = value + p * 16 * Words::kBytes;
        x[p] = p + 1 < kParts ? Words::lanes(part) : Words::some_lanes(part, count);
        if (kAhead) ask(next + (w * s.value_dim + p * 16) * Words::kBytes);
      }
      WEIR_UNROLL
      for (int e = 0; e < kEntries; ++e) {
        const auto y = Words::spread_weight(weight + e * kKvChunk, w);
        WEIR_UNROLL
        for (int p = 0; p < kParts; ++p) acc[e][p] = Words::dot(acc[e][p], y, x[p]);
      }
    }
  }
  WEIR_UNROLL
  for (int e = 0; e < kEntries; ++e) WEIR_UNROLL
  for (int p = 0; p < kParts; ++p) store(sums.acc + e * sums.acc_stride + d + p * 16, acc[e][p]);
}

template <class Words, int kEntries, bool kAhead>
inline void weigh_block(const AttentionStep& s, const typename Words::Weight* weights, const AttentionSums& sums) {
  constexpr int kWidth = 16 * kValueParts;
  std::int64_t d = 0;
  for (; d + kWidth <= s.value_dim; d += kWidth) weigh_parts<Words, kEntries, kValueParts, kAhead>(s, weights, sums, d, 16);
  for (; d < s.value_dim; d += 16)
    weigh_parts<Words, kEntries, 1, kAhead>(s, weights, sums, d, s.value_dim - d < 16 ? s.value_dim - d : 16);
}

// Tiles up to the last that one of some entries sees.
inline int seen_tiles(const AttentionStep& s, int entry, int entries) {
  int seen = 0;
  for (int e = entry; e < entry + entries; ++e) seen = s.begin[e] < s.end[e] && s.end[e] > seen ? s.end[e] : seen;
  return seen < (s.tiles - 1) * kKvTile ? (seen + kKvTile - 1) / kKvTile : s.tiles;
}

template <class Words, int kEntries, bool kAhead>
inline void attend_block(AttentionStep s, int entry) {
  s.tiles = seen_tiles(s, entry, kEntries);
  if (s.tiles == 0) return;
  alignas(64) float scores[kEntries * kKvChunk];
  alignas(64) typename Words::Weight weights[kEntries * kKvChunk];
  score_block<Words, kEntries, kAhead>(s, s.q + entry * s.key_words, scores);
  for (int e = 0; e < kEntries; ++e) softmax<Words>(s, entry + e, scores + e * kKvChunk, weights + e * kKvChunk);
  weigh_block<Words, kEntries, kAhead>(s, weights, s.sums.from(entry));
}

// As many entries as fill a block, else three (groups of three heads are common in small models), two or one. Returns how many.
template <class Words, bool kAhead>
inline int attend_some(const AttentionStep& s, int entry) {
  if (entry + kBlockEntries <= s.entries) return attend_block<Words, kBlockEntries, kAhead>(s, entry), kBlockEntries;
  if constexpr (kBlockEntries > 3) {
    if (entry + 3 <= s.entries) return attend_block<Words, 3, kAhead>(s, entry), 3;
  }
  if (entry + 2 <= s.entries) return attend_block<Words, 2, kAhead>(s, entry), 2;
  return attend_block<Words, 1, kAhead>(s, entry), 1;
}

template <class Words>
inline void attention_step(const AttentionStep& s) {
  int entry = s.next_keys[0] ? attend_some<Words, true>(s, 0) : 0;
  while (entry < s.entries) entry += attend_some<Words, false>(s, entry);
}
