// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 response out of bytes that arrive in any pieces: the framing only, made for a client that reads hundreds of thousands a
// second. Its body is handed on as it comes, without being kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::loadgen {

class ResponseReader {
 public:
  enum class State : std::uint8_t { kHead, kLength, kChunkSize, kChunk, kChunkEnd, kTrailers, kUntilClose, kDone, kFailed };

  void reset();

  // Takes bytes from the front of `input`, passes what is body to `on_body(std::string_view)`, and returns how many it took: all of them,
  // unless the response ended before or is malformed. Interim responses (1xx) are skipped.
  template <class OnBody>
  std::size_t feed(std::string_view input, OnBody&& on_body) {
    std::size_t taken = 0;
    while (taken < input.size() && state_ != State::kDone && state_ != State::kFailed) {
      std::string_view body;
      taken += step(input.substr(taken), body);
      if (!body.empty()) on_body(body);
    }
    return taken;
  }
  void end_of_input();  // the connection's end: completes a body that lasts until then, else a failure

  bool head_done() const { return status_ != 0 && state_ != State::kHead; }
  bool begun() const { return begun_; }  // a byte of it has been seen
  bool done() const { return state_ == State::kDone; }
  bool failed() const { return state_ == State::kFailed; }
  int status() const { return status_; }
  bool event_stream() const { return event_stream_; }
  bool keep_alive() const { return keep_alive_; }

 private:
  std::size_t step(std::string_view input, std::string_view& body);
  std::size_t take_line(std::string_view input, std::size_t limit);  // into line_, whole_line_ tells whether it ended
  void end_head_line();
  void end_head();
  void take_field(std::string_view name, std::string_view value);
  void end_chunk_size();

  State state_ = State::kHead;
  bool begun_ = false, whole_line_ = false, keep_alive_ = true, event_stream_ = false, chunked_ = false, has_length_ = false;
  int status_ = 0, lines_ = 0;
  std::uint64_t left_ = 0;
  std::string line_;
};

}  // namespace weir::loadgen
