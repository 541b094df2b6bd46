// SPDX-License-Identifier: Apache-2.0
// Each rule is a function from a position to the end of the piece there, or 0 when it does not apply; they are tried in the
// order of the expression's alternatives.
#include "tokenizer/scanner.h"

#include <array>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

constexpr std::uint8_t kAsciiClass(int c) {
  if ((c >= 'a' && c <= 'z')) return kLetter | kLowerLike;
  if ((c >= 'A' && c <= 'Z')) return kLetter | kUpperLike;
  if (c >= '0' && c <= '9') return kNumber;
  if (c == ' ' || (c >= 9 && c <= 13)) return kSpace;
  return 0;
}

constexpr auto kAscii = [] {
  std::array<std::uint8_t, 128> table{};
  for (int c = 0; c < 128; ++c) table[static_cast<std::size_t>(c)] = kAsciiClass(c);
  return table;
}();

// A text with classes by position. At its end the class is kEnd.
class Text {
 public:
  static constexpr unsigned kEnd = 0x100;

  explicit Text(std::string_view text) : begin_(text.data()), size_(text.size()) {}

  std::size_t size() const { return size_; }
  char byte(std::size_t at) const { return at < size_ ? begin_[at] : '\0'; }
  unsigned class_at(std::size_t at) const {
    if (at >= size_) return kEnd;
    const auto lead = static_cast<unsigned char>(begin_[at]);
    return lead < 0x80 ? kAscii[lead] : classes(code_of_valid_utf8(begin_ + at));
  }
  std::size_t after(std::size_t at) const { return at + utf8_length(begin_[at]); }

  // The end of the run of characters with any of these classes.
  std::size_t run(std::size_t at, unsigned any) const {
    while (at < size_) {
      const auto lead = static_cast<unsigned char>(begin_[at]);
      if (lead < 0x80) {
        if (!(kAscii[lead] & any)) return at;
        ++at;
      } else {
        if (!(classes(code_of_valid_utf8(begin_ + at)) & any)) return at;
        at += utf8_length(begin_[at]);
      }
    }
    return at;
  }
  // The end of the run of characters with none of them.
  std::size_t run_without(std::size_t at, unsigned none) const {
    while (at < size_ && !(class_at(at) & none)) at = after(at);
    return at;
  }
  std::size_t run_numbers(std::size_t at, unsigned most) const {
    if (most == 0) return run(at, kNumber);
    for (unsigned i = 0; i < most && class_at(at) & kNumber; ++i) at = after(at);
    return at;
  }
  std::size_t run_newlines(std::size_t at, bool slash) const {
    while (byte(at) == '\n' || byte(at) == '\r' || (slash && byte(at) == '/')) ++at;
    return at;
  }

 private:
  const char* begin_;
  std::size_t size_;
};

constexpr bool is_newline(char byte) { return byte == '\n' || byte == '\r'; }

