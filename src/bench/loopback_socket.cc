// SPDX-License-Identifier: Apache-2.0
#include "bench/loopback_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::bench {
namespace {

// A call that ran into its deadline says EAGAIN, and connect() EINPROGRESS.
std::unexpected<Error> os_error(const char* what, int error) {
  if (error == EAGAIN || error == EINPROGRESS)
    return fail(ErrorCode::kDeadline, "loopback: could not {} within {} s", what, kSocketDeadlineSeconds);
  return fail(ErrorCode::kNetwork, "loopback: could not {}: {}", what, std::strerror(error));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

template <class Call>
std::uint16_t port_by(Call call, int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  return call(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? ntohs(address.sin_port) : std::uint16_t{0};
}

// SO_SNDTIMEO bounds connect() too, SO_RCVTIMEO accept().
bool prepare(int fd) {
  const timeval deadline{.tv_sec = kSocketDeadlineSeconds, .tv_usec = 0};
  const int on = 1;
  return ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline) == 0 &&
         ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline) == 0 &&
         ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Socket> Socket::open() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.fd_ < 0 || !prepare(socket.fd_)) return os_error("make a socket", errno);
  return socket;
}

Result<Socket> Socket::listen() {
  WEIR_ASSIGN(Socket socket, open());
  const sockaddr_in address = loopback(0);
  if (::bind(socket.fd_, generic(address), sizeof address) != 0 || ::listen(socket.fd_, 128) != 0) return os_error("listen", errno);
  return socket;
}

Result<Socket> Socket::connect(std::uint16_t port) {
  WEIR_ASSIGN(Socket socket, open());
  const sockaddr_in address = loopback(port);
  if (::connect(socket.fd_, generic(address), sizeof address) != 0) return os_error("connect", errno);
  return socket;
}

Result<Socket> Socket::accept() const {
  Socket socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.fd_ < 0 || !prepare(socket.fd_)) return os_error("accept a connection", errno);
  return socket;
}

Status Socket::send(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return os_error("send", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::size_t> Socket::receive(std::span<std::byte> into) const {
  while (true) {
    const ssize_t got = ::recv(fd_, into.data(), into.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return os_error("receive", errno);
  }
}

void Socket::end_sending() const { ::shutdown(fd_, SHUT_WR); }
void Socket::stop() const { ::shutdown(fd_, SHUT_RDWR); }

void Socket::forget_on_close() const {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

std::uint16_t Socket::port() const { return port_by(::getsockname, fd_); }
std::uint16_t Socket::peer_port() const { return port_by(::getpeername, fd_); }

Result<SocketPair> connected_pair() {
  WEIR_ASSIGN(const Socket listener, Socket::listen());
  WEIR_ASSIGN(Socket client, Socket::connect(listener.port()));  // the backlog completes it
  for (int strangers = 0; strangers < 8; ++strangers) {
    WEIR_ASSIGN(Socket server, listener.accept());
    if (server.peer_port() == client.port()) return SocketPair{std::move(client), std::move(server)};
  }
  return fail(ErrorCode::kNetwork, "loopback: others connect to the port that was meant for this process");
}

}  // namespace weir::bench
