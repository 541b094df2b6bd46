// SPDX-License-Identifier: Apache-2.0
// For tests only: a HTTP server on a free port of this machine whose every answer is written by the test, down to broken
// connections. Plain sockets, so that it can misbehave in any way.
#pragma once

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "store/names.h"

namespace weir::store {

struct ServedRequest {
  std::string line;                            // "GET /file HTTP/1.1"
  std::string path;                            // "/file"
  std::map<std::string, std::string> headers;  // names in lower case
  int number = 0;                              // 0 for the first request of the server

  std::string header(const std::string& name) const { return headers.contains(name) ? headers.at(name) : ""; }
  // First byte of a "Range: bytes=N-", or 0.
  std::size_t range_start() const {
    const std::string range = header("range");
    std::size_t start = 0;
    if (range.starts_with("bytes=")) std::from_chars(range.data() + 6, range.data() + range.size(), start);
    return start;
  }
};

class ServedConnection {
 public:
  explicit ServedConnection(int fd) : fd_(fd) {}

  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t put = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  // A head; every connection serves one request.
  bool head(std::string_view status, const std::vector<std::string>& headers = {}) {
    std::string text = fmt::format("HTTP/1.1 {}\r\nConnection: close\r\n", status);
    for (const std::string& header : headers) text += header + "\r\n";
    return send(text + "\r\n");
  }
  void answer(std::string_view status, std::string_view body = "", std::vector<std::string> headers = {}) {
    headers.push_back(fmt::format("Content-Length: {}", body.size()));
    head(status, headers);
    send(body);
  }
  void redirect(const std::string& to, std::vector<std::string> headers = {}) {
    headers.push_back("Location: " + to);
    answer("302 Found", "", headers);
  }
  // The file as a good server gives it: the range asked for, unless If-Range names another version.
  void file(const ServedRequest& request, std::string_view content, const std::string& etag = "\"v1\"",
            std::vector<std::string> headers = {}) {
    if (!etag.empty()) headers.push_back("ETag: " + etag);
    const std::string if_range = request.header("if-range");
    const std::size_t start = request.range_start();
    if (start == 0 || (!if_range.empty() && if_range != etag)) return answer("200 OK", content, headers);
    if (start >= content.size()) {
      headers.push_back(fmt::format("Content-Range: bytes */{}", content.size()));
      return answer("416 Range Not Satisfiable", "", headers);
    }
    headers.push_back(fmt::format("Content-Range: bytes {}-{}/{}", start, content.size() - 1, content.size()));
    answer("206 Partial Content", content.substr(start), headers);
  }
  // Until the client goes away (or the time is over).
  void hang(std::chrono::milliseconds longest = std::chrono::seconds(20)) {
    pollfd waiting{fd_, POLLRDHUP | POLLHUP | POLLERR, 0};
    ::poll(&waiting, 1, static_cast<int>(longest.count()));
  }

 private:
  int fd_;
};

class TestServer {
 public:
  using Handler = std::function<void(const ServedRequest&, ServedConnection&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    WEIR_CHECK(listener_ >= 0 && ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_, 16) == 0);
    WEIR_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TestServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (std::thread& worker : workers_) worker.join();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string origin() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::string url(std::string_view path) const { return fmt::format("{}{}", origin(), path); }
  std::vector<ServedRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void accept_all() {
    while (!stopping_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      workers_.emplace_back([this, fd] {
        serve(fd);
        ::close(fd);
      });
    }
  }

  void serve(int fd) {
    std::string text;
    char piece[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(fd, piece, sizeof piece, 0);
      if (got <= 0 || text.size() > 65536) return;
      text.append(piece, static_cast<std::size_t>(got));
    }
    ServedRequest request = parse(text);
    {
      const std::lock_guard lock(mutex_);
      request.number = static_cast<int>(requests_.size());
      requests_.push_back(request);
    }
    ServedConnection connection(fd);
    handler_(request, connection);
    ::shutdown(fd, SHUT_WR);
  }

  static ServedRequest parse(const std::string& text) {
    ServedRequest request;
    request.line = text.substr(0, text.find("\r\n"));
    const std::size_t path = request.line.find(' ') + 1;
    request.path = request.line.substr(path, request.line.find(' ', path) - path);
    for (std::size_t at = text.find("\r\n") + 2; at < text.size() && text.compare(at, 2, "\r\n") != 0;) {
      const std::size_t end = text.find("\r\n", at), colon = text.find(": ", at);
      if (colon < end) request.headers[lower_case(text.substr(at, colon - at))] = text.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return request;
  }

  Handler handler_;
  int listener_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<ServedRequest> requests_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

// Sets an environment variable, or with nullptr removes it, until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (before) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(had_ ? before_.c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) {
    if (value)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  bool had_ = false;
  std::string before_;
};

}  // namespace weir::store
