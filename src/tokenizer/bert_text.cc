// SPDX-License-Identifier: Apache-2.0
// The order of the steps is that of the reference implementation.
#include "tokenizer/bert_text.h"

#include "tokenizer/unicode.h"

namespace weir::tokenizer {
namespace {

struct Range {
  char32_t first, last;
};
// The blocks that BERT calls Chinese. The reference begins extension E at 2B920 rather than 2B820.
constexpr Range kCjk[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                          {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};

bool is_cjk(char32_t code) {
  for (const Range& range : kCjk) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

// As GGUF counts them: what is white space separates words instead.
bool is_gguf_control(char32_t code) {
  const Category c = category(code);
  return c == Category::kCc || c == Category::kCf || c == Category::kCo;
}

}  // namespace

bool is_bert_punctuation(char32_t code, bool as_gguf) {
  if (code < 0x80)
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) || (code >= 123 && code <= 126);
  return as_gguf ? (classes(code) & kPunctuation) != 0 : library_punctuation(code);
}

std::u32string bert_normalize(std::u32string_view text, const BertOptions& options) {
  std::u32string cleaned;
  cleaned.reserve(text.size() + 16);
  for (char32_t code : text) {
    if (options.clean_text) {
      if (code == 0 || code == 0xFFFD || (options.as_gguf ? is_gguf_control(code) : library_control(code))) continue;
      if (is_space(code)) code = ' ';
    }
    if (options.split_cjk && is_cjk(code)) {
      cleaned += U' ';
      cleaned += code;
      cleaned += U' ';
    } else {
      cleaned += code;
    }
  }
  if (options.strip_accents) {
    if (options.as_gguf) {
      for (char32_t& code : cleaned) code = first_of_decomposition(code);
      std::erase_if(cleaned, [](char32_t code) { return classes(code) & kMark; });
    } else {
      cleaned = normalize(cleaned, NormalForm::kNfd);
      std::erase_if(cleaned, library_nonspacing);
    }
  }
  if (!options.lowercase) return cleaned;
  std::u32string lower;
  lower.reserve(cleaned.size());
  for (char32_t code : cleaned) append_lower(code, lower);
  return lower;
}

}  // namespace weir::tokenizer
