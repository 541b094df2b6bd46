// SPDX-License-Identifier: Apache-2.0
// Server-Sent Events (WHATWG HTML, 9.2): written as one string per event, read from pieces cut anywhere.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace weir::http {

struct SseEvent {
  std::string data;   // lines joined by '\n'
  std::string event;  // "message" when the stream names none
  std::string id;     // the last id of the stream so far
};

// "data: …\n\n", with event and id lines before it when given; a data of several lines becomes several data lines.
std::string format_event(std::string_view data, std::string_view event = {}, std::string_view id = {});
std::string format_comment(std::string_view text);

class SseParser {
 public:
  explicit SseParser(std::size_t max_event_bytes = 8u << 20) : max_event_bytes_(max_event_bytes) {}

  // Calls on_event for each event that the bytes complete. False, and for ever, when a line or an event is larger than the limit.
  bool feed(std::string_view bytes, const std::function<void(SseEvent&)>& on_event);

  // The reconnection time the stream asked for, in ms; -1 when it did not.
  long retry_ms() const { return retry_ms_; }
  // An event was begun but not ended: what the standard wants dropped at the stream's end.
  bool pending() const { return has_data_ || !line_.empty(); }

 private:
  void end_line(const std::function<void(SseEvent&)>& on_event);
  void dispatch(const std::function<void(SseEvent&)>& on_event);
  void set_field(std::string_view name, std::string_view value);

  std::size_t max_event_bytes_;
  std::string line_, data_, event_, last_id_;
  long retry_ms_ = -1;
  bool at_start_ = true, after_cr_ = false, has_data_ = false, failed_ = false;
};

}  // namespace weir::http
