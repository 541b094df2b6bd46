// SPDX-License-Identifier: Apache-2.0
#include "loadgen/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weir::loadgen {
namespace {

// A machine that wakes threads later gets woken earlier: by as much as it overslept of late, within reason.
constexpr Duration kSpare = std::chrono::microseconds(20), kLongestSpin = std::chrono::microseconds(250);

TimePoint now() { return std::chrono::steady_clock::now(); }

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Second number of schedstat: nanoseconds spent waiting on a run queue. Zero where the kernel does not tell.
double thread_run_queue_seconds() {
  std::FILE* file = std::fopen("/proc/thread-self/schedstat", "re");
  if (!file) return 0;
  unsigned long long ran = 0, waited = 0;
  const int read = std::fscanf(file, "%llu %llu", &ran, &waited);
  std::fclose(file);
  return read == 2 ? 1e-9 * static_cast<double>(waited) : 0;
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::make(Duration spin) {
  std::unique_ptr<EventLoop> loop(new EventLoop(spin));
  loop->epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  loop->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (loop->epoll_ < 0 || loop->wake_ < 0) return fail(ErrorCode::kIo, "event loop: {}", std::strerror(errno));
  WEIR_TRY(loop->watch(loop->wake_, EPOLLIN, kWakeTag));
  return loop;
}

EventLoop::~EventLoop() {
  if (epoll_ >= 0) ::close(epoll_);
  if (wake_ >= 0) ::close(wake_);
}

Status EventLoop::watch(int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return fail(ErrorCode::kIo, "epoll: {}", std::strerror(errno));
  return {};
}

Status EventLoop::change(int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) return fail(ErrorCode::kIo, "epoll: {}", std::strerror(errno));
  return {};
}

void EventLoop::remove(int fd) { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void EventLoop::at(TimePoint when, std::uint64_t tag) { moments_.push({when, order_++, tag}); }

void EventLoop::stop() { stopped_ = true; }

void EventLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);  // full means that it is awake already
}

void EventLoop::run(EventHandler& handler) {
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);  // sleeps end when they should, not up to 50 µs later
  started_ = now();
  cpu_at_start_ = thread_cpu_seconds();
  run_queue_at_start_ = thread_run_queue_seconds();
  stopped_ = false;
  while (!stopped_) {
    run_due(handler);
    wait(handler);
  }
}

// At most a few before the sockets get their turn again.
void EventLoop::run_due(EventHandler& handler) {
  for (int count = 0; count < 64 && !stopped_ && !moments_.empty() && moments_.top().when <= now(); ++count) {
    const Moment moment = moments_.top();
    moments_.pop();
    handler.on_due(moment.tag, moment.when);
  }
}

void EventLoop::wait(EventHandler& handler) {
  if (stopped_) return;
  std::array<epoll_event, 64> events;
  const TimePoint before = now();
  Duration sleep = std::chrono::hours(1);
  bool spinning = false;
  if (!moments_.empty()) {
    const Duration left = moments_.top().when - before;
    const Duration early = std::max(spin_, std::min(overslept_ + kSpare, kLongestSpin));
    spinning = left <= early;
    sleep = spinning ? Duration::zero() : left - early;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(sleep);
  const timespec timeout{seconds.count(), (sleep - seconds).count()};
  const int count = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  const TimePoint ready = now();
  if (spinning && count <= 0) spun_ += ready - before;
  if (!spinning && count == 0) overslept_ = std::max(ready - before - sleep, overslept_ - overslept_ / 256);
  for (int i = 0; i < count && !stopped_; ++i) {
    if (!moments_.empty() && moments_.top().when <= now()) run_due(handler);
    const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
    if (tag == kWakeTag) {
      std::uint64_t value = 0;
      [[maybe_unused]] const auto got = ::read(wake_, &value, sizeof value);
    }
    handler.on_socket(tag, events[static_cast<std::size_t>(i)].events, ready);
  }
}

LoopUsage EventLoop::usage() const {
  return {.wall_s = to_seconds(now() - started_),
          .cpu_s = thread_cpu_seconds() - cpu_at_start_,
          .spun_s = to_seconds(spun_),
          .run_queue_s = thread_run_queue_seconds() - run_queue_at_start_};
}

}  // namespace weir::loadgen
