// SPDX-License-Identifier: Apache-2.0
// What all connections of a server share: options, routes, counters, the current TLS settings.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "http/loop.h"
#include "http/server.h"
#include "http/tls.h"

namespace weir::http {

struct ServerCore {
  ServerOptions options;
  Router router;

  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> next_request_id{1};
  std::atomic<std::uint64_t> open{0}, refusing{0}, accepted{0}, refused{0}, active{0}, done{0}, malformed{0}, timeouts{0}, clients_gone{0},
      body_bytes{0};

  std::shared_ptr<TlsContext> tls() const {
    const std::lock_guard lock(tls_mutex_);
    return tls_;
  }
  void set_tls(std::shared_ptr<TlsContext> tls) {
    const std::lock_guard lock(tls_mutex_);
    tls_.swap(tls);
  }

  // In the caller's shape, or as {"error":{"code","message"}}. No exception leaves.
  Response error(int status, std::string_view message) const;
  void report(const AccessRecord& record) const;

 private:
  mutable std::mutex tls_mutex_;
  std::shared_ptr<TlsContext> tls_;
};

// The head of an answer as it is sent.
struct HeadFraming {
  enum class Body { kLength, kChunked, kUntilClose, kNone } body = Body::kLength;
  std::size_t length = 0;
  bool keep_alive = true;
  bool http_1_0 = false;
};
std::string format_response_head(const Response& response, const HeadFraming& framing, std::string_view server_name);

// Cross-origin headers for the answer to a request from `origin`; nothing when that origin is not allowed.
void add_cors(const Cors& cors, std::string_view origin, Headers& headers, bool preflight);

}  // namespace weir::http
