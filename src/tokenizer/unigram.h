// SPDX-License-Identifier: Apache-2.0
// Unigram language model (Kudo 2018): of all ways to cut a text into tokens the one with the highest sum of scores (log
// probabilities), by Viterbi over a trie. A character that no token covers is unknown, at ten below the worst score.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {

struct UnigramToken {
  TokenId id;
  double score;
};

class Unigram {
 public:
  // Buffers of a call.
  struct Lattice {
    struct Node {
      double score;
      std::size_t begin;
      TokenId id;  // kUnknown when no token
    };
    std::vector<Node> best;
    std::vector<std::size_t> borders;
  };

  Unigram(const Vocabulary& vocabulary, const std::vector<UnigramToken>& tokens, double worst_score, std::optional<TokenId> unknown,
          bool byte_fallback);

  // Appends the ids of valid UTF-8. Unknown characters in a row give one unknown token, or their bytes' tokens.
  void encode(std::string_view text, Lattice& lattice, std::vector<TokenId>& out) const;

 private:
  static constexpr TokenId kUnknown = -1;
  void append_unknown(std::string_view text, std::vector<TokenId>& out) const;

  Trie trie_;
  std::vector<double> scores_;  // by token
  double unknown_score_;
  std::optional<TokenId> unknown_;
  std::vector<TokenId> byte_tokens_;  // 256 of them, or none
};

}  // namespace weir::tokenizer
