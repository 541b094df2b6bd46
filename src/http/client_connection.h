// SPDX-License-Identifier: Apache-2.0
// One connection of a client, and the request it carries. Everything happens on the client's loop.
#pragma once

#include <optional>
#include <vector>

#include "http/client.h"
#include "http/response_parser.h"
#include "http/stream.h"
#include "http/url.h"

namespace weir::http {

class ClientConnection;

// A request from start to on_done; moves to another connection when it has to be sent again.
struct ClientExchange {
  ClientRequest request;
  ClientHandlers handlers;
  Url url;
  ClientResponse response;
  std::weak_ptr<ClientConnection> connection;
  SseParser events;
  bool event_stream = false, repeated = false, over = false;

  void finish(Status status);  // once
};

class ClientConnectionOwner {
 public:
  virtual ~ClientConnectionOwner() = default;
  virtual void keep(ClientConnection& connection) = 0;                           // it can carry another request
  virtual void remove(ClientConnection& connection) = 0;                         // it is closed
  virtual void send_again(const std::shared_ptr<ClientExchange>& exchange) = 0;  // on a new connection
};

class ClientConnection final : public StreamOwner {
 public:
  ClientConnection(Loop& loop, ClientConnectionOwner& owner, std::string key, std::shared_ptr<TlsContext> tls,
                   const std::string& user_agent);
  ~ClientConnection() override;

  const std::string& key() const { return key_; }
  void keep_until(TimePoint when);  // then it closes, unless it carries a request
  bool usable() const { return state_ == State::kKept && !stream_.closed() && !stream_.peer_closed(); }

  // With the first request; then resolved() or failed() follow.
  void begin(std::shared_ptr<ClientExchange> exchange);
  void resolved(std::vector<SocketAddress> addresses);
  void carry(std::shared_ptr<ClientExchange> exchange);  // another request on a kept connection
  void failed(ErrorCode code, const std::string& reason);
  void close();

 private:
  enum class State { kConnecting, kSecuring, kActive, kKept, kClosed };

  void on_ready() override;
  void on_read(std::string_view bytes) override;
  void on_read_end(bool clean, const std::string& reason) override;
  void on_written() override;
  void on_broken(const std::string& reason) override;
  void on_timer() override;

  void send();
  void sent();
  void receive(std::string_view bytes);
  bool deliver();
  void begin_body();
  void complete();
  void arm();
  void connect_next(const std::string& reason);
  TimePoint next_deadline(const char** what) const;
  std::string format_head() const;

  ClientConnectionOwner& owner_;
  const std::string key_;
  const std::shared_ptr<TlsContext> tls_;  // null: plain
  const std::string user_agent_;
  Stream stream_;
  State state_ = State::kConnecting;
  std::shared_ptr<ClientExchange> exchange_;
  std::vector<SocketAddress> addresses_;
  std::size_t next_address_ = 0;
  std::optional<ResponseParser> parser_;
  std::string out_head_, input_, piece_;
  bool sending_ = false, head_told_ = false;
  TimePoint last_read_{}, kept_until_ = TimePoint::max();
};

}  // namespace weir::http
