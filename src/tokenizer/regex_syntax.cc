// SPDX-License-Identifier: Apache-2.0
// Oniguruma's syntax (Ruby) into PCRE2's. Unicode sets are spelt out, since the two libraries disagree on \s, \w and \h, and
// an older PCRE2 lacks the characters of newer Unicode versions.
#include <fmt/core.h>

#include <string>

#include "tokenizer/regex.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

// Bodies of character classes.
constexpr std::string_view kWhiteSpace = R"(\p{Z}\x09-\x0d\x{85})";

std::string property_body(std::string_view name) {
  std::string body = fmt::format("\\p{{{}}}", name);
  if (name == "Han") return body + R"(\x{31350}-\x{323af}\x{2ebf0}-\x{2ee5d})";
  return name.size() <= 2 ? body + newer_than_pcre2(name) : body;
}

// is_regex_word() as a class.
const std::string& word_body() {
  static const std::string body =
      property_body("L") + property_body("M") + property_body("Nd") + property_body("Nl") + property_body("Pc") +
      R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
  return body;
}

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> run() {
    while (at_ < in_.size()) WEIR_TRY(outside());
    if (depth_ > 0) return fail(ErrorCode::kCorrupt, "the regular expression \"{}\": a class is not closed", in_);
    return std::move(out_);
  }

 private:
  auto unsupported(std::string_view what) const {
    return fail(ErrorCode::kUnsupported, "the regular expression \"{}\" uses {}, which is not supported", in_, what);
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool starts(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }
  void copy_character() { copy(utf8_length(in_[at_])); }

  Status outside() {
    switch (peek()) {
      case '\\': return escape_outside();
      case '[': return character_class();
      case '(': return group();
      case '$':  // always the end of a line in Ruby
        out_ += R"((?=\n|\z))";
        ++at_;
        return {};
      case '^':
        out_ += R"((?:(?<=\n)(?!\z)|\A))";
        ++at_;
        return {};
      case '{': return braces();
      default: copy_character(); return {};
    }
  }

  // After {n,m} a plus repeats again in Ruby, but makes it possessive in PCRE2.
  Status braces() {
    const std::size_t close = in_.find('}', at_);
    const bool interval = close != std::string_view::npos && close > at_ + 1 &&
                          in_.substr(at_ + 1, close - at_ - 1).find_first_not_of("0123456789,") == std::string_view::npos;
    if (!interval) {
      out_ += "\\{";
      ++at_;
      return {};
    }
    if (peek(1) == ',') {  // {,n}
      out_ += "{0";
      ++at_;
      copy(close - at_ + 1);
    } else {
      copy(close - at_ + 1);
    }
    if (peek() == '+' || peek() == '*') return unsupported("a repeated interval");
    return {};
  }

  Status group() {
    if (starts("(?#")) return unsupported("a comment");
    if (!starts("(?")) {
      copy(1);
      return {};
    }
    for (std::string_view known : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"}) {
      if (starts(known)) {
        copy(known.size());
        return {};
      }
    }
    // An option that is not at the start takes in the alternatives after it in Ruby, not in PCRE2.
    if (starts("(?i:") || starts("(?-i:") || (at_ == 0 && starts("(?i)"))) {
      copy(peek(2) == '-' ? 5 : 4);
      return {};
    }
    if (starts("(?m:")) {  // dot matches newlines
      out_ += "(?s:";
      at_ += 4;
      return {};
    }
    return unsupported("a group of this kind");
  }

  Status escape_outside() {
    switch (peek(1)) {
      case 's': return set(kWhiteSpace, false);
      case 'S': return set(kWhiteSpace, true);
      case 'w': return set(word_body(), false);
      case 'W': return set(word_body(), true);
      case 'd': return set(property_body("Nd"), false);
      case 'D': return set(property_body("Nd"), true);
      case 'h': return set("0-9A-Fa-f", false);
      case 'H': return set("0-9A-Fa-f", true);
      case 'b': return border(true);
      case 'B': return border(false);
      case 'A':
      case 'z': copy(2); return {};
      case 'Z':
        out_ += R"((?=\n?\z))";
        at_ += 2;
        return {};
      default: return escape_anywhere();
    }
  }
  Status set(std::string_view body, bool negated) {
    out_ += negated ? "[^" : "[";
    out_ += body;
    out_ += ']';
    at_ += 2;
    return {};
  }
  Status border(bool positive) {
    const std::string in = "[" + word_body() + "]";
    out_ += positive ? "(?:(?<=" + in + ")(?!" + in + ")|(?<!" + in + ")(?=" + in + "))"
                     : "(?:(?<=" + in + ")(?=" + in + ")|(?<!" + in + ")(?!" + in + "))";
    at_ += 2;
    return {};
  }

  // What means the same inside and outside of classes.
  Status escape_anywhere() {
    const char c = peek(1);
    if (c == 'p' || c == 'P') return property();
    if (c == 'u') {
      if (at_ + 6 > in_.size() || in_.substr(at_ + 2, 4).find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
        return fail(ErrorCode::kCorrupt, "the regular expression \"{}\": \\u without four digits", in_);
      }
      out_ += "\\x{" + std::string(in_.substr(at_ + 2, 4)) + "}";
      at_ += 6;
      return {};
    }
    if (c == 'x') {
      if (peek(2) == '{') {
        const std::size_t close = in_.find('}', at_);
        if (close == std::string_view::npos) return fail(ErrorCode::kCorrupt, "the regular expression \"{}\": \\x{{ is not closed", in_);
        copy(close - at_ + 1);
        return {};
      }
      const auto hex = [&](std::size_t i) {
        return std::string_view("0123456789abcdefABCDEF").find(peek(i)) != std::string_view::npos && peek(i) != '\0';
      };
      if (!hex(2) || !hex(3)) return unsupported("\\x without two digits");
      copy(4);
      return {};
    }
    if (std::string_view("nrtfaev0").find(c) != std::string_view::npos && c != '\0') {
      if (c == '0' && peek(2) >= '0' && peek(2) <= '7') return unsupported("an octal character");
      if (c == 'v') {
        out_ += "\\x0b";
        at_ += 2;
        return {};
      }
      copy(2);
      return {};
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\0') {
      return unsupported(fmt::format("\\{}", c == '\0' ? ' ' : c));
    }
    out_ += '\\';
    ++at_;
    if (static_cast<unsigned char>(peek()) >= 0x80) out_.pop_back();
    copy_character();
    return {};
  }

  Status property() {
    if (peek(2) != '{') return unsupported("a property without braces");
    const std::size_t close = in_.find('}', at_);
    if (close == std::string_view::npos || close - at_ > 40)
      return fail(ErrorCode::kCorrupt, "the regular expression \"{}\": a property is not closed", in_);
    bool negated = peek(1) == 'P';
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != std::string_view::npos)
      return unsupported("this property");
    at_ = close + 1;
    if (negated && depth_ > 0) {  // the few newest characters are not taken out again
      out_ += fmt::format("\\P{{{}}}", name);
    } else {
      out_ += depth_ > 0 ? property_body(name) : fmt::format("[{}{}]", negated ? "^" : "", property_body(name));
    }
    return {};
  }

  Status character_class() {
    copy(1);
    ++depth_;
    if (peek() == '^') copy(1);
    if (peek() == ']') {  // a literal one
      out_ += "\\]";
      ++at_;
    }
    while (at_ < in_.size()) {
      if (peek() == ']') {
        copy(1);
        --depth_;
        return {};
      }
      if (peek() == '[') return unsupported("a class within a class");
      if (starts("&&")) return unsupported("an intersection of classes");
      if (peek() == '\\') {
        WEIR_TRY(escape_inside());
      } else {
        copy_character();
      }
    }
    return {};
  }

  Status escape_inside() {
    switch (peek(1)) {
      case 's': return inside(kWhiteSpace);
      case 'w': return inside(word_body());
      case 'd': return inside(property_body("Nd"));
      case 'D': return inside(R"(\P{Nd})");
      case 'h': return inside("0-9A-Fa-f");
      case 'b': return inside("\\x08");
      case 'S':
      case 'W':
      case 'H': return unsupported("a negated set within a class");
      default: return escape_anywhere();
    }
  }
  Status inside(std::string_view body) {
    out_ += body;
    at_ += 2;
    return {};
  }

  std::string_view in_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> translate_regex(std::string_view oniguruma) {
  if (valid_utf8_prefix(oniguruma) != oniguruma.size()) return fail(ErrorCode::kCorrupt, "a regular expression is not UTF-8");
  return Translator(oniguruma).run();
}

}  // namespace weir::tokenizer
