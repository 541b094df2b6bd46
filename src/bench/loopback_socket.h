// SPDX-License-Identifier: Apache-2.0
// TCP over 127.0.0.1 with a deadline on every call: what does not happen within two seconds is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace weir::bench {

inline constexpr int kSocketDeadlineSeconds = 2;

class Socket {
 public:
  // On a port that the system chooses.
  static Result<Socket> listen();
  // Without delay of small writes.
  static Result<Socket> connect(std::uint16_t port);
  Result<Socket> accept() const;

  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  Status send(std::span<const std::byte> bytes) const;           // all of them
  Result<std::size_t> receive(std::span<std::byte> into) const;  // at least one; 0 when the peer has ended
  void end_sending() const;                                      // the peer receives 0
  void stop() const;                                             // calls that wait in other threads return
  void forget_on_close() const;                                  // closing leaves nothing that waits, and holds no port
  std::uint16_t port() const;                                    // its own
  std::uint16_t peer_port() const;

 private:
  explicit Socket(int fd) : fd_(fd) {}
  static Result<Socket> open();
  int fd_ = -1;
};

// Two ends of one connection.
struct SocketPair {
  Socket client, server;
};
Result<SocketPair> connected_pair();

}  // namespace weir::bench
