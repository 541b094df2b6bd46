// SPDX-License-Identifier: Apache-2.0
// What tokenisers ask about a character: its general category, classes derived from it, lower case, and the four
// normalisation forms (Unicode Standard Annex 15, as far as the reference library knows the characters). Tables are generated
// (tools/make_unicode_tables.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::tokenizer {

enum class Category : std::uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo,
  kCn,
  kCcSpace,  // a control character that is White_Space: tab, newline, …
};

Category category(char32_t code);

// The characters of a category ("L", "Nd", …) that PCRE2 does not know yet, as ranges of a character class in its syntax.
std::string newer_than_pcre2(std::string_view category);

// Classes that regular expressions of tokenisers name, as bits.
enum : std::uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpace = 4,         // White_Space
  kMark = 8,          // \p{M}
  kUpperLike = 16,    // Lu Lt Lm Lo M: what may start a capitalised word
  kLowerLike = 32,    // Ll Lm Lo M
  kPunctuation = 64,  // \p{P}
  kSymbol = 128,      // \p{S}
};
inline constexpr std::uint8_t kClassesOfCategory[] = {kLetter | kUpperLike,
                                                      kLetter | kLowerLike,
                                                      kLetter | kUpperLike,
                                                      kLetter | kUpperLike | kLowerLike,
                                                      kLetter | kUpperLike | kLowerLike,
                                                      kMark | kUpperLike | kLowerLike,
                                                      kMark | kUpperLike | kLowerLike,
                                                      kMark | kUpperLike | kLowerLike,
                                                      kNumber,
                                                      kNumber,
                                                      kNumber,
                                                      kPunctuation,
                                                      kPunctuation,
                                                      kPunctuation,
                                                      kPunctuation,
                                                      kPunctuation,
                                                      kPunctuation,
                                                      kPunctuation,
                                                      kSymbol,
                                                      kSymbol,
                                                      kSymbol,
                                                      kSymbol,
                                                      kSpace,
                                                      kSpace,
                                                      kSpace,
                                                      0,
                                                      0,
                                                      0,
                                                      0,
                                                      0,
                                                      kSpace};

inline std::uint8_t classes(char32_t code) { return kClassesOfCategory[static_cast<int>(category(code))]; }
inline bool is_space(char32_t code) { return classes(code) & kSpace; }
bool is_word(char32_t code);        // \w of Rust's expressions: Alphabetic, M, Nd, Pc and the joiners
bool is_regex_word(char32_t code);  // \w of Oniguruma: without the joiners, but with the numbers of Latin-1

// The same questions as the normalizers of the reference library (`tokenizers`) answer them, whose tables are older: a vocabulary
// was made with those answers. They differ for characters of the last ten years or so.
bool library_punctuation(char32_t code);
bool library_control(char32_t code);
bool library_nonspacing(char32_t code);  // Mn
bool library_mark(char32_t code);        // M

// Appends the lower case of a character (two characters for U+0130).
void append_lower(char32_t code, std::u32string& out);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::u32string normalize(std::u32string_view text, NormalForm form);
char32_t first_of_decomposition(char32_t code);  // the base character, for most

}  // namespace weir::tokenizer
