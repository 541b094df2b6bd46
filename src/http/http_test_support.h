// SPDX-License-Identifier: Apache-2.0
// For tests: a server on this machine, and a client that is a bare socket, so that it can send anything in any pieces.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "http/server.h"
#include "http/socket_address.h"

namespace weir::http::testing {

using namespace std::chrono_literals;

class RawClient {
 public:
  explicit RawClient(const std::string& address, int receive_buffer = 0) {
    const auto parsed = parse_socket_address(address);
    if (!parsed) return;
    fd_ = ::socket(parsed->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&parsed->storage), parsed->size) != 0) close();
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), pending_(std::move(other.pending_)) {}
  RawClient& operator=(RawClient&&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void reset() {  // RST instead of FIN
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close();
  }

  // One reading: what one recv gives; empty at the end (ended() tells) or when nothing comes.
  std::string receive(std::chrono::milliseconds patience = 5s) {
    pollfd poll{fd_, POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(patience.count())) <= 0) return {};
    char buffer[65536];
    const ssize_t size = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (size <= 0) ended_ = true;
    return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string();
  }
  bool ended() const { return ended_; }

  std::string receive_until(std::string_view marker, std::chrono::milliseconds patience = 5s) {
    std::string& all = pending_;
    while (true) {
      if (const std::size_t at = all.find(marker); at != std::string::npos) {
        std::string found = all.substr(0, at + marker.size());
        all.erase(0, at + marker.size());
        return found;
      }
      const std::string more = receive(patience);
      if (more.empty()) return std::exchange(all, {});
      all += more;
    }
  }
  std::string receive_all(std::chrono::milliseconds patience = 5s) {
    while (true) {
      const std::string more = receive(patience);
      if (more.empty()) return std::exchange(pending_, {});
      pending_ += more;
    }
  }
  // A whole response with Content-Length (or none): head and body.
  std::string response(std::chrono::milliseconds patience = 5s) {
    std::string head = receive_until("\r\n\r\n", patience);
    const std::size_t at = head.find("Content-Length: ");
    std::size_t length = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    while (pending_.size() < length) {
      const std::string more = receive(patience);
      if (more.empty()) break;
      pending_ += more;
    }
    length = std::min(length, pending_.size());
    head += pending_.substr(0, length);
    pending_.erase(0, length);
    return head;
  }

 private:
  int fd_ = -1;
  bool ended_ = false;
  std::string pending_;
};

inline int status_of(std::string_view response) {
  return response.starts_with("HTTP/1.1 ") ? std::atoi(std::string(response.substr(9, 3)).c_str()) : 0;
}

inline std::string get(std::string_view target, std::string_view more = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n" + std::string(more) + "\r\n";
}

inline std::string post(std::string_view target, std::string_view body, std::string_view more = {}) {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n" + std::string(more) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// Waits for something that another thread does; false after ten seconds.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return condition();
}

// GET /hello answers "hello", POST /echo its body (up to 1 MB); more routes as given.
inline std::vector<Route> basic_routes(std::vector<Route> more = {}) {
  more.push_back({"GET", "/hello", [](const Request&, const Responder& responder) { responder.respond(Response::text(200, "hello")); }});
  more.push_back({"POST", "/echo",
                  [](Request request, const Responder& responder) { responder.respond(Response::text(200, std::move(request.body))); },
                  1u << 20});
  return more;
}

inline std::unique_ptr<Server> start_server(ServerOptions options = {}, std::vector<Route> routes = {}) {
  if (options.listen.empty()) options.listen = {{"127.0.0.1:0"}};
  auto server = Server::start(std::move(options), basic_routes(std::move(routes)));
  EXPECT_TRUE(server) << server.error().message;
  return server ? std::move(*server) : nullptr;
}

inline Route route(std::string method, std::string pattern, std::function<void(Request, Responder)> handler) {
  return {std::move(method), std::move(pattern), std::move(handler), 1u << 20};
}

// As many descriptors as the system lets us have.
inline std::size_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace weir::http::testing