// The end of 's, 't, 're, 've, 'm, 'll or 'd at an apostrophe, or 0.
std::size_t contraction_end(const Text& text, std::size_t at, Contractions kind, bool any_case) {
  if (kind == Contractions::kNone || text.byte(at) != '\'') return 0;
  const auto lower = [&](std::size_t i) {
    const char c = text.byte(i);
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = lower(at + 1), second = lower(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return at + 3;
  if (kind == Contractions::kFolded && first == '\xC5' && text.byte(at + 2) == '\xBF') return at + 3;  // ſ folds to s
  return 0;
}

// \s+(?!\S)|\s+ at a space whose run ends at `end`: the last space of a run before something else stays for that.
std::size_t spaces_end(const Text& text, std::size_t at, std::size_t end, bool at_border) {
  if (at_border) return end;
  std::size_t last = at;
  for (std::size_t next = text.after(at); next < end; next = text.after(next)) last = next;
  return last > at ? last : end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t newlines_or_spaces_end(const Text& text, std::size_t at) {
  const std::size_t end = text.run(at, kSpace);
  for (std::size_t i = end; i > at; --i) {
    if (is_newline(text.byte(i - 1))) return i;
  }
  return spaces_end(text, at, end, end == text.size());
}

std::size_t gpt2_end(const Text& text, std::size_t at, const ScannerRules& rules) {
  if (const std::size_t end = contraction_end(text, at, rules.contractions, false)) return end;
  const std::size_t word = at + (text.byte(at) == ' ');
  const unsigned cls = text.class_at(word);
  if (cls & kLetter) return text.run(word, kLetter);
  if (cls & kNumber) {
    if (!rules.digits_first) return text.run(word, kNumber);
    return word == at ? text.run_numbers(at, rules.digits) : word;  // a space before a number stands alone
  }
  if (!(cls & (kSpace | Text::kEnd))) return text.run_without(word, kSpace | kLetter | kNumber);
  const std::size_t end = text.run(at, kSpace);
  return spaces_end(text, at, end, end == text.size() || (rules.digits_first && text.class_at(end) & kNumber));
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or 0.
std::size_t others_end(const Text& text, std::size_t at, unsigned not_these, const ScannerRules& rules) {
  const std::size_t start = at + (text.byte(at) == ' ');
  if (text.class_at(start) & (not_these | Text::kEnd)) return 0;
  const std::size_t end = text.run_without(start, not_these);
  return rules.newlines_after_others ? text.run_newlines(end, rules.slash_after_others) : end;
}

std::size_t cl100k_end(const Text& text, std::size_t at, const ScannerRules& rules) {
  if (const std::size_t end = contraction_end(text, at, rules.contractions, true)) return end;
  const unsigned letters = rules.marks_are_letters ? kLetter | kMark : kLetter;
  const unsigned cls = text.class_at(at);
  if (cls & letters) return text.run(at, letters);
  if (cls & kNumber) return text.run_numbers(at, rules.digits);
  if (!is_newline(text.byte(at))) {
    const std::size_t next = text.after(at);
    if (text.class_at(next) & letters) return text.run(next, letters);
  }
  if (const std::size_t end = others_end(text, at, kSpace | kNumber | letters, rules)) return end;
  return newlines_or_spaces_end(text, at);
}

// U*W+ at a position, or 0: when W does not follow the run of U, its last character that is also in W is taken.
std::size_t lower_word_end(const Text& text, std::size_t at) {
  const std::size_t upper = text.run(at, kUpperLike);
  if (text.class_at(upper) & kLowerLike) return text.run(upper, kLowerLike);
  std::size_t end = 0;
  for (std::size_t i = at; i < upper; i = text.after(i)) {
    if (text.class_at(i) & kLowerLike) end = text.after(i);
  }
  return end;
}

// U+W*, or 0.
std::size_t upper_word_end(const Text& text, std::size_t at) {
  const std::size_t upper = text.run(at, kUpperLike);
  return upper == at ? 0 : text.run(upper, kLowerLike);
}

std::size_t o200k_word_end(const Text& text, std::size_t at) {
  const unsigned cls = text.class_at(at);
  const bool prefix = !(cls & (kLetter | kNumber)) && !is_newline(text.byte(at));
  if (!prefix && !(cls & kLetter)) return 0;
  const std::size_t next = prefix ? text.after(at) : at;
  if (prefix && !(cls & kMark) && !(text.class_at(next) & (kUpperLike | kLowerLike))) return 0;
  for (const auto word_end : {lower_word_end, upper_word_end}) {
    if (prefix) {
      if (const std::size_t end = word_end(text, next)) return end;
    }
    if (const std::size_t end = word_end(text, at)) return end;
  }
  return 0;
}

std::size_t o200k_end(const Text& text, std::size_t at, const ScannerRules& rules) {
  if (const std::size_t end = o200k_word_end(text, at)) {
    const std::size_t more = contraction_end(text, end, rules.contractions, true);
    return more ? more : end;
  }
  if (text.class_at(at) & kNumber) return text.run_numbers(at, rules.digits);
  if (const std::size_t end = others_end(text, at, kSpace | kLetter | kNumber, rules)) return end;
  return newlines_or_spaces_end(text, at);
}

std::size_t newline_run_end(const Text& text, std::size_t at, const ScannerRules&) {
  const bool newline = text.byte(at) == '\n';
  while (at < text.size() && (text.byte(at) == '\n') == newline) ++at;
  return at;
}

// Cuts runs of digits into threes counted from the run's end. What is between them stays whole.
void scan_groups(std::string_view input, ScannerFamily family, std::size_t base, PieceEnds& ends) {
  const auto is_digit = [&](std::size_t at) {
    const char32_t code = code_of_valid_utf8(input.data() + at);
    return family == ScannerFamily::kNumberGroups3 ? (classes(code) & kNumber) != 0 : category(code) == Category::kNd;
  };
  std::size_t done = 0;  // where the last piece ended
  const auto cut = [&](std::size_t at) {
    if (at > done) ends.push_back(base + at);
    done = at;
  };
  for (std::size_t at = 0; at < input.size();) {
    if (!is_digit(at)) {
      at += utf8_length(input[at]);
      continue;
    }
    std::size_t end = at, digits = 0;
    for (; end < input.size() && is_digit(end); end += utf8_length(input[end])) ++digits;
    const bool at_word_end = end == input.size() || !is_regex_word(code_of_valid_utf8(input.data() + end));
    if (family == ScannerFamily::kDigitGroups3AtWordEnd && !at_word_end) {
      at = end;
      continue;
    }
    if (family != ScannerFamily::kDigitGroups3) cut(at);
    for (; at < end; at += utf8_length(input[at]), --digits) {
      if (digits % 3 == 0) cut(at);
    }
    if (family != ScannerFamily::kDigitGroups3) cut(end);
  }
  cut(input.size());
}

using EndFunction = std::size_t (*)(const Text&, std::size_t, const ScannerRules&);

void scan_pieces(EndFunction piece_end, std::string_view input, const ScannerRules& rules, std::size_t base, PieceEnds& ends) {
  const Text text(input);
  for (std::size_t at = 0; at < text.size();) {
    at = piece_end(text, at, rules);
    ends.push_back(base + at);
  }
}

}  // namespace

void scan(std::string_view text, const ScannerRules& rules, std::size_t base, PieceEnds& ends) {
  switch (rules.family) {
    case ScannerFamily::kGpt2: return scan_pieces(gpt2_end, text, rules, base, ends);
    case ScannerFamily::kCl100k: return scan_pieces(cl100k_end, text, rules, base, ends);
    case ScannerFamily::kO200k: return scan_pieces(o200k_end, text, rules, base, ends);
    case ScannerFamily::kNewlineRuns: return scan_pieces(newline_run_end, text, rules, base, ends);
    case ScannerFamily::kNumberGroups3:
    case ScannerFamily::kDigitGroups3:
    case ScannerFamily::kDigitGroups3AtWordEnd: return scan_groups(text, rules.family, base, ends);
  }
}

}  // namespace weir::tokenizer
