// SPDX-License-Identifier: Apache-2.0
// Listening sockets: TCP (IPv4, IPv6), unix, or inherited from the parent process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/loop.h"
#include "http/server.h"

namespace weir::http {

class Listener {
 public:
  // Told of each accepted socket (non-blocking, close-on-exec), on the loop's thread.
  using OnAccept = std::function<void(int fd, std::string peer)>;

  static Result<std::unique_ptr<Listener>> open(Loop& loop, const Listen& listen);
  ~Listener();

  const std::string& address() const { return address_; }  // as bound
  void start(OnAccept on_accept);                          // on the loop's thread
  void close();                                            // likewise

 private:
  struct Native;
  Listener(Loop& loop, int fd, std::string address, std::string unlink_path);
  void wait();
  void accept_some();
  void pause();

  std::string address_;
  std::string unlink_path_;  // a unix socket of our own making
  std::unique_ptr<Native> native_;
  OnAccept on_accept_;
};

}  // namespace weir::http
