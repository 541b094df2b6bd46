// SPDX-License-Identifier: Apache-2.0
#include "http/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "http/net.h"
#include "http/tls_native.h"

namespace weir::http {
namespace {

using Protocol = asio::generic::stream_protocol;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<Protocol, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;
constexpr std::size_t kTlsReadBytes = 8u << 10;

struct Tls {
  Tls(Socket& socket, std::shared_ptr<TlsContext> c) : context(std::move(c)), stream(socket, context->native().context) {}
  std::shared_ptr<TlsContext> context;
  asio::ssl::stream<Socket&> stream;
  std::vector<char> buffer = std::vector<char>(kTlsReadBytes);
};

}  // namespace

struct Stream::Native {
  explicit Native(Loop& loop) : socket(loop.context().io), timer(loop.context().io) {}
  Socket socket;
  Timer timer;
  std::optional<Tls> tls;
};

// Wraps what a completion does: the owner stays alive, a stream that was closed meanwhile stays silent, an exception closes it.
template <class Work>
auto Stream::guarded(Work work) {
  return [this, owner = owner_.shared_from_this(), work = std::move(work)](auto... arguments) mutable {
    if (closed()) return;
    try {
      work(arguments...);
    } catch (const std::exception& error) {
      owner->on_broken(error.what());
    }
  };
}

Stream::Stream(Loop& loop, StreamOwner& owner) : loop_(loop), owner_(owner), native_(std::make_unique<Native>(loop)) {}
Stream::~Stream() = default;

bool Stream::closed() const { return !native_->socket.is_open(); }
bool Stream::secure() const { return native_->tls.has_value(); }

void Stream::set_no_delay() {
  const int on = 1;
  ::setsockopt(native_->socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails for unix sockets, which do not wait
}

bool Stream::adopt(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  error_code error;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0) {
    native_->socket.assign(Protocol(name.ss_family, 0), fd, error);
  } else {
    error = asio::error::bad_descriptor;
  }
  if (error) {
    ::close(fd);
    return false;
  }
  native_->socket.native_non_blocking(true, error);
  set_no_delay();
  return !error;
}

void Stream::connect(const SocketAddress& address) {
  const Protocol::endpoint endpoint(reinterpret_cast<const sockaddr*>(&address.storage), address.size);
  error_code error;
  native_->socket.open(Protocol(address.storage.ss_family, 0), error);
  if (error) {
    asio::post(native_->socket.get_executor(), [owner = owner_.shared_from_this(), error] { owner->on_broken(error.message()); });
    return;
  }
  native_->socket.async_connect(endpoint, guarded([this](error_code failed) {
                                  if (failed) return owner_.on_broken(failed.message());
                                  native_->socket.native_non_blocking(true, failed);
                                  set_no_delay();
                                  owner_.on_ready();
                                }));
}

void Stream::accept_tls(std::shared_ptr<TlsContext> tls) {
  native_->tls.emplace(native_->socket, std::move(tls));
  handshake(true);
}

void Stream::connect_tls(std::shared_ptr<TlsContext> tls, const std::string& host) {
  const bool verify_host = tls->native().verify_host;
  native_->tls.emplace(native_->socket, std::move(tls));
  SSL* ssl = native_->tls->stream.native_handle();
  const bool literal = host.find(':') != std::string::npos || host.find_first_not_of("0123456789.") == std::string::npos;
  if (!literal) SSL_set_tlsext_host_name(ssl, host.c_str());
  if (verify_host) native_->tls->stream.set_verify_callback(asio::ssl::host_name_verification(host));
  handshake(false);
}

void Stream::handshake(bool server) {
  native_->tls->stream.async_handshake(server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client,
                                       guarded([this](error_code error) {
                                         if (error) return owner_.on_broken(error.message());
                                         owner_.on_ready();
                                       }));
}

std::string Stream::peer_certificate() const {
  if (!native_->tls) return {};
  SSL* ssl = native_->tls->stream.native_handle();
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl), &X509_free);
  if (!certificate || SSL_get_verify_result(ssl) != X509_V_OK) return {};
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  if (!out || X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253) < 0) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

