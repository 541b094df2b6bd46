// SPDX-License-Identifier: Apache-2.0
// The tokens of a model: text as the file writes it, score, kind. And GPT-2's byte alphabet, in which byte-level
// vocabularies write arbitrary bytes as printable characters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "tokenizer/string_table.h"
#include "tokenizer/tokenizer.h"

namespace weir::tokenizer {

class Vocabulary {
 public:
  void reserve(std::size_t count);
  TokenId add(std::string_view text, float score, TokenKind kind);
  // A number without a token, as files with gaps in their numbering have.
  TokenId add_gap();

  std::int32_t size() const { return texts_.size(); }
  bool contains(TokenId id) const { return id >= 0 && id < size(); }
  std::string_view text(TokenId id) const { return texts_.text(id); }
  float score(TokenId id) const { return scores_[static_cast<std::size_t>(id)]; }
  TokenKind kind(TokenId id) const { return kinds_[static_cast<std::size_t>(id)]; }
  void set_kind(TokenId id, TokenKind kind) { kinds_[static_cast<std::size_t>(id)] = kind; }
  std::optional<TokenId> find(std::string_view text) const {
    const std::int32_t found = texts_.find(text);
    return found == StringTable::kNone ? std::nullopt : std::optional<TokenId>(found);
  }

 private:
  StringTable texts_;
  std::vector<float> scores_;
  std::vector<TokenKind> kinds_;
};

// The character that stands for a byte: itself when printable in Latin-1, else one from U+0100 on.
char32_t byte_to_alphabet(std::uint8_t byte);
// The bytes of a text in the alphabet; nothing when it holds another character or is not UTF-8.
std::optional<std::string> bytes_of_alphabet(std::string_view text);
std::string alphabet_of_bytes(std::string_view bytes);

// The byte of a token "<0xAB>".
std::optional<std::uint8_t> parse_byte_token(std::string_view text);
std::string byte_token(std::uint8_t byte);

}  // namespace weir::tokenizer
