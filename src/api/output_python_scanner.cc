// SPDX-License-Identifier: Apache-2.0
// Python's literals as a machine over bytes.
#include "api/output_python_scanner.h"

namespace weir::api {
namespace {

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '+';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_number(std::string_view text) {
  JsonScanner scanner;
  for (const char c : text) {
    if (scanner.step(c) != ReadStep::kMore) return false;
  }
  return scanner.step(',') == ReadStep::kDoneBefore;
}

// A character by its number, as it stands within a JSON string. Half a surrogate pair stays an escape: JSON joins the halves.
void append_character(std::string& out, unsigned code) {
  if (code < 0x80) {
    const char c = static_cast<char>(code);
    append_json_escaped(out, std::string_view(&c, 1));
  } else if (code >= 0xD800 && code <= 0xDFFF) {
    static constexpr char kHex[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
  } else {
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(kLead[more] | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  }
}

}  // namespace

ReadStep PythonScanner::step(char c, std::string& out) {
  switch (state_) {
    case State::kString: return string(c, out);
    case State::kEscape: return escape(c, out);
    case State::kCode:
    case State::kOctal: return code(c, out);
    case State::kWord:
      if (is_word(c)) {
        if (word_.size() >= 64) return ReadStep::kBad;
        word_ += c;
        return ReadStep::kMore;
      }
      if (!write_word(out)) return ReadStep::kBad;
      state_ = State::kNext;
      if (open_.empty()) return ReadStep::kDoneBefore;
      break;
    default: break;
  }
  if (is_json_space(c)) return ReadStep::kMore;
  switch (state_) {
    case State::kFirstItem:
    case State::kFirstKey:
      if (c == '}' || c == ']' || c == ')') return close(c, out);
      if (state_ == State::kFirstItem) return value(c, out);
      [[fallthrough]];
    case State::kKey:
      if (c != '"' && c != '\'') return ReadStep::kBad;
      key_ = true;
      return value(c, out);
    case State::kColon:
      if (c != ':') return ReadStep::kBad;
      out += ": ";
      state_ = State::kValue;
      return ReadStep::kMore;
    case State::kNext: return next(c, out);
    default: return value(c, out);
  }
}

ReadStep PythonScanner::value(char c, std::string& out) {
  if (comma_) out += ", ";
  comma_ = false;
  if (c == '"' || c == '\'') {
    quote_ = c;
    out += '"';
    state_ = State::kString;
    return ReadStep::kMore;
  }
  if (c == '{' || c == '[' || c == '(') {
    if (open_.size() >= JsonScanner::kMaxDepth) return ReadStep::kBad;
    open_ += c;
    out += c == '{' ? '{' : '[';
    state_ = c == '{' ? State::kFirstKey : State::kFirstItem;
    return ReadStep::kMore;
  }
  if (!is_word(c)) return ReadStep::kBad;
  word_ = c;
  state_ = State::kWord;
  return ReadStep::kMore;
}

ReadStep PythonScanner::next(char c, std::string& out) {
  if (c == '}' || c == ']' || c == ')') return close(c, out);
  if (c != ',' || open_.empty()) return ReadStep::kBad;
  comma_ = true;
  state_ = open_.back() == '{' ? State::kFirstKey : State::kFirstItem;  // a comma may be the last
  return ReadStep::kMore;
}

ReadStep PythonScanner::close(char c, std::string& out) {
  if (open_.empty() || open_.back() != (c == '}' ? '{' : c == ']' ? '[' : '(')) return ReadStep::kBad;
  open_.pop_back();
  out += c == '}' ? '}' : ']';
  comma_ = false;
  return after_value();
}

ReadStep PythonScanner::after_value() {
  state_ = State::kNext;
  return open_.empty() ? ReadStep::kDone : ReadStep::kMore;
}

ReadStep PythonScanner::string(char c, std::string& out) {
  if (c == '\\') {
    state_ = State::kEscape;
  } else if (c == quote_) {
    out += '"';
    if (!key_) return after_value();
    key_ = false;
    state_ = State::kColon;
  } else {
    append_json_escaped(out, std::string_view(&c, 1));
  }
  return ReadStep::kMore;
}

ReadStep PythonScanner::escape(char c, std::string& out) {
  static constexpr std::string_view kNames = "nrtbfva\\'\"/", kMeanings = "\n\r\t\b\f\v\a\\'\"/";
  state_ = State::kString;
  if (const std::size_t at = kNames.find(c); at != kNames.npos) {
    append_json_escaped(out, kMeanings.substr(at, 1));
  } else if (c == 'x' || c == 'u' || c == 'U') {
    width_ = digits_ = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    value_ = 0;
    state_ = State::kCode;
  } else if (c >= '0' && c <= '7') {
    value_ = static_cast<unsigned>(c - '0');
    digits_ = 2;
    state_ = State::kOctal;
  } else if (c != '\n') {  // a line that goes on; else Python keeps what it does not know
    out += "\\\\";
    append_json_escaped(out, std::string_view(&c, 1));
  }
  return ReadStep::kMore;
}

ReadStep PythonScanner::code(char c, std::string& out) {
  if (state_ == State::kOctal) {
    const bool octal = c >= '0' && c <= '7';
    if (octal) value_ = value_ * 8 + static_cast<unsigned>(c - '0');
    if (octal && --digits_ > 0) return ReadStep::kMore;
    append_character(out, value_);
    state_ = State::kString;
    return octal ? ReadStep::kMore : string(c, out);
  }
  const int digit = hex_value(c);
  if (digit < 0) return ReadStep::kBad;
  value_ = value_ * 16 + static_cast<unsigned>(digit);
  if (--digits_ > 0) return ReadStep::kMore;
  if (value_ > 0x10FFFF || (width_ == 8 && value_ >= 0xD800 && value_ <= 0xDFFF)) return ReadStep::kBad;
  append_character(out, value_);
  state_ = State::kString;
  return ReadStep::kMore;
}

bool PythonScanner::write_word(std::string& out) {
  if (word_ == "True" || word_ == "true") {
    out += "true";
  } else if (word_ == "False" || word_ == "false") {
    out += "false";
  } else if (word_ == "None" || word_ == "null") {
    out += "null";
  } else if (is_number(word_)) {
    out += word_;
  } else {
    return false;
  }
  word_.clear();
  return true;
}

bool PythonScanner::finish(std::string& out) {
  if (state_ != State::kWord || !write_word(out)) return false;
  state_ = State::kNext;
  return open_.empty();
}

}  // namespace weir::api
