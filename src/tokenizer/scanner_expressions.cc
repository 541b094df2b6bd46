// SPDX-License-Identifier: Apache-2.0
// scanner_test.cc proves each line on random text.
#include "tokenizer/scanner_expressions.h"

#include <algorithm>

#include "tokenizer/pre_tokenizer.h"

namespace weir::tokenizer {
namespace {

using enum ScannerFamily;
using enum Contractions;

#define WEIR_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define WEIR_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define WEIR_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define WEIR_O200K_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define WEIR_CL100K_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define WEIR_PREFIX R"([^\r\n\p{L}\p{N}]?)"

constexpr ScannerExpression kExpressions[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", {.family = kGpt2}},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", {.family = kGpt2}},
    {WEIR_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" WEIR_CL100K_TAIL,
     {.family = kCl100k, .contractions = kFolded, .digits = 3}},
    {WEIR_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" WEIR_CL100K_TAIL, {.family = kCl100k, .contractions = kFolded, .digits = 1}},
    {WEIR_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)" WEIR_CL100K_TAIL, {.family = kCl100k, .contractions = kFolded}},
    {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" WEIR_CL100K_TAIL, {.family = kCl100k, .contractions = kNone, .digits = 1}},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     {.family = kCl100k, .contractions = kFolded, .digits = 3}},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     {.family = kCl100k, .contractions = kFolded, .digits = 1}},
    {WEIR_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {.family = kCl100k, .contractions = kFolded, .digits = 1, .marks_are_letters = true}},
    {WEIR_CONTRACTIONS "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     {.family = kCl100k, .contractions = kFolded, .digits = 1, .newlines_after_others = false}},
    {WEIR_PREFIX WEIR_UPPER "*" WEIR_LOWER "+" WEIR_CONTRACTIONS "?|" WEIR_PREFIX WEIR_UPPER "+" WEIR_LOWER "*" WEIR_CONTRACTIONS
                            R"(?|\p{N}{1,3})" WEIR_O200K_TAIL,
     {.family = kO200k, .contractions = kFolded, .digits = 3, .slash_after_others = true}},
    {WEIR_PREFIX WEIR_UPPER "*" WEIR_LOWER "+" WEIR_CONTRACTIONS "?|" WEIR_PREFIX WEIR_UPPER "+" WEIR_LOWER "*" WEIR_CONTRACTIONS
                            R"(?|\p{N})" WEIR_O200K_TAIL,
     {.family = kO200k, .contractions = kFolded, .digits = 1, .slash_after_others = true}},
    {WEIR_PREFIX WEIR_UPPER "*" WEIR_LOWER "+|" WEIR_PREFIX WEIR_UPPER "+" WEIR_LOWER R"(*|\p{N})" WEIR_O200K_TAIL,
     {.family = kO200k, .contractions = kNone, .digits = 1, .slash_after_others = true}},
};

}  // namespace

std::span<const ScannerExpression> scanner_expressions() { return kExpressions; }

std::optional<ScannerRules> scanner_for(std::string_view regex) {
  const auto* found = std::ranges::find(kExpressions, regex, &ScannerExpression::regex);
  return found == std::end(kExpressions) ? std::nullopt : std::optional(found->rules);
}

}  // namespace weir::tokenizer
