// SPDX-License-Identifier: Apache-2.0
#include "loadgen/wire.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace weir::loadgen {

bool Wire::open() {
  fd_ = begin_connect(target_.address);
  return fd_ >= 0;
}

void Wire::close() {
  tls_.reset();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Wire::Ready Wire::progress() {
  if (!connected_) {
    if (const int error = connect_error(fd_); error != 0) {
      failure_ = std::strerror(error);
      return Ready::kFailed;
    }
    connected_ = true;
    wants_write_ = false;
    if (!target_.tls) return Ready::kYes;
    tls_ = {::SSL_new(target_.tls.get()), ::SSL_free};
    if (!tls_ || ::SSL_set_fd(tls_.get(), fd_) != 1) return Ready::kFailed;
    ::SSL_set_tlsext_host_name(tls_.get(), target_.host.c_str());
    if (target_.verify && ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(tls_.get()), target_.host.c_str()) != 1)
      ::SSL_set1_host(tls_.get(), target_.host.c_str());
  }
  if (!tls_) return Ready::kYes;
  ::ERR_clear_error();
  const int done = ::SSL_connect(tls_.get());
  wants_write_ = false;
  if (done == 1) return Ready::kYes;
  switch (::SSL_get_error(tls_.get(), done)) {
    case SSL_ERROR_WANT_READ: return Ready::kNotYet;
    case SSL_ERROR_WANT_WRITE: wants_write_ = true; return Ready::kNotYet;
    default: break;
  }
  const unsigned long code = ::ERR_peek_error();
  failure_ = std::string("TLS: ") + (code != 0 ? ::ERR_reason_error_string(code) : "the handshake failed");
  return Ready::kFailed;
}

long Wire::write_some(const char* bytes, std::size_t size) {
  if (!tls_) {
    const ssize_t sent = ::send(fd_, bytes, size, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  }
  ::ERR_clear_error();
  const int sent = ::SSL_write(tls_.get(), bytes, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  if (sent > 0) return sent;
  const int error = ::SSL_get_error(tls_.get(), sent);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

bool Wire::send(std::string_view bytes) {
  while (!bytes.empty() && unsent_.empty()) {
    const long sent = write_some(bytes.data(), bytes.size());
    if (sent < 0) return false;
    if (sent == 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  unsent_ += bytes;
  return true;
}

bool Wire::flush() {
  std::size_t done = 0;
  while (done < unsent_.size()) {
    const long sent = write_some(unsent_.data() + done, unsent_.size() - done);
    if (sent < 0) return false;
    if (sent == 0) break;
    done += static_cast<std::size_t>(sent);
  }
  unsent_.erase(0, done);
  return true;
}

Wire::Read Wire::read(char* buffer, std::size_t size, std::string_view& bytes) {
  if (!tls_) {
    const ssize_t got = ::recv(fd_, buffer, size, 0);
    if (got > 0) {
      bytes = {buffer, static_cast<std::size_t>(got)};
      return Read::kBytes;
    }
    if (got == 0) return Read::kEnd;
    return errno == EAGAIN || errno == EINTR ? Read::kNothing : Read::kBroken;
  }
  ::ERR_clear_error();
  const int got = ::SSL_read(tls_.get(), buffer, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  if (got > 0) {
    bytes = {buffer, static_cast<std::size_t>(got)};
    return Read::kBytes;
  }
  switch (::SSL_get_error(tls_.get(), got)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return Read::kNothing;
    case SSL_ERROR_ZERO_RETURN: return Read::kEnd;
    default: return Read::kBroken;
  }
}

}  // namespace weir::loadgen
