// SPDX-License-Identifier: Apache-2.0
// Readers of one call's body, one for each shape: they take bytes, name the function, and hand on its arguments as JSON while they come.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/output_json_scanner.h"
#include "api/output_parser_writer.h"

namespace weir::api {

inline constexpr std::size_t kMaxName = 256;              // bytes of a function's or argument's name
inline constexpr std::size_t kMaxEarlyArguments = 4096;   // that come before the function's name
inline constexpr std::size_t kMaxHeldValue = 256u << 10;  // of a value that is converted when it ends

class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual ReadStep step(char c) = 0;
  // The text ends here: what is held back of the arguments.
  virtual void finish() {}
  // After kBad: how many of the last bytes made no sense, the wrong one included.
  virtual std::size_t unread() const { return 1; }
};

// `opened`: the body's own mark (function_open) has been read.
std::unique_ptr<CallReader> make_call_reader(const CallSyntax& syntax, AnswerWriter& writer, bool opened);
// Whether a body may begin with this byte.
bool begins_body(const CallSyntax& syntax, char c);

// Without white space around.
std::string_view trimmed(std::string_view text);
bool is_name_character(char c);

// Waits for one of a few marks, whatever white space comes before.
class MarkSet {
 public:
  enum { kWaiting = -1, kNone = -2 };
  void clear() { marks_.clear(), part_.clear(); }
  void add(std::string_view mark, int id) {
    if (!trimmed(mark).empty()) marks_.emplace_back(trimmed(mark), id);
  }
  bool empty() const { return marks_.empty(); }
  // The mark's id when the byte completes it.
  int step(char c);
  std::size_t read() const { return part_.size(); }  // bytes since the white space

 private:
  std::vector<std::pair<std::string_view, int>> marks_;
  std::string part_;
};

}  // namespace weir::api
