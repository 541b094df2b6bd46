// SPDX-License-Identifier: Apache-2.0
// One request out of bytes that arrive in any pieces: the strict head first, as Beast's parser frames it, then the body.
// It pauses after the head, so that a route and its limits can be chosen before the body is read.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "http/chunked_body.h"
#include "http/head_syntax.h"
#include "http/message.h"

namespace weir::http {

class RequestParser {
 public:
  explicit RequestParser(const HeadLimits& limits);
  ~RequestParser();

  // Takes bytes from the front of `input` and returns how many; what it leaves has to come again, with more behind it. It never
  // takes a byte beyond the request's last one.
  std::size_t parse(std::string_view input);

  bool started() const { return started_; }  // a byte of the head has been seen
  bool head_done() const { return head_done_; }
  bool done() const { return done_; }
  const std::optional<ParseFailure>& failure() const { return failure_; }

  // Between head and body. A longer body is a failure with status 413, by its announced length at once.
  void limit_body(std::uint64_t max_bytes);
  bool expects_body() const { return !done_; }
  std::optional<std::uint64_t> content_length() const;

  Request& request();

 private:
  class Framing;  // Beast
  std::size_t parse_head(std::string_view input);
  std::size_t parse_body(std::string_view input);

  HeadSyntax syntax_;
  std::unique_ptr<Framing> framing_;
  std::optional<ChunkedBody> chunks_;
  std::uint64_t body_left_ = 0;  // of a Content-Length
  std::uint64_t max_body_bytes_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<ParseFailure> failure_;
  bool started_ = false, head_done_ = false, done_ = false, skipped_line_ = false;
};

}  // namespace weir::http
