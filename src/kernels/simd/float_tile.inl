// SPDX-License-Identifier: Apache-2.0
// Conversions of rows, and the way of finished products to the output, on V.

template <DType type>
inline V load_weights(const std::byte* p) {
  if constexpr (type == DType::kF32) return load(reinterpret_cast<const float*>(p));
  if constexpr (type == DType::kF16) return load_f16(p);
  return load_bf16(p);
}

// The first n weights, zeros beyond.
template <DType type>
inline V load_weights_n(const std::byte* p, std::int64_t n) {
  constexpr std::int64_t kBytes = type == DType::kF32 ? 4 : 2;
  alignas(64) std::byte padded[64] = {};
  __builtin_memcpy(padded, p, static_cast<std::size_t>(n * kBytes));
  return load_weights<type>(padded);
}

inline void write_dots(const DotsTile& t) {
  const bool past_caches =
      t.past_caches && (reinterpret_cast<std::uintptr_t>(t.out) | static_cast<std::uintptr_t>(t.out_stride * 4)) % 64 == 0;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    for (std::int64_t o = 0; o < t.outs; o += kPanelOuts) {
      const V dots = load(t.dots + o / kPanelOuts * t.dots_stride + r * kPanelOuts);
      float* out = t.out + r * t.out_stride + o;
      if (const std::int64_t n = t.outs - o; n < kPanelOuts) {
        const V value = t.bias ? dots + load_n(t.bias + o, n) : dots;
        store_n(out, t.accumulate ? load_n(out, n) + value : value, n);
      } else {
        const V value = t.bias ? dots + load(t.bias + o) : dots;
        if (t.accumulate) {
          store(out, load(out) + value);
        } else if (past_caches) {
          store_past_caches(out, value);
        } else {
          store(out, value);
        }
      }
    }
  }
  if (past_caches) _mm_sfence();  // other threads read them
}

inline void widen_row(DType type, const std::byte* row, std::int64_t n, float* out) {
  if (type == DType::kF32) {
    if (n > 0) __builtin_memcpy(out, row, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  if (type != DType::kF16 && type != DType::kBF16) return reference::widen(type, row, n, out);
  std::int64_t i = 0;
  if (type == DType::kF16) {
    for (; i + 16 <= n; i += 16) store(out + i, load_f16(row + 2 * i));
    if (i < n) store_n(out + i, load_weights_n<DType::kF16>(row + 2 * i, n - i), n - i);
  } else {
    for (; i + 16 <= n; i += 16) store(out + i, load_bf16(row + 2 * i));
    if (i < n) store_n(out + i, load_weights_n<DType::kBF16>(row + 2 * i, n - i), n - i);
  }
}

inline void narrow_row(DType type, const float* x, std::int64_t n, std::byte* out) {
  std::int64_t i = 0;
  if (type == DType::kF16) {
    for (; i + 16 <= n; i += 16) store_f16(out + 2 * i, load(x + i));
  } else if (type == DType::kBF16) {
    for (; i + 16 <= n; i += 16) store_bf16(out + 2 * i, load(x + i));
  }
  reference::narrow(type, x + i, n - i, out + (type == DType::kF32 ? 4 : 2) * i);
}
