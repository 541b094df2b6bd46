// SPDX-License-Identifier: Apache-2.0
// For this folder's tests only: a token for each byte, one for a word, and an end. Needs no model file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace weir::grammar::testing {

class ByteTokenizer final : public tokenizer::Tokenizer {
 public:
  static constexpr TokenId kWord = 256, kTool = 257, kEnd = 258;

  ByteTokenizer() { end_of_generation = {kEnd}; }

  std::vector<TokenId> encode(std::string_view text, const tokenizer::EncodeOptions&) const override {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      const bool word = text.starts_with("true");
      ids.push_back(word ? kWord : static_cast<TokenId>(static_cast<unsigned char>(text[0])));
      text.remove_prefix(word ? 4 : 1);
    }
    return ids;
  }
  std::string decode(std::span<const TokenId> ids, bool special) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, special);
    return text;
  }
  std::string token_bytes(TokenId id, bool special) const override {
    if (id == kWord) return "true";
    if (id > kWord) return special ? std::string(token_text(id)) : "";
    return std::string(1, static_cast<char>(id));
  }
  std::string_view token_text(TokenId id) const override { return id == kTool ? "<|tool|>" : id == kEnd ? "<|end|>" : ""; }
  tokenizer::TokenKind kind(TokenId id) const override {
    return id > kWord ? tokenizer::TokenKind::kControl : tokenizer::TokenKind::kNormal;
  }
  std::optional<TokenId> find(std::string_view text) const override {
    if (text.size() == 1) return static_cast<TokenId>(static_cast<unsigned char>(text[0]));
    return std::nullopt;
  }
  std::int32_t vocab_size() const override { return kEnd + 1; }
  std::string description() const override { return "bytes"; }
};

}  // namespace weir::grammar::testing
