// SPDX-License-Identifier: Apache-2.0
// The one Tokenizer class: special tokens are cut out, an Engine encodes what lies between, a template adds what the model
// wants around. The loaders (gguf_loader, json_loader) only fill in its parts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tokenizer/engine.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {

// Turns ids into text in a way that is more than joining their bytes.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  virtual std::string decode(std::span<const std::string_view> token_texts) const = 0;
};

struct TokenizerParts {
  Vocabulary vocabulary;
  std::unique_ptr<const Engine> engine;
  SpecialTokens special;                       // searched with parse_special
  SpecialTokens plain;                         // searched without
  std::vector<TokenId> prefix, suffix;         // put around with add_special
  StringTable bytes;                           // of each token, as token_bytes() gives them
  std::vector<bool> hidden;                    // tokens that are left out of text unless asked for
  std::unique_ptr<const TextDecoder> decoder;  // absent: the tokens' bytes are joined
};

class CoreTokenizer final : public Tokenizer {
 public:
  CoreTokenizer(SpecialRoles roles, TokenizerParts parts);
  ~CoreTokenizer() override;

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids, bool special) const override;
  std::string token_bytes(TokenId id, bool special) const override;
  std::string_view token_text(TokenId id) const override;
  TokenKind kind(TokenId id) const override;
  std::optional<TokenId> find(std::string_view token_text) const override { return parts_.vocabulary.find(token_text); }
  std::int32_t vocab_size() const override { return parts_.vocabulary.size(); }
  std::string description() const override;

 private:
  void encode_text(std::string_view text, bool parse_special, Scratch& scratch, std::vector<TokenId>& out) const;
  std::string_view bytes_of(TokenId id, bool special) const;
  std::unique_ptr<Scratch> borrow() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;

  TokenizerParts parts_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;  // as many as threads have encoded at once
};

}  // namespace weir::tokenizer
