// SPDX-License-Identifier: Apache-2.0
// Finds tokens that are taken out of the text before it is tokenised: control tokens ("<|im_end|>") and what a model's author
// added. A trie over their bytes; of the tokens at the leftmost place the longest wins.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace weir::tokenizer {

struct SpecialToken {
  TokenId id = -1;
  bool control = false;      // only with parse_special
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // and behind it
  bool single_word = false;  // not inside of a word
};

class SpecialTokens {
 public:
  struct Match {
    std::size_t begin, end;  // with the white space that it takes
    TokenId id;
  };

  // kUnsupported when the text is longer than 1024 bytes, which keeps the search linear. An empty text is left out.
  Status add(std::string_view text, const SpecialToken& token);
  bool empty() const { return tokens_.empty(); }

  // Walks over the tokens in a text.
  class Search {
   public:
    Search(const SpecialTokens& tokens, std::string_view text, bool parse_control)
        : tokens_(tokens), text_(text), parse_control_(parse_control) {}
    std::optional<Match> next();

   private:
    const SpecialTokens& tokens_;
    std::string_view text_;
    bool parse_control_;
    std::size_t at_ = 0;     // where to look on
    std::size_t taken_ = 0;  // the end of the last match
  };

 private:
  struct Node {
    std::uint8_t byte = 0;
    std::int32_t child = -1, sibling = -1;
    std::int32_t token = -1;  // index into tokens_
  };
  std::int32_t child_of(std::int32_t node, std::uint8_t byte) const;
  // The longest token at a position: its index and length; -1 when there is none.
  std::pair<std::int32_t, std::size_t> longest(std::string_view text) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<std::int32_t, 256> root_ = filled();
  std::vector<SpecialToken> tokens_;
  bool any_plain_ = false;

  static constexpr std::array<std::int32_t, 256> filled() {
    std::array<std::int32_t, 256> none{};
    none.fill(-1);
    return none;
  }
};

}  // namespace weir::tokenizer
