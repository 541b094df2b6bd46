// SPDX-License-Identifier: Apache-2.0
// JSON written piece by piece into one string: for lines of logs and bodies of exports, which are made often. What is not UTF-8 becomes
// U+FFFD, so that the result is valid whatever clients send.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::telemetry {

// Appends `text` in quotes.
void append_json_string(std::string& out, std::string_view text);
// At most `most` bytes of the text, cut between characters.
std::string_view cut_text(std::string_view text, std::size_t most);

// One object; members in the order of the calls.
class JsonLine {
 public:
  explicit JsonLine(std::string& out) : out_(out) { out_ += '{'; }
  void text(std::string_view name, std::string_view value);
  void number(std::string_view name, std::int64_t value);
  void number(std::string_view name, double value, int decimals);
  void truth(std::string_view name, bool value);
  std::string& raw(std::string_view name);  // the caller appends the value
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace weir::telemetry
