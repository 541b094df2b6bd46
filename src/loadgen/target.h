// SPDX-License-Identifier: Apache-2.0
// Whom the load goes to: an address that was looked up once, before the run, and the fixed head of each request.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/stream.h"
#include "http/tls.h"

struct ssl_ctx_st;

namespace weir::loadgen {

struct TargetOptions {
  std::string url;  // "http://host:port", or with a path that ends in /completions; "/v1/chat/completions" is added otherwise
  bool chat = true;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string api_key;  // sent as a bearer token
  http::ClientTls tls;
};

struct Target {
  http::SocketAddress address;
  std::string url;                  // of the endpoint, as used
  std::string host;                 // for TLS
  std::string head;                 // of a request, up to and with "Content-Length: "
  std::shared_ptr<ssl_ctx_st> tls;  // null: plain
  bool verify = true;

  static Result<Target> resolve(const TargetOptions& options);
};

// A socket on its way to being connected, without blocking; -1 with errno when the system refuses.
int begin_connect(const http::SocketAddress& address);
int connect_error(int fd);  // 0: connected

}  // namespace weir::loadgen
