// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server that is safe to expose: strict parsing, every size and every wait limited, nothing from outside can stop it.
// A few io threads run all connections; handlers get plain structs and a Responder, and see neither sockets nor Asio.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/head_syntax.h"
#include "http/message.h"
#include "http/responder.h"
#include "http/router.h"

namespace weir::http {

struct Listen {
  // "127.0.0.1:8080", "[::1]:8080", "unix:/run/weir.sock", or "fd:3" for a listening socket inherited from the parent. Port 0: any free.
  std::string address;
  bool tls = false;
  unsigned unix_mode = 0600;
};

struct TlsFiles {
  std::filesystem::path certificate;  // PEM, the chain
  std::filesystem::path key;          // PEM
  std::filesystem::path client_ca;    // PEM; when set, client certificates are verified against it
  bool require_client_certificate = false;
};

// Off while `origins` is empty.
struct Cors {
  std::vector<std::string> origins;  // exact ("https://app.example"), or "*"
  std::string allow_headers = "Authorization, Content-Type";
  bool allow_credentials = false;
  int max_age_s = 600;
};

struct ServerLimits {
  HeadLimits head;
  std::size_t max_connections = 4096;                  // beyond: 503 and closed
  std::size_t max_requests_per_connection = 0;         // 0: no limit
  std::size_t max_total_body_bytes = 512u << 20;       // of all request bodies held at a time; beyond: 503
  std::size_t max_pipelined_bytes = 64u << 10;         // read ahead while a request is answered
  Duration header_timeout = std::chrono::seconds(10);  // first to last byte of a head, and the TLS handshake: 408
  Duration body_timeout = std::chrono::seconds(30);    // for a body, plus the time it takes at min_bytes_per_second: 408
  Duration idle_timeout = std::chrono::seconds(120);   // a kept connection between requests, and before the first
  Duration write_timeout = std::chrono::seconds(30);   // for one piece of an answer, plus the time at min_bytes_per_second
  std::size_t min_bytes_per_second = 8u << 10;
  Duration deadline_grace = std::chrono::seconds(2);  // between on_gone(kDeadline) and the server's own 504
};

// What is known of a request at its end, for access logs, metrics and spans.
struct AccessRecord {
  std::uint64_t request_id = 0;
  std::string_view method;  // empty when the head was not readable
  std::string_view route;   // the pattern; empty when none matched. The target itself may hold what must not be logged.
  std::string_view target;
  std::string_view peer;
  std::string_view user_agent;
  std::string_view traceparent;
  int status = 0;               // 0: nothing was sent
  std::uint64_t bytes_in = 0;   // of the body
  std::uint64_t bytes_out = 0;  // head and body as sent
  Duration to_handler{};        // from the first byte to the handler's call: reading and parsing
  Duration to_first_byte{};     // to the answer's first byte
  Duration total{};
  bool streamed = false;
  bool complete = false;  // the whole answer was given to the system
  Gone gone = Gone::kNo;  // why not
};

struct ServerOptions {
  std::vector<Listen> listen;
  TlsFiles tls{};
  ServerLimits limits;
  Cors cors;
  int io_threads = 1;
  std::string server_name = "weir";  // the Server header; empty: none
  // The body of errors that the server itself answers; the caller's shape. `code` is one word: "bad_request", "not_found", …
  std::function<Response(int status, std::string_view code, std::string_view message)> error_response{};
  std::function<void(const AccessRecord&)> on_request_done{};  // on an io thread; must not block
  std::function<void()> on_thread_start{};                     // runs first on each io thread: names, affinity
};

struct ServerStats {
  std::uint64_t connections_open = 0;
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;  // over max_connections
  std::uint64_t requests_active = 0;      // a handler has been called and the answer is not over
  std::uint64_t requests_done = 0;
  std::uint64_t requests_malformed = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t clients_gone = 0;
  std::uint64_t body_bytes_held = 0;
};

struct DrainReport {
  struct Cut {
    std::uint64_t request_id = 0;
    std::string method, route;
    Duration age{};
  };
  std::uint64_t finished = 0;  // requests that were active when the drain began, and could end
  std::vector<Cut> cut;
};

class Server {
 public:
  // Binds everything and starts. Errors name the address, file or route.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, std::vector<Route> routes);
  ~Server();  // stops at once; responders that are left then do nothing

  // As bound: "127.0.0.1:43121", "unix:/run/weir.sock".
  std::vector<std::string> addresses() const;
  ServerStats stats() const;

  // Reads the certificate files again for new connections; on an error the old ones stay.
  Status reload_tls();

  // Stops accepting, closes idle connections, lets requests finish until the deadline, then cuts. Blocks; ends with no connections.
  DrainReport drain(Duration deadline);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Socket activation: the listening sockets systemd passed ($LISTEN_FDS of $LISTEN_PID), as "fd:3", "fd:4", …; unsets the variables.
std::vector<std::string> inherited_sockets();

}  // namespace weir::http
