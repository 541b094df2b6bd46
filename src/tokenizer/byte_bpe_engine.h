// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE as GGUF files of type "gpt2" mean it: a named pre-tokeniser, then BPE on each piece. Also its relative on
// characters (Gemma 4), where spaces are written as U+2581 and only lines are cut.
#pragma once

#include "tokenizer/engine.h"
#include "tokenizer/pre_tokenizer.h"

namespace weir::tokenizer {

class ByteBpeEngine final : public Engine {
 public:
  ByteBpeEngine(Bpe bpe, PreTokenizer pre_tokenizer, std::string name)
      : bpe_(std::move(bpe)), pre_tokenizer_(std::move(pre_tokenizer)), name_(std::move(name)) {}

  void encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const override;
  std::string description() const override;

 private:
  Bpe bpe_;
  PreTokenizer pre_tokenizer_;
  std::string name_;
};

// Spaces become U+2581, as SentencePiece writes them.
void escape_spaces(std::string_view text, std::string& out);

}  // namespace weir::tokenizer
