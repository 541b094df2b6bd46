// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 client for thousands of requests at once from one thread: kept connections, TLS, streams and events as they arrive,
// cancellation, and the times a load generator needs. For the load generator, the gateway and exporters alike.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/message.h"
#include "http/sse.h"
#include "http/tls.h"

namespace weir::http {

struct ClientRequest {
  std::string method = "GET";
  std::string url;          // "http://host:port/path?query", "https://…"
  std::string unix_socket;  // connects to this path instead; the URL still gives Host and target
  Headers headers;          // Host, Content-Length and Connection are the client's
  std::string body;
  Duration connect_timeout = std::chrono::seconds(10);  // names, TCP and TLS together
  Duration first_byte_timeout{};                        // from sending; zero: none
  Duration silence_timeout{};                           // between two readings; zero: none
  Duration total_timeout{};                             // zero: none
  std::size_t max_body_bytes = 64u << 20;
  bool fresh_connection = false;  // never a kept one
  // A kept connection may turn out to have been closed by the server just then. Without an answer's first byte, requests that are safe to
  // repeat (GET, HEAD, OPTIONS, PUT, DELETE) are sent once more; others only if this says so.
  bool repeatable = false;
};

struct ClientTimes {
  TimePoint started{};     // given to the client
  TimePoint connected{};   // a connection was ready, new or kept
  TimePoint sent{};        // the last byte of the request was given to the system
  TimePoint first_byte{};  // of the response
  TimePoint last_byte{};
  bool reused = false;  // a kept connection
};

struct ClientResponse {
  int status = 0;  // 0: none came
  Headers headers;
  std::string body;  // unless on_body or on_event took it
  ClientTimes times;
  std::uint64_t body_bytes = 0;
};

// All run on the client's thread and must not block; on_done exactly once, last, with what is known even when it failed.
struct ClientHandlers {
  std::function<void(const ClientResponse&)> on_head{};
  std::function<void(std::string_view)> on_body{};  // as it arrives
  std::function<void(SseEvent&)> on_event{};        // of a text/event-stream with status 200; other bodies are collected
  std::function<void(Status, ClientResponse&)> on_done{};
};

struct ClientOptions {
  ClientTls tls;
  std::string user_agent = "weir";
  std::size_t max_kept_connections = 1024;
  Duration keep_time = std::chrono::seconds(30);
  std::function<void()> on_thread_start{};
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> make(ClientOptions options = {});
  ~Client();  // whatever runs ends as cancelled first; not from the client's own thread

  // A handle to end a request early, from any thread. Dropping it changes nothing.
  class Call {
   public:
    void cancel() const;

   private:
    friend class Client;
    std::function<void()> cancel_;
  };

  // Never blocks and never fails here: errors come to on_done.
  Call start(ClientRequest request, ClientHandlers handlers);

  // Waits for the whole response. Not from the client's own thread.
  Result<ClientResponse> fetch(ClientRequest request);

  std::size_t kept_connections() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::http
