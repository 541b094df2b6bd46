// SPDX-License-Identifier: Apache-2.0
// A handler's side of one request: answer now or later, at once or as a stream, from any thread. No call blocks or throws.
// Everything that is pushed waits in a bounded queue; the io thread writes it out, one write per event.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/message.h"

namespace weir::http {

class Exchange;

// Why nobody waits for the answer any longer.
enum class Gone : std::uint8_t {
  kNo,
  kClientClosed,  // end of file or a reset: the client went away
  kTooSlow,       // the client did not read within the write timeout, or the queue was full
  kDeadline,      // the request's own time is over; an answer can still be given within the grace time
  kShutdown,      // a drain's deadline passed
};
std::string_view gone_name(Gone gone);  // "client_closed", …

enum class Push : std::uint8_t {
  kOk,
  kFull,  // not taken: the queue holds max_queued_bytes; on_writable tells when there is room (Overflow::kRefuse only)
  kGone,  // not taken: nobody reads it, or the answer is over already
};

enum class Overflow : std::uint8_t {
  kCancel,  // a reader this slow is cut: Gone::kTooSlow
  kRefuse,  // push answers kFull, the caller waits
};

struct StreamOptions {
  std::size_t max_queued_bytes = 1u << 20;
  Overflow overflow = Overflow::kCancel;
  Duration comment_after{};  // a stream of events that is silent for so long gets a comment, so that proxies keep it; zero: never
};

// A handle: copies mean the same request. When the last copy goes without an answer, the server answers 500; when it goes in
// the middle of a stream, the connection is cut, so that the client sees that the stream is incomplete.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange);
  ~Responder();
  Responder(const Responder&);
  Responder(Responder&&) noexcept;
  Responder& operator=(const Responder&);
  Responder& operator=(Responder&&) noexcept;

  // The whole answer. False when there is one already or nobody waits.
  bool respond(Response response) const;

  // A streamed answer (chunked; until the connection's end for HTTP/1.0): its head goes out at once.
  bool start_stream(int status, Headers headers, const StreamOptions& options = {}) const;
  Push write(std::string_view bytes) const;
  // Server-Sent Events: status 200, text/event-stream, no caching or proxy buffering.
  bool start_events(Headers headers = {}, const StreamOptions& options = {.comment_after = std::chrono::seconds(15)}) const;
  Push send_event(std::string_view data, std::string_view event = {}, std::string_view id = {}) const;
  Push send_comment(std::string_view text) const;
  bool finish() const;  // after what is queued
  bool abort() const;   // the connection ends without the stream's regular end

  // Told once, on an io thread, when the client goes, is too slow, or a deadline passes; at once if that has happened, and never after
  // the answer's end. Replaces the callback before. It must not block.
  void on_gone(std::function<void(Gone)> callback) const;
  Gone gone() const;  // one atomic read: cheap enough for each token
  // Told on an io thread after kFull, when half of the queue is free again.
  void on_writable(std::function<void()> callback) const;
  std::size_t queued_bytes() const;

  // When on_gone(kDeadline) is to come. After a grace time of ServerOptions::deadline_grace, the server answers 504 or cuts the stream.
  void set_deadline(TimePoint when) const;

  std::uint64_t request_id() const;

 private:
  std::shared_ptr<Exchange> exchange_;
  void release();
};

}  // namespace weir::http
