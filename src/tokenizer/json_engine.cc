// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_engine.h"

#include "tokenizer/sentencepiece_engine.h"

namespace weir::tokenizer {

void JsonEngine::encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const {
  std::string_view text = stretch.text;
  if (!normalizer_.empty()) {
    scratch.other_text.assign(text);
    normalizer_.apply(scratch.other_text);
    text = scratch.other_text;
  }
  SpecialTokens::Search search(tokens_, text, stretch.parse_special);
  std::size_t done = 0;
  while (const auto match = search.next()) {
    encode_pieces(text.substr(done, match->begin - done), stretch.first && done == 0, scratch, out);
    out.push_back(match->id);
    done = match->end;
  }
  encode_pieces(text.substr(done), stretch.first && done == 0, scratch, out);
}

void JsonEngine::encode_pieces(std::string_view text, bool first, Scratch& scratch, std::vector<TokenId>& out) const {
  if (text.empty()) return;
  Pieces& pieces = scratch.pieces;
  pieces.text.assign(text);
  pieces.list.assign(1, {0, text.size(), first});
  pre_tokenizer_.apply(pieces);
  for (const Pieces::Piece& piece : pieces.list) {
    encode_piece(std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin), scratch, out);
  }
}

void JsonEngine::encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (const auto* unigram = std::get_if<Unigram>(&model_)) return unigram->encode(piece, scratch.lattice, out);
  if (const auto* words = std::get_if<WordPiece>(&model_)) return words->encode(piece, out);
  const Bpe& bpe = std::get<Bpe>(model_);
  if (!words_apart_) return bpe.encode(piece, scratch.bpe, out);
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::size_t end = word_end(piece, begin);
    bpe.encode(piece.substr(begin, end - begin), scratch.bpe, out);
    begin = end;
  }
}

std::string JsonEngine::description() const {
  if (std::holds_alternative<Unigram>(model_)) return "unigram";
  if (std::holds_alternative<WordPiece>(model_)) return "WordPiece";
  return std::get<Bpe>(model_).options().byte_level ? "byte-level BPE" : "BPE";
}

}  // namespace weir::tokenizer
