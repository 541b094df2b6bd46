// SPDX-License-Identifier: Apache-2.0
#include "http/chunked_body.h"

#include <algorithm>

#include "http/message.h"

namespace weir::http {
namespace {

constexpr int kMaxDigits = 16;  // of 64 bits

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

std::size_t ChunkedBody::parse(std::string_view input, std::uint64_t max_bytes, std::string& body) {
  room_ = max_bytes - std::min<std::uint64_t>(max_bytes, body.size());
  std::size_t used = 0;
  while (used < input.size() && !failure_ && !done()) {
    if (state_ != State::kData) {
      step(input[used++]);
      continue;
    }
    const std::size_t now = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size() - used));
    body.append(input.substr(used, now));
    used += now;
    room_ -= now;
    left_ -= now;
    if (left_ == 0) state_ = State::kDataEnd;
  }
  return used;
}

void ChunkedBody::step(char c) {
  switch (state_) {
    case State::kSize:
    case State::kMoreSize: return size_digit(c);
    case State::kSpace:
    case State::kExtension:
    case State::kQuoted:
    case State::kEscaped: return extension(c);
    case State::kSizeEnd: return end_of_size(c);
    case State::kDataEnd: return expect(c, '\r', State::kDataLf);
    case State::kDataLf: return expect(c, '\n', State::kSize);
    case State::kTrailer:
    case State::kTrailerName:
    case State::kTrailerValue: return trailer(c);
    case State::kTrailerLf: return expect(c, '\n', State::kTrailer);
    case State::kLastLf: return expect(c, '\n', State::kDone);
    case State::kData:
    case State::kDone: return;
  }
}

void ChunkedBody::expect(char c, char wanted, State next) {
  if (c != wanted)
    return fail(state_ == State::kDataEnd || state_ == State::kDataLf ? "a chunk's data does not end with CR LF"
                                                                      : "a line of the chunked body does not end with CR LF");
  state_ = next;
}

void ChunkedBody::size_digit(char c) {
  const int value = hex_value(c);
  if (value >= 0) {
    if (state_ == State::kSize) left_ = 0, digits_ = 0, extension_ = 0;
    if (++digits_ > kMaxDigits) return fail("a chunk's size has too many digits");
    left_ = left_ << 4 | static_cast<std::uint64_t>(value);
    state_ = State::kMoreSize;
    // More digits only make it larger: who announces too much is told before the line's end.
    if (left_ > room_) fail("the request's body is too large", 413);
    return;
  }
  if (state_ == State::kSize) return fail("a chunk's size is not a hexadecimal number");
  if (c == '\r') {
    state_ = State::kSizeEnd;
  } else if (is_blank(c) || c == ';') {
    extension(c);
  } else {
    fail("a chunk's size is not a hexadecimal number");
  }
}

void ChunkedBody::extension(char c) {
  if (c == '\r' && state_ == State::kExtension) {
    state_ = State::kSizeEnd;
    return;
  }
  if (is_control(c)) return fail("a chunk's extension is malformed");
  if (++extension_ > kMaxExtension || ++extensions_ > kMaxExtensions) return fail("a chunk's extension is too long");
  switch (state_) {
    case State::kMoreSize:
    case State::kSpace:
      if (!is_blank(c) && c != ';') return fail("a chunk's size is not a hexadecimal number");
      state_ = c == ';' ? State::kExtension : State::kSpace;
      return;
    case State::kQuoted:
      if (c == '"') state_ = State::kExtension;
      if (c == '\\') state_ = State::kEscaped;
      return;
    case State::kEscaped: state_ = State::kQuoted; return;
    default: break;
  }
  if (c == '"') {
    state_ = State::kQuoted;
  } else if (!is_blank(c) && c != ';' && c != '=' && !is_token({&c, 1})) {
    fail("a chunk's extension is malformed");
  }
}

void ChunkedBody::end_of_size(char c) {
  if (c != '\n') return fail("a line of the chunked body does not end with CR LF");
  state_ = left_ == 0 ? State::kTrailer : State::kData;
}

// They are checked and dropped: nobody may smuggle headers in them.
void ChunkedBody::trailer(char c) {
  if (++trailers_ > kMaxTrailers) return fail("the request's trailers are too large");
  switch (state_) {
    case State::kTrailer:
      if (c == '\r') {
        state_ = State::kLastLf;
        return;
      }
      name_.clear();
      state_ = State::kTrailerName;
      [[fallthrough]];
    case State::kTrailerName:
      if (c == ':') return end_of_trailer_name();
      if (!is_token({&c, 1})) return fail("a trailer's name is malformed");
      name_ += c;
      return;
    default: break;
  }
  if (c == '\r') {
    state_ = State::kTrailerLf;
  } else if (is_control(c)) {
    fail("a trailer's value has control characters");
  }
}

void ChunkedBody::end_of_trailer_name() {
  if (name_.empty()) return fail("a trailer's name is malformed");
  // What decides where a message ends or whom it is for has no place behind it.
  for (const std::string_view name : {"Content-Length", "Transfer-Encoding", "Host"})
    if (equal_ignoring_case(name_, name)) return fail("a trailer may not be of this name");
  state_ = State::kTrailerValue;
}

}  // namespace weir::http
