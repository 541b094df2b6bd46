// SPDX-License-Identifier: Apache-2.0
// Attention over one chunk of positions on V; a chunk is two V wide. Before inclusion: kScoreRows, rows of a tile of scores,
// and kValueTile, sums of a tile of values.

template <DType type>
inline void transpose_keys(const std::byte* keys, std::int64_t dim, int first, int count, float* transposed) {
  constexpr std::int64_t kBytes = type == DType::kF32 ? 4 : 2;
  for (int p = 0; p < count; p += 16) {
    const int here = count - p < 16 ? count - p : 16;
    for (std::int64_t d = 0; d < dim; d += 16) {
      V rows[16];
      WEIR_UNROLL
      for (int i = 0; i < 16; ++i) {
        if (i >= here) {
          rows[i] = zero();
          continue;
        }
        const std::byte* at = keys + ((p + i) * dim + d) * kBytes;
        rows[i] = dim - d >= 16 ? load_weights<type>(at) : load_weights_n<type>(at, dim - d);
      }
      if (dim - d >= 16) {
        transpose16(rows, transposed + d * kKvChunk + first + p, kKvChunk);
        continue;
      }
      alignas(64) float square[256];
      transpose16(rows, square, 16);
      for (std::int64_t i = 0; i < dim - d; ++i) store(transposed + (d + i) * kKvChunk + first + p, load(square + i * 16));
    }
  }
}

// Whole groups of 16 lanes are written when the first lane is aligned: lanes beyond `count` belong to later positions.
inline void load_keys(DType type, const std::byte* keys, std::int64_t dim, int first, int count, float* transposed) {
  if (first % 16 == 0) {
    if (type == DType::kF32) return transpose_keys<DType::kF32>(keys, dim, first, count, transposed);
    if (type == DType::kF16) return transpose_keys<DType::kF16>(keys, dim, first, count, transposed);
    return transpose_keys<DType::kBF16>(keys, dim, first, count, transposed);
  }
  const std::int64_t bytes = type == DType::kF32 ? 4 : 2;
  alignas(64) float part[16];
  for (int p = 0; p < count; ++p) {
    for (std::int64_t d = 0; d < dim; d += 16) {
      const std::int64_t here = dim - d < 16 ? dim - d : 16;
      widen_row(type, keys + (p * dim + d) * bytes, here, part);
      for (std::int64_t i = 0; i < here; ++i) transposed[(d + i) * kKvChunk + first + p] = part[i];
    }
  }
}

template <int kRows>
inline void score_rows(const float* const* q, const float* transposed, std::int64_t dim, float* scores) {
  V acc[kRows][2];
  WEIR_UNROLL
  for (auto& line : acc) line[0] = line[1] = zero();
  for (std::int64_t d = 0; d < dim; ++d) {
    const V low = load(transposed + d * kKvChunk), high = load(transposed + d * kKvChunk + 16);
    WEIR_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V x = set1(q[r][d]);
      acc[r][0] = fma(x, low, acc[r][0]);
      acc[r][1] = fma(x, high, acc[r][1]);
    }
  }
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    store(scores + r * kKvChunk, acc[r][0]);
    store(scores + r * kKvChunk + 16, acc[r][1]);
  }
}

inline void scores(const float* const* q, int rows, const float* transposed, std::int64_t dim, float* out) {
  int r = 0;
  for (; r + kScoreRows <= rows; r += kScoreRows) score_rows<kScoreRows>(q + r, transposed, dim, out + r * kKvChunk);
  for (; r + 2 <= rows; r += 2) score_rows<2>(q + r, transposed, dim, out + r * kKvChunk);
  for (; r < rows; ++r) score_rows<1>(q + r, transposed, dim, out + r * kKvChunk);
}

