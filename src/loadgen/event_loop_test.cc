// SPDX-License-Identifier: Apache-2.0
#include "loadgen/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

struct Recorder final : EventHandler {
  EventLoop* loop = nullptr;
  std::vector<std::uint64_t> due, sockets;
  std::size_t stop_after = 0;
  bool early = false;
  void on_due(std::uint64_t tag, TimePoint when) override {
    early |= steady_clock().now() < when;
    due.push_back(tag);
    if (due.size() + sockets.size() >= stop_after) loop->stop();
  }
  void on_socket(std::uint64_t tag, std::uint32_t, TimePoint) override {
    sockets.push_back(tag);
    if (due.size() + sockets.size() >= stop_after) loop->stop();
  }
};

TEST(EventLoopTest, MomentsComeInOrderAndNeverEarly) {
  auto loop = *EventLoop::make(60us);
  Recorder recorder;
  recorder.loop = loop.get();
  recorder.stop_after = 200;
  const TimePoint start = steady_clock().now();
  for (std::uint64_t i = 0; i < 200; ++i) loop->at(start + 20us * static_cast<int>((i * 37) % 200), (i * 37) % 200);
  loop->run(recorder);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(recorder.due[i], i);
  EXPECT_FALSE(recorder.early);
}

TEST(EventLoopTest, EqualMomentsComeAsTheyWereAsked) {
  auto loop = *EventLoop::make(0us);
  Recorder recorder;
  recorder.loop = loop.get();
  recorder.stop_after = 3;
  const TimePoint when = steady_clock().now();
  for (const std::uint64_t tag : {7, 5, 6}) loop->at(when, tag);
  loop->run(recorder);
  EXPECT_EQ(recorder.due, (std::vector<std::uint64_t>{7, 5, 6}));
}

TEST(EventLoopTest, SocketsAndOtherThreadsWakeIt) {
  auto loop = *EventLoop::make(60us);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ASSERT_TRUE(loop->watch(pair[0], EPOLLIN, 42));
  EXPECT_FALSE(loop->watch(-1, EPOLLIN, 1));
  Recorder recorder;
  recorder.loop = loop.get();
  recorder.stop_after = 1;
  loop->at(steady_clock().now() + 1h, 1);  // does not come
  std::thread other([&] {
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(::write(pair[1], "x", 1), 1);
  });
  loop->run(recorder);
  other.join();
  EXPECT_EQ(recorder.sockets, (std::vector<std::uint64_t>{42}));
  loop->remove(pair[0]);
  recorder.sockets.clear();
  std::thread waker([&] {
    std::this_thread::sleep_for(2ms);
    loop->wake();
  });
  loop->run(recorder);
  waker.join();
  EXPECT_EQ(recorder.sockets, (std::vector<std::uint64_t>{EventLoop::kWakeTag}));
  ::close(pair[0]);
  ::close(pair[1]);
}

}  // namespace
}  // namespace weir::loadgen
