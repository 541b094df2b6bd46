// SPDX-License-Identifier: Apache-2.0
// GGUF's "bert" model: BERT's basic tokenisation, then WordPiece.
#pragma once

#include "tokenizer/bert_text.h"
#include "tokenizer/engine.h"
#include "tokenizer/wordpiece.h"

namespace weir::tokenizer {

class WordPieceEngine final : public Engine {
 public:
  WordPieceEngine(WordPiece model, BertOptions options) : model_(std::move(model)), options_(options) {}

  void encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const override;
  std::string description() const override { return "WordPiece"; }

 private:
  WordPiece model_;
  BertOptions options_;
};

}  // namespace weir::tokenizer
