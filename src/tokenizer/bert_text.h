// SPDX-License-Identifier: Apache-2.0
// BERT's basic tokenisation: the text is cleaned, CJK characters stand alone, accents go, letters become small; then words are
// what lies between white space, and every punctuation mark is a word.
#pragma once

#include <string>
#include <string_view>

namespace weir::tokenizer {

struct BertOptions {
  bool clean_text = true;  // drop control characters, make white space spaces
  bool split_cjk = true;
  bool strip_accents = true;
  bool lowercase = true;
  // GGUF's reading, by llama.cpp: of a decomposed character only the first part stays, all of \p{M} are accents, and control
  // characters that are white space separate words. It differs from the original for Hangul and Indic vowel signs.
  bool as_gguf = false;
};

std::u32string bert_normalize(std::u32string_view text, const BertOptions& options);
bool is_bert_punctuation(char32_t code, bool as_gguf);

}  // namespace weir::tokenizer
