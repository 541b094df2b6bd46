// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding (Sennrich et al. 2016): a piece starts as one symbol per byte (or character), then the adjacent pair
// of the lowest rank is joined, the leftmost first, until no pair is in the list. Pairs are looked up by symbol numbers
// in a flat table; pieces seen before come from a cache. A symbol is a token's number, or one beyond the vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/string_table.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {

struct BpeOptions {
  bool byte_level = true;      // symbols are bytes, tokens are written in GPT-2's alphabet; else symbols are characters
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  bool byte_fallback = false;  // a character without token becomes its bytes' <0xAB> tokens
  bool fuse_unknown = false;   // adjacent unknowns give one
  bool join_texts = false;     // merges name texts, in the vocabulary or not (GGUF); else both sides and the result must be tokens
  std::optional<TokenId> unknown = std::nullopt;
};

// What a thread needs to encode: buffers that keep their memory, and the cache of pieces. Belongs to one model.
class BpeScratch {
 public:
  BpeScratch();

 private:
  friend class Bpe;
  static constexpr std::size_t kKeyBytes = 32, kIds = 7, kEntries = 1 << 14;
  struct alignas(64) Entry {  // one cache line
    std::array<std::uint64_t, kKeyBytes / 8> key{};
    std::uint8_t key_size = 0, ids = 0;
    std::array<TokenId, kIds> id{};
  };
  struct Candidate {
    std::uint32_t rank, at;
  };
  struct Node {  // of the list of symbols of a long piece; rank and result are those of the pair that starts here
    std::uint32_t symbol, rank, result, previous, next;
  };

  std::vector<Entry> cache_;
  std::vector<std::uint32_t> symbols_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

class Bpe {
 public:
  // A merge as the file writes it.
  using MergeText = std::pair<std::string_view, std::string_view>;

  static Result<Bpe> build(const Vocabulary& vocabulary, std::span<const MergeText> merges, const BpeOptions& options);

  // SentencePiece's BPE, which has no list: any two adjacent symbols that are a token together may join, the token of the
  // highest score first. Symbols are characters.
  static Bpe from_scores(const Vocabulary& vocabulary, const BpeOptions& options);

  // Appends the ids of a piece of valid UTF-8 (or of any bytes, for a byte-level model).
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;

  // The token that a whole piece is.
  std::optional<TokenId> token_of(std::string_view piece) const {
    const std::int32_t symbol = symbols_.find(piece);
    return symbol != StringTable::kNone && symbol < tokens_ ? std::optional<TokenId>(symbol) : std::nullopt;
  }
  // The symbol's bytes: for tokens what they stand for in the text.
  std::string_view bytes(TokenId id) const { return symbols_.text(id); }
  const BpeOptions& options() const { return options_; }

 private:
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
  struct Merge {
    std::uint64_t pair = ~0ull;
    std::uint32_t rank = kNoRank, result = 0;
  };

  void add_vocabulary(const Vocabulary& vocabulary, bool ordinary_only);
  Status add_merges(std::span<const MergeText> merges);
  Result<std::uint32_t> side_of(std::string_view text, std::size_t merge);
  void add_scored_merges(const Vocabulary& vocabulary);
  void insert(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t result);
  std::size_t slot_of(std::uint64_t pair) const;
  const Merge& find(std::uint32_t left, std::uint32_t right) const;

  void encode_uncached(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;
  void split(std::string_view piece, std::vector<std::uint32_t>& symbols) const;
  void split_characters(std::string_view piece, std::vector<std::uint32_t>& symbols) const;
  void merge_short(std::vector<std::uint32_t>& symbols) const;
  void merge_long(BpeScratch& scratch) const;
  void append_token(std::uint32_t symbol, std::vector<TokenId>& out) const;

  BpeOptions options_;
  std::int32_t tokens_ = 0;
  StringTable symbols_;
  std::vector<Merge> merges_;  // a power of two, at most half full
  std::size_t merge_count_ = 0;
  std::array<std::int32_t, 256> byte_symbol_{};  // byte-level: the symbol of each byte, kNone when there is none
  std::array<TokenId, 256> byte_token_{};        // the token a byte falls back to, kNone when there is none
};

}  // namespace weir::tokenizer
