// SPDX-License-Identifier: Apache-2.0
// One connection's bytes, plain or TLS, without blocking. What is read and written means nothing here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loadgen/target.h"

struct ssl_st;

namespace weir::loadgen {

class Wire {
 public:
  enum class Ready { kYes, kNotYet, kFailed };
  enum class Read { kBytes, kNothing, kEnd, kBroken };

  explicit Wire(const Target& target) : target_(target) {}
  ~Wire() { close(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool open();  // begins to connect; false with errno
  void close();
  int fd() const { return fd_; }

  Ready progress();  // of connecting and the TLS handshake, after the socket told to be ready
  bool wants_write() const { return wants_write_ || !unsent_.empty(); }
  const std::string& failure() const { return failure_; }

  bool send(std::string_view bytes);  // all that the system takes now, the rest waits for flush(); false: broken
  bool flush();
  bool all_sent() const { return unsent_.empty(); }

  // Into `buffer`; `bytes` is what was read.
  Read read(char* buffer, std::size_t size, std::string_view& bytes);

 private:
  long write_some(const char* bytes, std::size_t size);  // 0: not now; below: broken

  const Target& target_;
  int fd_ = -1;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_{nullptr, nullptr};
  bool connected_ = false, wants_write_ = true;
  std::string unsent_, failure_;
};

}  // namespace weir::loadgen
