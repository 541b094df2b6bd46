// SPDX-License-Identifier: Apache-2.0
// Follows one JSON value byte by byte: whether it is still right, and where it ends. Keeps the open brackets only, so a value of any
// length passes through; nesting is bounded.
#pragma once

#include <string>
#include <string_view>

namespace weir::api {

// What a reader makes of one byte: more is wanted; the byte was its last one; it had ended before this byte; the byte is wrong.
enum class ReadStep { kMore, kDone, kDoneBefore, kBad };

class JsonScanner {
 public:
  static constexpr std::size_t kMaxDepth = 64;

  // `only_object`: the value must be an object.
  explicit JsonScanner(bool only_object = false) : only_object_(only_object) {}
  ReadStep step(char c);
  bool in_string() const { return state_ == State::kString || state_ == State::kEscape || state_ == State::kHex; }

 private:
  enum class State { kValue, kFirstItem, kFirstKey, kKey, kColon, kNext, kString, kEscape, kHex, kNumber, kWord };
  ReadStep value(char c);
  ReadStep string(char c);
  ReadStep number(char c);
  ReadStep word(char c);
  ReadStep next(char c);
  ReadStep open(char c);
  ReadStep close(char c);
  ReadStep after_value();

  bool only_object_;
  State state_ = State::kValue;
  std::string open_;       // '{' and '['
  bool key_ = false;       // the string is a key
  int hex_ = 0;            // digits still wanted
  std::string_view word_;  // what is left of true, false, null
  enum class Digits { kSign, kZero, kWhole, kPoint, kFraction, kE, kExponentSign, kExponent } digits_ = Digits::kSign;
};

// Within a string raw control characters are written as escapes, as JSON wants them.
void append_json_byte(std::string& out, char c, bool in_string);
// The text as a JSON string's inside.
void append_json_escaped(std::string& out, std::string_view text);

bool is_json_space(char c);

}  // namespace weir::api
