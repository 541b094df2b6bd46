// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_bpe_engine.h"

#include <fmt/core.h>

namespace weir::tokenizer {

void escape_spaces(std::string_view text, std::string& out) {
  for (char c : text) {
    if (c == ' ') {
      out += "\u2581";
    } else {
      out += c;
    }
  }
}

void ByteBpeEngine::encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const {
  std::string_view text = stretch.text;
  if (!pre_tokenizer_.traits().byte_level) {
    scratch.text.clear();
    escape_spaces(text, scratch.text);
    text = scratch.text;
  }
  pre_tokenizer_.split(text, scratch.ends, scratch.other_ends);
  std::size_t begin = 0;
  for (std::size_t end : scratch.ends) {
    const std::string_view piece = text.substr(begin, end - begin);
    begin = end;
    if (pre_tokenizer_.traits().newline_runs_whole && piece[0] == '\n') {
      if (const auto whole = bpe_.token_of(piece)) {
        out.push_back(*whole);
        continue;
      }
    }
    bpe_.encode(piece, scratch.bpe, out);
  }
}

std::string ByteBpeEngine::description() const {
  return fmt::format("{} BPE, pre-tokeniser {}", pre_tokenizer_.traits().byte_level ? "byte-level" : "character", name_);
}

}  // namespace weir::tokenizer
