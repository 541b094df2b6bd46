// SPDX-License-Identifier: Apache-2.0
// JSON's grammar as a machine over bytes.
#include "api/output_json_scanner.h"

namespace weir::api {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

ReadStep JsonScanner::step(char c) {
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kHex: return string(c);
    case State::kNumber: return number(c);
    case State::kWord: return word(c);
    default: break;
  }
  if (is_json_space(c)) return ReadStep::kMore;
  switch (state_) {
    case State::kFirstItem: return c == ']' ? close(c) : value(c);
    case State::kFirstKey:
      if (c == '}') return close(c);
      [[fallthrough]];
    case State::kKey:
      if (c != '"') return ReadStep::kBad;
      key_ = true;
      state_ = State::kString;
      return ReadStep::kMore;
    case State::kColon:
      if (c != ':') return ReadStep::kBad;
      state_ = State::kValue;
      return ReadStep::kMore;
    case State::kNext: return next(c);
    default: return value(c);
  }
}

ReadStep JsonScanner::value(char c) {
  if (only_object_ && open_.empty() && c != '{') return ReadStep::kBad;
  if (c == '{' || c == '[') return open(c);
  if (c == '"') {
    key_ = false;
    state_ = State::kString;
    return ReadStep::kMore;
  }
  if (c == '-' || is_digit(c)) {
    state_ = State::kNumber;
    digits_ = c == '-' ? Digits::kSign : c == '0' ? Digits::kZero : Digits::kWhole;
    return ReadStep::kMore;
  }
  for (const std::string_view text : {std::string_view("true"), std::string_view("false"), std::string_view("null")}) {
    if (c == text[0]) {
      state_ = State::kWord;
      word_ = text.substr(1);
      return ReadStep::kMore;
    }
  }
  return ReadStep::kBad;
}

ReadStep JsonScanner::open(char c) {
  if (open_.size() >= kMaxDepth) return ReadStep::kBad;
  open_ += c;
  state_ = c == '{' ? State::kFirstKey : State::kFirstItem;
  return ReadStep::kMore;
}

ReadStep JsonScanner::close(char c) {
  if (open_.empty() || open_.back() != (c == '}' ? '{' : '[')) return ReadStep::kBad;
  open_.pop_back();
  return after_value();
}

ReadStep JsonScanner::after_value() {
  state_ = State::kNext;
  return open_.empty() ? ReadStep::kDone : ReadStep::kMore;
}

ReadStep JsonScanner::next(char c) {
  if (c == '}' || c == ']') return close(c);
  if (c != ',' || open_.empty()) return ReadStep::kBad;
  state_ = open_.back() == '{' ? State::kKey : State::kValue;
  return ReadStep::kMore;
}

ReadStep JsonScanner::string(char c) {
  if (state_ == State::kHex) {
    if (!is_hex(c)) return ReadStep::kBad;
    if (--hex_ == 0) state_ = State::kString;
  } else if (state_ == State::kEscape) {
    if (std::string_view("\"\\/bfnrtu").find(c) == std::string_view::npos) return ReadStep::kBad;
    state_ = c == 'u' ? State::kHex : State::kString;
    hex_ = 4;
  } else if (c == '\\') {
    state_ = State::kEscape;
  } else if (c == '"') {
    if (!key_) return after_value();
    state_ = State::kColon;
  }
  return ReadStep::kMore;
}

ReadStep JsonScanner::number(char c) {
  const bool digit = is_digit(c);
  switch (digits_) {
    case Digits::kSign:
      if (!digit) return ReadStep::kBad;
      digits_ = c == '0' ? Digits::kZero : Digits::kWhole;
      return ReadStep::kMore;
    case Digits::kPoint:
      if (!digit) return ReadStep::kBad;
      digits_ = Digits::kFraction;
      return ReadStep::kMore;
    case Digits::kE:
      if (c != '+' && c != '-' && !digit) return ReadStep::kBad;
      digits_ = digit ? Digits::kExponent : Digits::kExponentSign;
      return ReadStep::kMore;
    case Digits::kExponentSign:
      if (!digit) return ReadStep::kBad;
      digits_ = Digits::kExponent;
      return ReadStep::kMore;
    default: break;
  }
  const bool whole = digits_ == Digits::kZero || digits_ == Digits::kWhole;
  if (digit && digits_ != Digits::kZero) return ReadStep::kMore;
  if (c == '.' && whole) {
    digits_ = Digits::kPoint;
    return ReadStep::kMore;
  }
  if ((c == 'e' || c == 'E') && digits_ != Digits::kExponent) {
    digits_ = Digits::kE;
    return ReadStep::kMore;
  }
  if (digit) return ReadStep::kBad;  // 01
  state_ = State::kNext;
  if (open_.empty()) return ReadStep::kDoneBefore;
  return is_json_space(c) ? ReadStep::kMore : next(c);
}

ReadStep JsonScanner::word(char c) {
  if (c != word_[0]) return ReadStep::kBad;
  word_.remove_prefix(1);
  return word_.empty() ? after_value() : ReadStep::kMore;
}

void append_json_byte(std::string& out, char c, bool in_string) {
  if (in_string && static_cast<unsigned char>(c) < 0x20) {
    append_json_escaped(out, std::string_view(&c, 1));
  } else {
    out += c;
  }
}

void append_json_escaped(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
}

}  // namespace weir::api
