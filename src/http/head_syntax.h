// SPDX-License-Identifier: Apache-2.0
// The strict reading of a request head, line by line as it arrives. Beast's parser frames the message afterwards; what it
// would let pass and another server on the way might read differently (folded lines, lists of lengths, encodings other than
// chunked, a doubtful Host) ends here, so that both ends always agree on where a request stops.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace weir::http {

struct HeadLimits {
  std::size_t max_head_bytes = 32u << 10;  // request line and headers together
  std::size_t max_target_bytes = 8u << 10;
  std::size_t max_lines = 128;
};

// Why a request is refused: the status to answer with before the connection closes.
struct ParseFailure {
  int status = 400;
  std::string_view message;  // a literal
};

class HeadSyntax {
 public:
  enum class State { kNeedMore, kComplete, kFailed };

  explicit HeadSyntax(const HeadLimits& limits) : limits_(limits) {}

  // `input` starts with the head and grows from call to call. When complete, head_bytes() of it are the head.
  State check(std::string_view input);
  std::size_t head_bytes() const { return line_start_; }
  const ParseFailure& failure() const { return failure_; }

 private:
  State fail(int status, std::string_view message);
  State check_partial_line(std::string_view input);
  bool check_line(std::string_view line);
  bool check_request_line(std::string_view line);
  bool check_field(std::string_view line);
  bool check_special_field(std::string_view name, std::string_view value);
  bool check_whole();

  HeadLimits limits_;
  std::size_t line_start_ = 0;
  std::size_t searched_ = 0;
  std::size_t lines_ = 0;
  int hosts_ = 0, lengths_ = 0, encodings_ = 0;
  bool http_1_0_ = false;
  ParseFailure failure_;
};

// Where the path begins in a target of absolute form ("http://host/path", RFC 9112 3.2.2, which servers must take); none for other targets,
// those with a host that is not one included.
std::optional<std::size_t> absolute_path_start(std::string_view target);

bool is_token(std::string_view text);  // RFC 9110: what methods and header names are made of

}  // namespace weir::http
