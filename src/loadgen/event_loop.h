// SPDX-License-Identifier: Apache-2.0
// One thread that waits for sockets and exact moments. It sleeps until shortly before a moment and watches the clock for the rest, since
// a thread that is woken comes some tens of microseconds late; and it looks for due moments between any two socket events, so that
// a burst of arriving data does not delay what has to be sent now. Shared by the load generator and the null server.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weir::loadgen {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void on_due(std::uint64_t tag, TimePoint when) = 0;  // not before `when`
  // `ready`: when the system told that the socket is ready, which may be a while ago if others were served first.
  virtual void on_socket(std::uint64_t tag, std::uint32_t events, TimePoint ready) = 0;
};

// How much of its thread a loop used, and what it was not given.
struct LoopUsage {
  double wall_s = 0;
  double cpu_s = 0;
  double spun_s = 0;       // of it, watching the clock with nothing else to do
  double run_queue_s = 0;  // ready to run, but the processor did something else
};

class EventLoop {
 public:
  static Result<std::unique_ptr<EventLoop>> make(Duration spin);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // `events` as epoll's; a socket may be told more than once until it is removed. Tags of sockets that were removed within the same round
  // may still come: give each socket a tag of its own.
  Status watch(int fd, std::uint32_t events, std::uint64_t tag);
  Status change(int fd, std::uint32_t events, std::uint64_t tag);
  void remove(int fd);
  void at(TimePoint when, std::uint64_t tag);

  // Until stop(). Timers do not keep it alive.
  void run(EventHandler& handler);
  void stop();  // from the loop's thread
  void wake();  // from any thread: on_socket(kWakeTag, …) follows
  static constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};

  LoopUsage usage() const;  // of run() so far; from the loop's thread

 private:
  struct Moment {
    TimePoint when;
    std::uint64_t order, tag;
    bool operator<(const Moment& other) const { return when != other.when ? when > other.when : order > other.order; }
  };
  explicit EventLoop(Duration spin) : spin_(spin) {}
  void run_due(EventHandler& handler);
  void wait(EventHandler& handler);

  Duration spin_, spun_{}, overslept_{};
  int epoll_ = -1, wake_ = -1;
  bool stopped_ = false;
  std::uint64_t order_ = 0;
  std::priority_queue<Moment> moments_;
  TimePoint started_{};
  double cpu_at_start_ = 0, run_queue_at_start_ = 0;
};

}  // namespace weir::loadgen
