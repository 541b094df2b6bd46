// SPDX-License-Identifier: Apache-2.0
// The name of a whole block of tokens with everything before it: a chained 64-bit hash. Routers compute the same names for a
// prompt, so the function is part of the interface and must not change quietly (block_hash_test.cc holds values). It is fast, not
// cryptographic: whoever finds a block by its hash compares the tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace weir::kvcache {

using BlockHash = std::uint64_t;

// Both halves of the 128-bit product, folded.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// The parent of a sequence's first block. The salt keeps tenants (and adapters) apart: FNV-1a over its bytes, folded once.
inline BlockHash root_hash(std::string_view salt) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : salt) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fold_multiply(hash ^ 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93);
}

// `prefilled` positions at the block's start were computed as prefill, the others as decode rows: where the two differ in
// arithmetic, they are different contents. A prompt's blocks have prefilled = tokens.size().
inline BlockHash block_hash(BlockHash parent, std::span<const TokenId> tokens, std::int32_t prefilled) {
  std::uint64_t hash = fold_multiply(parent ^ 0xa0761d6478bd642f, 0xe7037ed1a0b428db ^ static_cast<std::uint32_t>(prefilled));
  for (std::size_t i = 0; i < tokens.size(); i += 2) {
    const std::uint64_t low = static_cast<std::uint32_t>(tokens[i]);
    const std::uint64_t high = i + 1 < tokens.size() ? static_cast<std::uint32_t>(tokens[i + 1]) : 0xffffffffu;
    hash = fold_multiply(hash ^ (high << 32 | low) ^ 0x8ebc6af09c88c6e3, 0x589965cc75374cc3);
  }
  return hash;
}

}  // namespace weir::kvcache
