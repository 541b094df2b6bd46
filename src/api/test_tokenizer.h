// SPDX-License-Identifier: Apache-2.0
// For tests: a tokenizer of a few words, written as byte-level vocabularies write them ("Ġ" for a space), with special tokens and a
// token that holds half a character.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace weir::api::testing {

class TestTokenizer : public tokenizer::Tokenizer {
 public:
  TestTokenizer() {
    bos = 0;
    eos = 1;
    end_of_generation = {1};
    add_bos = true;
  }
  std::vector<TokenId> encode(std::string_view, const tokenizer::EncodeOptions&) const override { return {}; }
  std::string decode(std::span<const TokenId> ids, bool special) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, special);
    return text;
  }
  std::string token_bytes(TokenId id, bool special) const override {
    if (kind(id) == tokenizer::TokenKind::kControl && !special) return {};
    return tokens()[static_cast<std::size_t>(id)].bytes;
  }
  std::string_view token_text(TokenId id) const override { return tokens()[static_cast<std::size_t>(id)].text; }
  tokenizer::TokenKind kind(TokenId id) const override { return id < 2 ? tokenizer::TokenKind::kControl : tokenizer::TokenKind::kNormal; }
  std::optional<TokenId> find(std::string_view text) const override {
    for (std::size_t i = 0; i < tokens().size(); ++i)
      if (tokens()[i].text == text) return static_cast<TokenId>(i);
    return std::nullopt;
  }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(tokens().size()); }
  std::string description() const override { return "test"; }

 private:
  struct Token {
    std::string text, bytes;
  };
  static const std::vector<Token>& tokens() {
    static const std::vector<Token> all = {{"<s>", "<s>"}, {"</s>", "</s>"}, {"Hello", "Hello"}, {"Ġworld", " world"},
                                           {"Ã", "\xc3"},  {"©", "\xa9"},    {"!", "!"},         {"!", "!"}};  // one text twice
    return all;
  }
};

}  // namespace weir::api::testing
