// SPDX-License-Identifier: Apache-2.0
// One connection of a server: bytes → request → handler → answer → next request. A state machine on one io thread; at each
// moment it reads (so that a client that goes is noticed at once, also while its answer is computed), and has one timer for
// whatever ends first.
#pragma once

#include <optional>

#include "http/exchange.h"
#include "http/request_parser.h"
#include "http/server_core.h"
#include "http/stream.h"

namespace weir::http {

class Connection;

// The connections of one loop; touched on its thread only.
class ConnectionSet {
 public:
  virtual ~ConnectionSet() = default;
  virtual void remove(Connection& connection) = 0;
};

class Connection final : public StreamOwner, public ExchangeOwner {
 public:
  // `count` has counted it; its end counts it off.
  Connection(Loop& loop, ServerCore& core, ConnectionSet& set, std::string peer, std::atomic<std::uint64_t>& count);
  ~Connection() override;

  void start(int fd, bool tls);
  void start_refused(int fd);  // one connection too many: 503, then closed
  void drain();                // closes if it waits for a request; else it ends with the answer
  // Ends at once. Tells what was cut, if a request was being answered.
  std::optional<DrainReport::Cut> cut();

 private:
  enum class State { kHandshake, kIdle, kHead, kBody, kAnswering, kLingering, kClosed };
  // What is left of a request when the handler has it.
  struct Meta {
    std::uint64_t id = 0;
    std::string method, target, user_agent, traceparent, origin;
    std::string_view route;
    int minor_version = 1;
    TimePoint received{}, handled{}, first_byte{};
    std::uint64_t bytes_in = 0, bytes_out = 0;
    int status = 0;
    bool streamed = false, counted = false;
  };

  // connection.cc: life and time
  void on_ready() override;
  void on_broken(const std::string& reason) override;
  void on_timer() override;
  void check_request_deadline(TimePoint now);
  void check_silence(TimePoint now);
  TimePoint next_deadline();
  void arm() { stream_.set_timer(next_deadline()); }
  void linger();
  void close(Gone gone = Gone::kClientClosed);
  void report(bool complete, Gone gone);

  // connection_read.cc: bytes → request → handler
  void on_read(std::string_view bytes) override;
  void on_read_end(bool clean, const std::string& reason) override;
  void read_more();
  void consume(std::string_view bytes);
  void parse(std::string_view bytes, std::size_t& used);
  void note_progress();
  void begin_request();
  bool on_head();
  bool choose_route(Request& request);
  bool precheck(const Request& request);
  bool answer_options(const Request& request);
  void send_continue(const Request& request, bool body_has_begun);
  bool hold_body();
  void call_handler();
  void open_exchange();
  void fill_meta(const Request& request);

  // connection_write.cc: answer → bytes
  void on_written() override;
  void on_exchange_changed() override;
  void answer(Response response, bool and_close);
  void refuse(int status, std::string_view message) { answer(core_.error(status, message), true); }
  void answer_instead(int status, std::string_view message);
  void flush();
  bool send(Exchange::Piece piece);
  void compose_head(Exchange::Piece& piece);
  void after_write();
  void finish_exchange();

  Loop& loop_;
  ServerCore& core_;
  ConnectionSet& set_;
  const std::string peer_;
  std::atomic<std::uint64_t>& count_;
  Stream stream_;
  std::string certificate_;

  State state_ = State::kIdle;
  std::optional<RequestParser> parser_;
  std::string input_;  // read, not parsed yet
  const Route* route_ = nullptr;
  std::shared_ptr<Exchange> exchange_;
  Meta meta_;
  std::string out_head_, out_body_;
  std::size_t out_queued_ = 0;  // of out_body_, what the exchange counts
  std::uint64_t requests_ = 0;
  std::uint64_t body_held_ = 0;
  std::size_t lingered_bytes_ = 0;
  bool head_only_ = false, keep_alive_ = true, writing_ = false, interim_ = false, last_piece_ = false, consuming_ = false, ended_ = false;

  TimePoint state_since_{}, last_write_{}, write_deadline_ = TimePoint::max(), grace_ends_ = TimePoint::max();
  std::uint64_t body_seen_ = 0;
};

}  // namespace weir::http