inline float softmax_chunk(float* scores, int begin, int end, float scale, float softcap, SoftmaxState& state) {
  alignas(64) static constexpr float kLanes[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  const V nothing = set1(-__builtin_inff()), from = set1(static_cast<float>(begin)), to = set1(static_cast<float>(end));
  V s[2];
  WEIR_UNROLL
  for (int i = 0; i < 2; ++i) {
    s[i] = load(scores + 16 * i) * set1(scale);
    if (softcap > 0) s[i] = soft_cap(s[i], set1(softcap));
    const V lane = load(kLanes + 16 * i);
    s[i] = choose_less(lane, from, nothing, choose_less(lane, to, s[i], nothing));
  }
  const float top = largest(max(s[0], s[1]));
  const float most = top > state.max ? top : state.max;
  WEIR_UNROLL
  for (int i = 0; i < 2; ++i) {
    s[i] = exp(s[i] - set1(most));
    store(scores + 16 * i, s[i]);
  }
  const float factor = first_lane(exp(set1(state.max) - set1(most)));
  state.sum = state.sum * factor + sum(s[0] + s[1]);
  state.max = most;
  return factor;
}

// kRows rows × kParts · 16 dimensions from `d` on; `count` of the last 16 exist.
template <int kRows, int kParts>
inline void weigh_block(const ValueTile& t, int row, std::int64_t d, std::int64_t count) {
  int begin = t.begin[row], end = t.end[row];  // the positions that all rows see
  WEIR_UNROLL
  for (int r = 1; r < kRows; ++r) {
    begin = t.begin[row + r] > begin ? t.begin[row + r] : begin;
    end = t.end[row + r] < end ? t.end[row + r] : end;
  }
  V acc[kRows][kParts];
  const auto value = [&](int p, int part) {
    return load_part(t.values + (p - t.first) * t.stride + d + 16 * part, part + 1 < kParts ? 16 : count);
  };
  const auto add_alone = [&](int r, int from, int to) {
    for (int p = from; p < to; ++p) WEIR_UNROLL
    for (int i = 0; i < kParts; ++i) acc[r][i] = fma(set1(t.weights[(row + r) * kKvChunk + p]), value(p, i), acc[r][i]);
  };
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    WEIR_UNROLL
    for (int i = 0; i < kParts; ++i)
      acc[r][i] = load_part(t.acc[row + r] + d + 16 * i, i + 1 < kParts ? 16 : count) * set1(t.factors[row + r]);
    add_alone(r, t.begin[row + r], begin < t.end[row + r] ? begin : t.end[row + r]);
  }
  for (int p = begin; p < end; ++p) {
    V values[kParts];
    WEIR_UNROLL
    for (int i = 0; i < kParts; ++i) values[i] = value(p, i);
    WEIR_UNROLL
    for (int r = 0; r < kRows; ++r) WEIR_UNROLL
    for (int i = 0; i < kParts; ++i) acc[r][i] = fma(set1(t.weights[(row + r) * kKvChunk + p]), values[i], acc[r][i]);
  }
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    add_alone(r, end > begin ? end : begin, t.end[row + r]);
    WEIR_UNROLL
    for (int i = 0; i < kParts; ++i) store_part(t.acc[row + r] + d + 16 * i, acc[r][i], i + 1 < kParts ? 16 : count);
  }
}

template <int kRows>
inline void weigh_rows(const ValueTile& t, int row) {
  constexpr int kParts = kValueTile / kRows < 4 ? kValueTile / kRows : 4;
  std::int64_t d = 0;
  for (; d + 16 * kParts <= t.dim; d += 16 * kParts) weigh_block<kRows, kParts>(t, row, d, 16);
  for (; d < t.dim; d += 16) weigh_block<kRows, 1>(t, row, d, t.dim - d < 16 ? t.dim - d : 16);
}

inline void weigh_values(const ValueTile& t) {
  int row = 0;
  for (; row + 4 <= t.rows; row += 4) weigh_rows<4>(t, row);
  for (; row + 2 <= t.rows; row += 2) weigh_rows<2>(t, row);
  for (; row < t.rows; ++row) weigh_rows<1>(t, row);
}
