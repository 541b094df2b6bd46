// SPDX-License-Identifier: Apache-2.0
// A connected socket (TCP or unix, plain or TLS) and one timer, as a connection needs them: a reading that is always under way
// notices at once when the peer goes; a write is tried at once and only waits when the system takes no more.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/loop.h"
#include "http/tls.h"

namespace weir::http {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// What a stream tells. All calls come on the loop's thread; the stream keeps the owner alive while something is under way.
class StreamOwner : public std::enable_shared_from_this<StreamOwner> {
 public:
  virtual ~StreamOwner() = default;
  virtual void on_ready() {}  // connected, or the TLS handshake is done
  virtual void on_read(std::string_view bytes) = 0;
  virtual void on_read_end(bool clean, const std::string& reason) = 0;  // clean: the peer ended its side in order
  virtual void on_written() = 0;                                        // a write that was kWaiting is complete
  virtual void on_broken(const std::string& reason) = 0;                // connecting, a handshake or a write failed, or an exception came
  virtual void on_timer() = 0;
};

class Stream {
 public:
  Stream(Loop& loop, StreamOwner& owner);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool adopt(int fd);                          // takes a connected socket
  void connect(const SocketAddress& address);  // then on_ready or on_broken
  void accept_tls(std::shared_ptr<TlsContext> tls);
  void connect_tls(std::shared_ptr<TlsContext> tls, const std::string& host);

  // Asks for bytes: one on_read or on_read_end follows. No more than one at a time; `reading()` tells.
  void read();
  bool reading() const { return reading_; }

  enum class Write { kDone, kWaiting, kBroken };
  // Both parts, in one system call if possible. When kWaiting, they must stay until on_written; one write at a time.
  Write write(std::string_view first, std::string_view second = {});

  // on_timer comes at that time or earlier (a timer that was set for earlier is not moved): look at the clock and set it again.
  void set_timer(TimePoint at);

  void shutdown();  // no more is sent; tells the peer so
  void close();
  bool closed() const;
  bool peer_closed() const;  // although bytes are unread
  bool secure() const;
  std::string peer_certificate() const;  // its subject, when verified

 private:
  struct Native;
  void read_plain();
  void read_tls();
  void write_tls(std::size_t offset);
  void wait_writable(std::size_t offset);
  void handshake(bool server);
  void set_no_delay();
  long send_now(std::size_t offset);  // bytes taken; -1 broken
  template <class Work>
  auto guarded(Work work);

  Loop& loop_;
  StreamOwner& owner_;
  std::unique_ptr<Native> native_;
  std::string_view first_, second_;  // under way
  bool reading_ = false;
  TimePoint armed_ = TimePoint::max();
};

}  // namespace weir::http
