// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/sentencepiece_engine.h"

#include "tokenizer/byte_bpe_engine.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {
constexpr std::string_view kSpaceMark = "\u2581";
}

bool words_are_apart(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    if (!text.empty() && word_end(text, 0) != text.size()) return false;
  }
  return true;
}

std::size_t word_end(std::string_view text, std::size_t at) {
  while (text.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
  return std::min(text.find(kSpaceMark, at), text.size());
}

SpmBpeEngine::SpmBpeEngine(Bpe bpe, const Vocabulary& vocabulary, bool space_prefix)
    : bpe_(std::move(bpe)), space_prefix_(space_prefix), words_apart_(words_are_apart(vocabulary)) {}

void SpmBpeEngine::encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const {
  std::string& text = scratch.text;
  text.clear();
  if (space_prefix_ && (stretch.first || stretch.after_special)) text += kSpaceMark;
  escape_spaces(stretch.text, text);
  if (!words_apart_) return bpe_.encode(text, scratch.bpe, out);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = word_end(text, begin);
    bpe_.encode(std::string_view(text).substr(begin, end - begin), scratch.bpe, out);
    begin = end;
  }
}

void UnigramEngine::normalize(std::string_view text, std::string& out) const {
  bool in_word = false, space_before_word = options_.space_prefix;
  if (!options_.merge_spaces && options_.space_prefix) out += kSpaceMark;
  const auto put = [&](char c) {
    if (c == ' ') {
      in_word = false;
      if (!options_.merge_spaces) out += kSpaceMark;
      return;
    }
    if (!in_word && options_.merge_spaces && space_before_word) out += kSpaceMark;
    in_word = space_before_word = true;
    out += c;
  };
  while (!text.empty()) {
    std::size_t taken = user_defined_.longest(text).length;
    if (taken > 0) {  // tokens of the model's author are not normalised
      for (char c : text.substr(0, taken)) put(c);
    } else if (const auto replaced = charsmap_.replace(text)) {
      taken = replaced->consumed;
      for (char c : replaced->text) put(c);
    } else {
      taken = utf8_length(text[0]);
      for (char c : text.substr(0, taken)) put(c);
    }
    text.remove_prefix(taken);
  }
}

void UnigramEngine::encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.text.clear();
  normalize(stretch.text, scratch.text);
  model_.encode(scratch.text, scratch.lattice, out);
}

}  // namespace weir::tokenizer
