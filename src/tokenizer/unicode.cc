// SPDX-License-Identifier: Apache-2.0
// Two-stage tables for what every character needs, sorted tables and binary search for what few need.
#include "tokenizer/unicode.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace weir::tokenizer {
namespace {

#include "tokenizer/unicode_tables.inc"

constexpr int kBlockBits = 7;
constexpr char32_t kHangulBase = 0xAC00, kHangulCount = 11172;
constexpr char32_t kLeadBase = 0x1100, kVowelBase = 0x1161, kTailBase = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28;

std::uint8_t combining_class(char32_t code) {
  if (code >= 0x110000) return 0;
  return kCombiningValues[kCombiningIndex[code >> kBlockBits] << kBlockBits | (code & ((1 << kBlockBits) - 1))];
}

void decompose(char32_t code, bool compatible, std::u32string& out) {
  if (code < 0x80) {
    out += code;
    return;
  }
  if (code - kHangulBase < kHangulCount) {
    const char32_t index = code - kHangulBase;
    out += kLeadBase + index / (kVowels * kTails);
    out += kVowelBase + index % (kVowels * kTails) / kTails;
    if (index % kTails != 0) out += kTailBase + index % kTails;
    return;
  }
  const auto* found = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), code,
                                       [](const DecompositionEntry& entry, char32_t c) { return entry.from < c; });
  if (found == std::end(kDecompositions) || found->from != code) {
    out += code;
  } else if (compatible && found->compatible > 0) {
    out.append(kDecompositionText + found->offset + found->canonical, found->compatible);
  } else if (found->canonical > 0) {
    out.append(kDecompositionText + found->offset, found->canonical);
  } else {
    out += code;
  }
}

// Marks that follow one another are sorted by combining class, stably (UAX 15, canonical ordering).
void order_marks(std::u32string& text) {
  std::vector<std::tuple<std::uint8_t, std::size_t, char32_t>> marks;  // class, place, mark
  for (std::size_t i = 0; i < text.size();) {
    marks.clear();
    for (; i < text.size() && combining_class(text[i]) != 0; ++i) marks.emplace_back(combining_class(text[i]), i, text[i]);
    if (marks.empty()) {
      ++i;
    } else if (marks.size() > 1) {
      std::ranges::sort(marks);
      std::ranges::transform(marks, text.begin() + static_cast<std::ptrdiff_t>(i - marks.size()),
                             [](const auto& mark) { return std::get<char32_t>(mark); });
    }
  }
}

// The composite of two characters, or 0.
char32_t compose_pair(char32_t first, char32_t second) {
  if (first - kLeadBase < kLeads && second - kVowelBase < kVowels) {
    return kHangulBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTails;
  }
  if (first - kHangulBase < kHangulCount && (first - kHangulBase) % kTails == 0 && second > kTailBase && second < kTailBase + kTails) {
    return first + (second - kTailBase);
  }
  const auto* found = std::lower_bound(
      std::begin(kCompositions), std::end(kCompositions), std::pair(first, second),
      [](const CompositionEntry& entry, const std::pair<char32_t, char32_t>& key) { return std::pair(entry.first, entry.second) < key; });
  return found != std::end(kCompositions) && found->first == first && found->second == second ? found->composed : 0;
}

std::u32string compose(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  std::size_t starter = std::u32string::npos;  // where in `out` the last starter is
  int last_class = 0;
  for (char32_t code : text) {
    const int cls = combining_class(code);
    if (starter != std::u32string::npos && (last_class < cls || out.size() == starter + 1)) {
      if (const char32_t composed = compose_pair(out[starter], code)) {
        out[starter] = composed;
        continue;
      }
    }
    if (cls == 0) starter = out.size();
    last_class = cls;
    out += code;
  }
  return out;
}

}  // namespace

Category category(char32_t code) {
  if (code >= 0x110000) return Category::kCn;
  return Category{kCategoryValues[kCategoryIndex[code >> kBlockBits] << kBlockBits | (code & ((1 << kBlockBits) - 1))]};
}

// The ranges are the symbols that are Alphabetic.
bool is_regex_word(char32_t code) {
  const Category c = category(code);
  if (kClassesOfCategory[static_cast<int>(c)] & (kLetter | kMark)) return true;
  if (c == Category::kNd || c == Category::kNl || c == Category::kPc) return true;
  if (c == Category::kNo) return code < 0x100;
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

bool is_word(char32_t code) {
  if (code == 0x200C || code == 0x200D) return true;
  return is_regex_word(code) && category(code) != Category::kNo;
}

namespace {
template <std::size_t N>
bool is_exception(const Exception (&ranges)[N], char32_t code) {
  const auto* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code, [](char32_t c, const Exception& range) { return c < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}
}  // namespace

bool library_punctuation(char32_t code) {
  const bool punctuation = classes(code) & kPunctuation;
  return punctuation != is_exception(kPunctuationExceptions, code);
}

bool library_control(char32_t code) {
  const Category c = category(code);
  const bool control = c == Category::kCc || c == Category::kCcSpace || c == Category::kCf || c == Category::kCo;
  return control != is_exception(kControlExceptions, code);
}

bool library_nonspacing(char32_t code) { return (category(code) == Category::kMn) != is_exception(kNonspacingExceptions, code); }

bool library_mark(char32_t code) { return ((classes(code) & kMark) != 0) != is_exception(kMarkExceptions, code); }

std::string newer_than_pcre2(std::string_view name) {
  constexpr std::string_view kNames = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";
  std::string ranges;
  for (const NewRange& range : kNewRanges) {
    if (!kNames.substr(std::size_t{range.category} * 2, 2).starts_with(name)) continue;
    ranges += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<unsigned>(range.first), static_cast<unsigned>(range.last));
  }
  return ranges;
}

void append_lower(char32_t code, std::u32string& out) {
  if (code < 0x80) {
    out += code >= 'A' && code <= 'Z' ? code + 32 : code;
    return;
  }
  if (code == 0x130) {
    out += U"i\u0307";
    return;
  }
  const auto* found =
      std::lower_bound(std::begin(kLower), std::end(kLower), code, [](const LowerEntry& entry, char32_t c) { return entry.from < c; });
  out += found != std::end(kLower) && found->from == code ? found->to : code;
}

char32_t first_of_decomposition(char32_t code) {
  std::u32string parts;
  decompose(code, false, parts);
  return parts[0];
}

std::u32string normalize(std::u32string_view text, NormalForm form) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::u32string decomposed;
  decomposed.reserve(text.size() + text.size() / 8);
  for (char32_t code : text) decompose(code, compatible, decomposed);
  order_marks(decomposed);
  return form == NormalForm::kNfc || form == NormalForm::kNfkc ? compose(decomposed) : decomposed;
}

}  // namespace weir::tokenizer
