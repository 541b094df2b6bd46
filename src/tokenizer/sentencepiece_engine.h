// SPDX-License-Identifier: Apache-2.0
// GGUF's "llama" model (SentencePiece BPE) and "t5" model (SentencePiece unigram): spaces are written as U+2581, and the text
// may get one in front.
#pragma once

#include "tokenizer/charsmap.h"
#include "tokenizer/engine.h"
#include "tokenizer/unigram.h"

namespace weir::tokenizer {

class SpmBpeEngine final : public Engine {
 public:
  SpmBpeEngine(Bpe bpe, const Vocabulary& vocabulary, bool space_prefix);

  void encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const override;
  std::string description() const override { return "SentencePiece BPE"; }

 private:
  Bpe bpe_;
  bool space_prefix_;
  bool words_apart_;  // no token has U+2581 behind another character, so that words can be encoded (and cached) one by one
};

struct UnigramOptions {
  bool space_prefix = true;
  bool merge_spaces = true;  // runs of spaces become one, those at the ends none
};

class UnigramEngine final : public Engine {
 public:
  UnigramEngine(Unigram model, Charsmap charsmap, Trie user_defined, UnigramOptions options)
      : model_(std::move(model)), charsmap_(std::move(charsmap)), user_defined_(std::move(user_defined)), options_(options) {}

  void encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const override;
  std::string description() const override { return "SentencePiece unigram"; }

 private:
  void normalize(std::string_view text, std::string& out) const;

  Unigram model_;
  Charsmap charsmap_;
  Trie user_defined_;
  UnigramOptions options_;
};

// True when every token that text can become has U+2581 only at its start.
bool words_are_apart(const Vocabulary& vocabulary);

// The end of the word that starts at `at`: before the next U+2581 that follows another character.
std::size_t word_end(std::string_view text, std::size_t at);

}  // namespace weir::tokenizer
