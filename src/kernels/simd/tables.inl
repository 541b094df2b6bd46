// SPDX-License-Identifier: Apache-2.0
// Codebooks of simd/unpack.inl with their zero point added (quant_traits).

inline __m128i iq4_table() {
  alignas(16) std::int8_t table[16];
  for (int i = 0; i < 16; ++i) table[i] = static_cast<std::int8_t>(kIQ4Values[i] ^ -128);
  return _mm_load_si128(reinterpret_cast<const __m128i*>(table));
}
inline __m128i mxfp4_table() {
  alignas(16) std::int8_t table[16];
  for (int i = 0; i < 16; ++i) table[i] = static_cast<std::int8_t>(kMXFP4Values[i] + 16);
  return _mm_load_si128(reinterpret_cast<const __m128i*>(table));
}
