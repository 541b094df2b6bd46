// SPDX-License-Identifier: Apache-2.0
// The pipeline of a tokenizer.json on a stretch of text: normalise, cut out the added tokens that are looked for in normalised
// text, cut into pieces, encode each piece with the model.
#pragma once

#include <variant>

#include "tokenizer/engine.h"
#include "tokenizer/json_normalizer.h"
#include "tokenizer/json_pre_tokenizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/wordpiece.h"

namespace weir::tokenizer {

using JsonModel = std::variant<Bpe, Unigram, WordPiece>;

class JsonEngine final : public Engine {
 public:
  // `words_apart`: pieces may be cut before U+2581 without changing the ids (see words_are_apart).
  JsonEngine(JsonNormalizer normalizer, SpecialTokens normalized_tokens, JsonPreTokenizer pre_tokenizer, JsonModel model, bool words_apart)
      : normalizer_(std::move(normalizer)),
        tokens_(std::move(normalized_tokens)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        model_(std::move(model)),
        words_apart_(words_apart) {}

  void encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const override;
  std::string description() const override;

 private:
  void encode_pieces(std::string_view text, bool first, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

  JsonNormalizer normalizer_;
  SpecialTokens tokens_;
  JsonPreTokenizer pre_tokenizer_;
  JsonModel model_;
  bool words_apart_;
};

}  // namespace weir::tokenizer
