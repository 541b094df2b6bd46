// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/wordpiece.h"

#include "tokenizer/utf8.h"

namespace weir::tokenizer {

WordPiece::WordPiece(const Vocabulary& vocabulary, WordPieceOptions options) : options_(std::move(options)) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.text(id).empty()) trie_.add(vocabulary.text(id), id);
  }
  start_ = trie_.walk(options_.start_mark);
  continuation_ = trie_.walk(options_.continuation_mark);
}

void WordPiece::encode(std::string_view word, std::vector<TokenId>& out) const {
  std::size_t characters = 0;
  for (char c : word) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  const std::size_t before = out.size();
  bool known = characters <= options_.max_characters;
  std::int32_t from = start_;
  while (known && !word.empty()) {
    const Trie::Longest piece = from == Trie::kNone ? Trie::Longest{} : trie_.longest(word, from);
    known = piece.length > 0 && (piece.length == word.size() || (static_cast<unsigned char>(word[piece.length]) & 0xC0) != 0x80);
    out.push_back(piece.token);
    word.remove_prefix(piece.length);
    from = continuation_;
  }
  if (!known) {
    out.resize(before);
    out.push_back(options_.unknown);
  }
}

}  // namespace weir::tokenizer
