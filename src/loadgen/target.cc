// SPDX-License-Identifier: Apache-2.0
#include "loadgen/target.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "http/head_syntax.h"
#include "http/message.h"
#include "http/url.h"

namespace weir::loadgen {
namespace {

Result<http::SocketAddress> look_up(const std::string& host, const std::string& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return fail(ErrorCode::kNetwork, "looking up {}: {}", host, ::gai_strerror(error));
  // The first address that takes a connection: "localhost" may mean two.
  http::SocketAddress address;
  for (const addrinfo* a = found; a; a = a->ai_next) {
    if (a->ai_addrlen > sizeof address.storage) continue;
    const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool last = !a->ai_next, connects = fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0;
    const int reason = errno;
    if (fd >= 0) ::close(fd);
    if (connects || last) {
      std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
      address.size = a->ai_addrlen;
    }
    if (connects) break;
    if (last) {
      ::freeaddrinfo(found);
      return fail(ErrorCode::kNetwork, "connecting to {} port {}: {}", host, port, std::strerror(reason));
    }
  }
  ::freeaddrinfo(found);
  return address;
}

Result<std::shared_ptr<ssl_ctx_st>> make_tls(const http::ClientTls& tls) {
  std::shared_ptr<ssl_ctx_st> context(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  if (!context) return fail(ErrorCode::kInternal, "TLS cannot be set up");
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const bool ok = tls.ca.empty() ? ::SSL_CTX_set_default_verify_paths(context.get()) == 1
                                 : ::SSL_CTX_load_verify_locations(context.get(), tls.ca.c_str(), nullptr) == 1;
  if (!ok) return fail(ErrorCode::kIo, "the certificates to verify with cannot be read: {}", tls.ca.string());
  if (!tls.certificate.empty() && (::SSL_CTX_use_certificate_chain_file(context.get(), tls.certificate.c_str()) != 1 ||
                                   ::SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1))
    return fail(ErrorCode::kIo, "the client's certificate or key cannot be used: {}", tls.certificate.string());
  ::SSL_CTX_set_verify(context.get(), tls.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return context;
}

std::string endpoint_path(std::string path, bool chat) {
  if (path.ends_with("/completions")) return path;
  while (path.ends_with('/')) path.pop_back();
  if (!path.ends_with("/v1")) path += "/v1";
  return path + (chat ? "/chat/completions" : "/completions");
}

}  // namespace

Result<Target> Target::resolve(const TargetOptions& options) {
  WEIR_ASSIGN(const http::Url url, http::parse_typed_url(options.url));
  Target target;
  WEIR_ASSIGN(target.address, look_up(url.host, url.port));
  const std::string path = endpoint_path(url.target, options.chat);
  target.url = http::origin_of(url) + path;
  target.host = url.host;
  target.verify = options.tls.verify;
  if (url.tls) {
    WEIR_ASSIGN(target.tls, make_tls(options.tls));
  }
  target.head = fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: weir\r\nContent-Type: application/json\r\n", path, url.authority);
  if (!options.api_key.empty()) target.head += fmt::format("Authorization: Bearer {}\r\n", http::header_safe(options.api_key));
  for (const auto& [name, value] : options.headers) {
    if (!http::is_token(name)) return fail(ErrorCode::kInvalidArgument, "'{}' is no header's name", name);
    target.head += fmt::format("{}: {}\r\n", name, http::header_safe(value));
  }
  target.head += "Content-Length: ";
  return target;
}

int begin_connect(const http::SocketAddress& address) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace weir::loadgen
