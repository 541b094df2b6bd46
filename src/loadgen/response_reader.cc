// SPDX-License-Identifier: Apache-2.0
#include "loadgen/response_reader.h"

#include <algorithm>
#include <charconv>

#include "http/message.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMaxLine = 16u << 10, kMaxChunkLine = 4096;
constexpr int kMaxLines = 256;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool contains_ignoring_case(std::string_view text, std::string_view token) {
  for (std::size_t i = 0; i + token.size() <= text.size(); ++i)
    if (http::equal_ignoring_case(text.substr(i, token.size()), token)) return true;
  return false;
}

}  // namespace

void ResponseReader::reset() {
  state_ = State::kHead;
  begun_ = whole_line_ = event_stream_ = chunked_ = has_length_ = false;
  keep_alive_ = true;
  status_ = lines_ = 0;
  left_ = 0;
  line_.clear();
}

std::size_t ResponseReader::step(std::string_view input, std::string_view& body) {
  begun_ = true;
  std::size_t taken = 0;
  switch (state_) {
    case State::kHead:
      taken = take_line(input, kMaxLine);
      if (whole_line_) end_head_line();
      return taken;
    case State::kLength:
    case State::kChunk:
      taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
      body = input.substr(0, taken);
      left_ -= taken;
      if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
      return taken;
    case State::kUntilClose: body = input; return input.size();
    case State::kChunkSize:
      taken = take_line(input, kMaxChunkLine);
      if (whole_line_) end_chunk_size();
      return taken;
    case State::kChunkEnd:
      taken = take_line(input, 2);
      if (!whole_line_) return taken;
      state_ = line_.empty() ? State::kChunkSize : State::kFailed;
      line_.clear();
      return taken;
    case State::kTrailers:
      taken = take_line(input, kMaxLine);
      if (!whole_line_) return taken;
      if (line_.empty()) state_ = State::kDone;
      if (++lines_ > kMaxLines) state_ = State::kFailed;
      line_.clear();
      return taken;
    case State::kDone:
    case State::kFailed: break;
  }
  return 0;
}

std::size_t ResponseReader::take_line(std::string_view input, std::size_t limit) {
  const std::size_t end = input.find('\n');
  whole_line_ = end != std::string_view::npos;
  const std::size_t taken = whole_line_ ? end + 1 : input.size();
  line_.append(input.substr(0, whole_line_ ? end : taken));
  if (whole_line_ && line_.ends_with('\r')) line_.pop_back();
  if (line_.size() > limit) {
    state_ = State::kFailed;
    whole_line_ = false;
  }
  return taken;
}

void ResponseReader::end_head_line() {
  const std::string_view line = line_;
  if (++lines_ > kMaxLines) {
    state_ = State::kFailed;
  } else if (status_ == 0) {
    if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ') {
      state_ = State::kFailed;
    } else {
      const auto [end, error] = std::from_chars(line.data() + 9, line.data() + 12, status_);
      if (error != std::errc() || end != line.data() + 12 || status_ < 100 || status_ > 599) state_ = State::kFailed;
      keep_alive_ = line[7] != '0';
    }
  } else if (line.empty()) {
    end_head();
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    take_field(line.substr(0, colon), trim(line.substr(colon + 1)));
  } else {
    state_ = State::kFailed;
  }
  line_.clear();
}

void ResponseReader::take_field(std::string_view name, std::string_view value) {
  if (http::equal_ignoring_case(name, "content-length")) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc() || end != value.data() + value.size() || (has_length_ && length != left_)) state_ = State::kFailed;
    left_ = length;
    has_length_ = true;
  } else if (http::equal_ignoring_case(name, "transfer-encoding")) {
    chunked_ = http::equal_ignoring_case(value, "chunked");
    if (!chunked_) state_ = State::kFailed;
  } else if (http::equal_ignoring_case(name, "connection")) {
    if (contains_ignoring_case(value, "close")) keep_alive_ = false;
    if (contains_ignoring_case(value, "keep-alive")) keep_alive_ = true;
  } else if (http::equal_ignoring_case(name, "content-type")) {
    event_stream_ = contains_ignoring_case(value, "text/event-stream");
  }
}

void ResponseReader::end_head() {
  if (status_ < 200) {  // an interim response: the real one follows
    const int lines = lines_;
    reset();
    begun_ = true;
    lines_ = lines;
  } else if (status_ == 204 || status_ == 304) {
    state_ = State::kDone;
  } else if (chunked_) {
    state_ = State::kChunkSize;
  } else if (has_length_) {
    state_ = left_ > 0 ? State::kLength : State::kDone;
  } else {
    state_ = State::kUntilClose;
    keep_alive_ = false;
  }
}

void ResponseReader::end_chunk_size() {
  const std::string_view digits = trim(std::string_view(line_).substr(0, line_.find(';')));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    state_ = State::kFailed;
  else
    state_ = left_ > 0 ? State::kChunk : State::kTrailers;
  line_.clear();
}

void ResponseReader::end_of_input() {
  if (state_ == State::kUntilClose)
    state_ = State::kDone;
  else if (state_ != State::kDone)
    state_ = State::kFailed;
}

}  // namespace weir::loadgen
