// SPDX-License-Identifier: Apache-2.0
// For the tests of this folder: tables to run, random data, and buffers that a sanitizer guards to the byte.
#pragma once

#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/reference/half.h"
#include "tensor/block_formats.h"

namespace weir::kernels::test {

inline bool runs_emulated_amx() { return cpu_features().avx512_bf16 && cpu_features().avx512_vbmi; }

inline std::vector<const KernelTable*> runnable_tables() {
  std::vector<const KernelTable*> tables{&reference_table()};
  if (cpu_features().avx2) tables.push_back(avx2_table());
  if (cpu_features().avx512_vnni) tables.push_back(avx512_table());
  if (cpu_features().avx2) tables.push_back(cpu_features().avx_vnni ? avx2_vnni_table() : avx2_vnni_emulated_table());
  if (cpu_features().avx512_bf16) tables.push_back(avx512_bf16_table());
  if (runs_emulated_amx()) tables.push_back(amx_emulated_table());
  if (cpu_features().amx) tables.push_back(amx_table());
  return tables;
}

inline const std::vector<DType> kQuantized{DType::kQ4_0,   DType::kQ4_1,   DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                           DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                           DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};
inline const std::vector<DType> kPlain{DType::kF32, DType::kF16, DType::kBF16};

using Floats = std::vector<float>;

inline Floats random_floats(std::int64_t count, unsigned seed, float spread = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  Floats values(static_cast<std::size_t>(count));
  for (float& v : values) v = normal(random);
  return values;
}

// Rows of a weight with random bytes and sensible scales.
inline std::vector<std::byte> random_weights(DType type, std::int64_t rows, std::int64_t cols, unsigned seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows * row_bytes(type, cols)));
  std::mt19937 random(seed);
  const DTypeInfo& info = dtype_info(type);
  if (!info.quantized) {
    const Floats values = random_floats(rows * cols, seed, 0.1f);
    reference_table().narrow(type, values.data(), rows * cols, bytes.data());
    return bytes;
  }
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  const auto put_half = [&](std::size_t at, float magnitude) {
    const std::uint16_t bits = float_to_f16(magnitude * std::uniform_real_distribution<float>(-1, 1)(random));
    std::memcpy(bytes.data() + at, &bits, sizeof bits);
  };
  const auto size = static_cast<std::size_t>(info.block_bytes);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    switch (type) {
      case DType::kQ2_K: put_half(at + 80, 0.01f), put_half(at + 82, 0.01f); break;
      case DType::kQ3_K: put_half(at + 108, 0.003f); break;
      case DType::kQ6_K: put_half(at + 208, 1e-4f); break;
      case DType::kQ4_K:
      case DType::kQ5_K: put_half(at, 1e-3f), put_half(at + 2, 1e-3f); break;
      case DType::kMXFP4: bytes[at] = static_cast<std::byte>(118 + random() % 6); break;
      case DType::kQ4_1:
      case DType::kQ5_1: put_half(at, 0.02f), put_half(at + 2, 0.2f); break;
      default: put_half(at, type == DType::kIQ4_XS ? 1e-4f : type == DType::kQ8_0 || type == DType::kIQ4_NL ? 2e-3f : 0.02f); break;
    }
  }
  return bytes;
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline float largest_difference(const Floats& a, const Floats& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace weir::kernels::test