void Stream::read() {
  if (closed() || reading_) return;
  reading_ = true;
  if (native_->tls) return read_tls();
  native_->socket.async_wait(Socket::wait_read, guarded([this](error_code error) {
                               reading_ = false;
                               if (error) return owner_.on_read_end(false, error.message());
                               read_plain();
                             }));
}

void Stream::read_plain() {
  std::vector<char>& scratch = loop_.context().scratch;
  ssize_t size = 0;
  do {
    size = ::recv(native_->socket.native_handle(), scratch.data(), scratch.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size > 0) return owner_.on_read({scratch.data(), static_cast<std::size_t>(size)});
  if (size == 0) return owner_.on_read_end(true, "the connection was closed");
  if (errno == EAGAIN || errno == EWOULDBLOCK) return read();
  owner_.on_read_end(false, std::strerror(errno));
}

void Stream::read_tls() {
  Tls& tls = *native_->tls;
  tls.stream.async_read_some(asio::buffer(tls.buffer), guarded([this](error_code error, std::size_t size) {
                               reading_ = false;
                               if (error) return owner_.on_read_end(error == asio::error::eof, error.message());
                               owner_.on_read({native_->tls->buffer.data(), size});
                             }));
}

long Stream::send_now(std::size_t offset) {
  std::array<iovec, 2> parts{};
  int count = 0;
  for (std::string_view part : {first_, second_}) {
    const std::size_t skip = std::min(offset, part.size());
    offset -= skip;
    part.remove_prefix(skip);
    if (!part.empty()) parts[static_cast<std::size_t>(count++)] = {const_cast<char*>(part.data()), part.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = static_cast<std::size_t>(count);
  while (true) {
    const ssize_t sent = ::sendmsg(native_->socket.native_handle(), &message, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

Stream::Write Stream::write(std::string_view first, std::string_view second) {
  if (closed()) return Write::kBroken;
  first_ = first;
  second_ = second;
  if (native_->tls) {
    write_tls(0);
    return Write::kWaiting;
  }
  const long sent = send_now(0);
  if (sent < 0) return Write::kBroken;
  if (static_cast<std::size_t>(sent) == first.size() + second.size()) return Write::kDone;
  wait_writable(static_cast<std::size_t>(sent));
  return Write::kWaiting;
}

void Stream::wait_writable(std::size_t offset) {
  native_->socket.async_wait(Socket::wait_write, guarded([this, offset](error_code error) {
                               const long sent = error ? -1 : send_now(offset);
                               if (sent < 0) return owner_.on_broken(error ? error.message() : std::strerror(errno));
                               const std::size_t now = offset + static_cast<std::size_t>(sent);
                               if (now < first_.size() + second_.size()) return wait_writable(now);
                               owner_.on_written();
                             }));
}

void Stream::write_tls(std::size_t offset) {
  const std::string_view rest = offset < first_.size() ? first_.substr(offset) : second_.substr(offset - first_.size());
  native_->tls->stream.async_write_some(asio::buffer(rest.data(), rest.size()), guarded([this, offset](error_code error, std::size_t size) {
                                          if (error) return owner_.on_broken(error.message());
                                          if (offset + size < first_.size() + second_.size()) return write_tls(offset + size);
                                          owner_.on_written();
                                        }));
}

void Stream::set_timer(TimePoint at) {
  if (at >= armed_ || closed()) return;
  armed_ = at;
  native_->timer.expires_at(at);  // cancels the later one
  native_->timer.async_wait(guarded([this](error_code error) {
    if (error) return;
    armed_ = TimePoint::max();
    owner_.on_timer();
  }));
}

void Stream::shutdown() {
  if (closed()) return;
  if (native_->tls) {
    native_->tls->stream.async_shutdown(guarded([this](error_code) {
      error_code ignored;
      native_->socket.shutdown(Socket::shutdown_send, ignored);
    }));
    return;
  }
  error_code ignored;
  native_->socket.shutdown(Socket::shutdown_send, ignored);
}

void Stream::close() {
  error_code ignored;
  native_->timer.cancel();
  armed_ = TimePoint::max();  // a client that tries the next address opens again
  native_->socket.close(ignored);
}

bool Stream::peer_closed() const {
  pollfd poll{native_->socket.native_handle(), POLLRDHUP, 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
}

}  // namespace weir::http
