// SPDX-License-Identifier: Apache-2.0
// Hand-written splitters for the regular expressions that nearly all byte-level vocabularies use: GPT-2's, Llama 3's
// (cl100k) with its variants, and GPT-4o's (o200k). One pass, no backtracking beyond a run; tests prove them equal to PCRE2
// on the expressions themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::tokenizer {

// Ends of the pieces of a text, in order; the last one is the text's size. They cover the whole text.
using PieceEnds = std::vector<std::size_t>;

enum class ScannerFamily : std::uint8_t {
  kGpt2,                   // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kCl100k,                 // contractions|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kO200k,                  // [^\r\n\p{L}\p{N}]?U*W+C?|[^\r\n\p{L}\p{N}]?U+W*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|…
  kNewlineRuns,            // [^\n]+|\n+
  kNumberGroups3,          // each run of \p{N} in threes from its right end
  kDigitGroups3,           // (?=(\d{3})+(?!\d)): a border before every third digit from the right
  kDigitGroups3AtWordEnd,  // \d{1,3}(?=(?:\d{3})*\b)
};

enum class Contractions : std::uint8_t {
  kNone,
  kAscii,   // 's|'t|'re|'ve|'m|'ll|'d in either case
  kFolded,  // the same under (?i:…), which also takes U+017F for s
};

struct ScannerRules {
  ScannerFamily family = ScannerFamily::kGpt2;
  Contractions contractions = Contractions::kAscii;
  std::uint8_t digits = 0;            // numbers in a piece at most; 0: any number
  bool digits_first = false;          // \p{N} pieces are cut out before the rest is looked at (kGpt2)
  bool marks_are_letters = false;     // [\p{L}\p{M}] in place of \p{L} (kCl100k)
  bool newlines_after_others = true;  // [\r\n]* after the punctuation piece
  bool slash_after_others = false;    // [\r\n/]* there

  friend bool operator==(const ScannerRules&, const ScannerRules&) = default;
};

// Appends the ends of the pieces of valid UTF-8, offset by `base`.
void scan(std::string_view text, const ScannerRules& rules, std::size_t base, PieceEnds& ends);

}  // namespace weir::tokenizer
