// SPDX-License-Identifier: Apache-2.0
// Words are gathered character by character, so that the normalised text is walked once.
#include "tokenizer/wordpiece_engine.h"

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {

void WordPieceEngine::encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const {
  std::string& word = scratch.text;
  word.clear();
  const auto finish = [&] {
    if (!word.empty()) model_.encode(word, out);
    word.clear();
  };
  for (char32_t code : bert_normalize(to_utf32(stretch.text), options_)) {
    if (is_space(code)) {
      finish();
      continue;
    }
    const bool alone = is_bert_punctuation(code, options_.as_gguf);
    if (alone) finish();
    append_utf8(code, word);
    if (alone) finish();
  }
  finish();
}

}  // namespace weir::tokenizer
