// SPDX-License-Identifier: Apache-2.0
// SentencePiece's compiled normalisation ("precompiled_charsmap"): a double-array trie (Darts, as in Yata et al.) from input to
// offsets of replacement strings. The longest entry at a place is replaced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::tokenizer {

class Charsmap {
 public:
  struct Replacement {
    std::string_view text;
    std::size_t consumed;
  };

  Charsmap() = default;  // replaces nothing
  // kCorrupt when the parts do not fit one another.
  static Result<Charsmap> parse(std::string_view bytes);

  std::optional<Replacement> replace(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;  // each ended by a zero byte
};

}  // namespace weir::tokenizer
