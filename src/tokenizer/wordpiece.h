// SPDX-License-Identifier: Apache-2.0
// WordPiece (BERT): each word is cut greedily into the longest tokens from its left; a word that cannot be is unknown as a
// whole. Word starts and continuations are told apart by a mark: "##" on continuations, or GGUF's U+2581 on word starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {

struct WordPieceOptions {
  std::string start_mark;                // before the first token of a word
  std::string continuation_mark = "##";  // before the others
  TokenId unknown = 0;
  std::size_t max_characters = 100;  // longer words are unknown
};

class WordPiece {
 public:
  WordPiece(const Vocabulary& vocabulary, WordPieceOptions options);

  void encode(std::string_view word, std::vector<TokenId>& out) const;

 private:
  WordPieceOptions options_;
  Trie trie_;
  std::int32_t start_ = Trie::kNone, continuation_ = Trie::kNone;  // the nodes behind the marks
};

}  // namespace weir::tokenizer
