// SPDX-License-Identifier: Apache-2.0
#include "http/sse.h"

#include <algorithm>
#include <charconv>

namespace weir::http {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += '\n';
}

// A field of one line: what would end it is left out.
std::string one_line(std::string_view value) {
  std::string out(value);
  std::erase_if(out, [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
  return out;
}

}  // namespace

std::string format_event(std::string_view data, std::string_view event, std::string_view id) {
  std::string out;
  out.reserve(data.size() + event.size() + id.size() + 24);
  if (!event.empty()) append_field(out, "event", one_line(event));
  if (!id.empty()) append_field(out, "id", one_line(id));
  while (true) {
    const std::size_t end = data.find_first_of("\r\n");
    append_field(out, "data", data.substr(0, end));
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + (data.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  out += '\n';
  return out;
}

std::string format_comment(std::string_view text) { return ": " + one_line(text) + "\n\n"; }

bool SseParser::feed(std::string_view bytes, const std::function<void(SseEvent&)>& on_event) {
  while (!failed_ && !bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + data_.size() + end > max_event_bytes_) {
      failed_ = true;
      break;
    }
    line_ += bytes.substr(0, end);
    if (end == bytes.size()) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(on_event);
  }
  return !failed_;
}

void SseParser::end_line(const std::function<void(SseEvent&)>& on_event) {
  std::string_view line = line_;
  if (at_start_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  at_start_ = false;
  if (line.empty()) {
    line_.clear();
    dispatch(on_event);
    return;
  }
  const std::size_t colon = line.find(':');
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (colon != 0) set_field(line.substr(0, colon), value);  // else a comment
  line_.clear();
}

void SseParser::set_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (name == "event") {
    event_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) last_id_ = value;
  } else if (name == "retry") {
    long parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error == std::errc() && end == value.data() + value.size() && parsed >= 0) retry_ms_ = parsed;
  }
}

void SseParser::dispatch(const std::function<void(SseEvent&)>& on_event) {
  if (has_data_) {
    SseEvent event{std::move(data_), event_.empty() ? "message" : std::move(event_), last_id_};
    data_.clear();
    event_.clear();
    has_data_ = false;
    on_event(event);
  } else {
    event_.clear();
  }
}

}  // namespace weir::http
