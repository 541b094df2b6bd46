// SPDX-License-Identifier: Apache-2.0
#include "http/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "http/net.h"
#include "http/socket_address.h"

namespace weir::http {
namespace {

constexpr int kAcceptsAtOnce = 64;
constexpr int kBacklog = 4096;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::unexpected<Error> failed(const std::string& address, const char* what) {
  return fail(errno == EADDRINUSE || errno == EACCES || errno == EADDRNOTAVAIL ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
              "listening on {}: {}: {}", address, what, std::strerror(errno));
}

// A unix socket whose server died stays in the file system: it is replaced when nobody answers. Anything else is left alone.
void remove_stale_socket(const SocketAddress& address, const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 && errno == ECONNREFUSED) {
    ::unlink(path.c_str());
  }
}

Result<int> bind_socket(const Listen& listen, const SocketAddress& address, const std::string& unix_path) {
  const int family = address.storage.ss_family;
  Fd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return failed(listen.address, "socket");
  const int on = 1;
  if (family != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (!unix_path.empty()) {
    remove_stale_socket(address, unix_path);
    // The mode on the descriptor becomes the file's, so that it is never open to more for a moment.
    ::fchmod(fd.get(), static_cast<mode_t>(listen.unix_mode));
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) return failed(listen.address, "bind");
  if (!unix_path.empty()) ::chmod(unix_path.c_str(), static_cast<mode_t>(listen.unix_mode));
  if (::listen(fd.get(), kBacklog) != 0) return failed(listen.address, "listen");
  return fd.release();
}

Result<int> inherited_socket(const std::string& address) {
  int fd = -1;
  const std::string number = address.substr(3);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), fd);
  if (error != std::errc() || end != number.data() + number.size() || fd < 3) {
    return fail(ErrorCode::kInvalidArgument, "listening on {}: write fd:N with N from 3 on", address);
  }
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) return failed(address, "getsockopt");
  if (listening == 0) return fail(ErrorCode::kInvalidArgument, "listening on {}: this descriptor is no listening socket", address);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

std::string bound_address(int fd) {
  SocketAddress address;
  address.size = sizeof(address.storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return "?";
  return format_socket_address(address);
}

}  // namespace

struct Listener::Native {
  explicit Native(Loop& loop, int fd) : descriptor(loop.context().io, fd), timer(loop.context().io) {}
  asio::posix::basic_stream_descriptor<asio::io_context::executor_type> descriptor;
  asio::steady_timer timer;
};

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const Listen& listen) {
  std::string unix_path;
  int fd = -1;
  if (listen.address.starts_with("fd:")) {
    WEIR_ASSIGN(fd, inherited_socket(listen.address));
  } else {
    WEIR_ASSIGN(const SocketAddress address, parse_socket_address(listen.address));
    if (address.storage.ss_family == AF_UNIX) unix_path = listen.address.substr(5);
    WEIR_ASSIGN(fd, bind_socket(listen, address, unix_path));
  }
  return std::unique_ptr<Listener>(new Listener(loop, fd, bound_address(fd), unix_path));
}

Listener::Listener(Loop& loop, int fd, std::string address, std::string unlink_path)
    : address_(std::move(address)), unlink_path_(std::move(unlink_path)), native_(std::make_unique<Native>(loop, fd)) {}

Listener::~Listener() { close(); }

void Listener::start(OnAccept on_accept) {
  on_accept_ = std::move(on_accept);
  wait();
}

void Listener::close() {
  error_code ignored;
  if (!native_->descriptor.is_open()) return;
  native_->timer.cancel();
  native_->descriptor.close(ignored);
  if (!unlink_path_.empty()) ::unlink(unlink_path_.c_str());
}

void Listener::wait() {
  native_->descriptor.async_wait(asio::posix::descriptor_base::wait_read, [this](error_code error) {
    if (error) return;
    accept_some();
  });
}

void Listener::accept_some() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    SocketAddress peer;
    peer.size = sizeof(peer.storage);
    const int fd = ::accept4(native_->descriptor.native_handle(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      on_accept_(fd, format_socket_address(peer));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log::warn("http: cannot accept a connection on {}: {}", address_, std::strerror(errno));
      return pause();
    }
    // Anything else belongs to the one connection that ended before it was accepted.
  }
  wait();
}

// No descriptors are left: trying again at once would spin.
void Listener::pause() {
  native_->timer.expires_after(std::chrono::milliseconds(50));
  native_->timer.async_wait([this](error_code error) {
    if (!error) wait();
  });
}

std::vector<std::string> inherited_sockets() {
  std::vector<std::string> sockets;
  const char* pid = std::getenv("LISTEN_PID");
  const char* count = std::getenv("LISTEN_FDS");
  if (pid && count && std::to_string(::getpid()) == pid) {
    const long fds = std::strtol(count, nullptr, 10);
    for (long fd = 3; fd < 3 + std::min(fds, 64L); ++fd) sockets.push_back(fmt::format("fd:{}", fd));
  }
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  return sockets;
}

}  // namespace weir::http
