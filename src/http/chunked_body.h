// SPDX-License-Identifier: Apache-2.0
// The chunked coding of a request's body (RFC 9112, section 7.1), read byte by byte. Each line is judged as it arrives: what cannot
// become right any more is an error at once, whether or not the client sends another byte, and all but the data itself is bounded and
// dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/head_syntax.h"

namespace weir::http {

class ChunkedBody {
 public:
  static constexpr std::size_t kMaxExtension = 1024;       // of one chunk
  static constexpr std::size_t kMaxExtensions = 16 << 10;  // of all chunks together
  static constexpr std::size_t kMaxTrailers = 4096;        // all lines together

  // Takes bytes from the front of `input`, appends the data among them to `body`, and returns how many it took: all of them but for what
  // stands behind the body's end or a failure. More than `max_bytes` of data in the whole body is a failure with status 413.
  std::size_t parse(std::string_view input, std::uint64_t max_bytes, std::string& body);

  bool done() const { return state_ == State::kDone; }
  const std::optional<ParseFailure>& failure() const { return failure_; }

 private:
  enum class State {
    kSize,       // the first digit of a chunk's size is due
    kMoreSize,   // further digits, or what ends them
    kSpace,      // blanks behind the size, which only an extension may follow
    kExtension,  // behind its ';'
    kQuoted,     // within "…"
    kEscaped,    // behind a '\' within "…"
    kSizeEnd,    // the LF of the size's line
    kData,
    kDataEnd,  // the CR behind the data
    kDataLf,
    kTrailer,  // a line's beginning
    kTrailerName,
    kTrailerValue,
    kTrailerLf,
    kLastLf,  // of the empty line
    kDone,
  };

  void step(char c);
  void size_digit(char c);
  void end_of_size(char c);
  void extension(char c);
  void trailer(char c);
  void end_of_trailer_name();
  void expect(char c, char wanted, State next);
  void fail(std::string_view message, int status = 400) { failure_ = ParseFailure{status, message}; }

  State state_ = State::kSize;
  std::optional<ParseFailure> failure_;
  std::uint64_t room_ = 0;  // for data
  std::uint64_t left_ = 0;  // of this chunk; while its size is read: the size
  int digits_ = 0;
  std::size_t extension_ = 0, extensions_ = 0, trailers_ = 0;
  std::string name_;  // of a trailer
};

}  // namespace weir::http
