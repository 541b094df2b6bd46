// SPDX-License-Identifier: Apache-2.0
// One io thread: an event loop that sleeps until a socket, a timer or another thread needs it. Objects that live on a loop are
// touched by its thread only, so that nothing in them needs a lock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::http {

class Loop;

// Something that other threads changed and the loop has to look at: see Loop::wake.
class Wakeable {
 public:
  virtual ~Wakeable() = default;
  virtual void woken() = 0;  // on the loop's thread
};

// Where other threads leave what a loop has to look at. It may outlive its loop, and then takes nothing any more.
class Inbox {
 public:
  // Calls woken() once soon, however many were woken meanwhile: a step of the engine that feeds 256 streams wakes the thread once.
  void wake(std::shared_ptr<Wakeable> target);

 private:
  friend class Loop;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Wakeable>> woken_;
  Loop* loop_ = nullptr;  // null: stopped
};

class Loop {
 public:
  Loop(const std::string& name, const std::function<void()>& on_thread_start);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs on the loop's thread; dropped when the loop has been stopped.
  void post(std::function<void()> work);
  // Posts, and waits for the end. Not from the loop's own thread.
  void run(const std::function<void()>& work);
  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }
  // Ends the thread after what runs now. Nothing runs afterwards.
  void stop();

  struct Context;
  Context& context() { return *context_; }

 private:
  friend class Inbox;
  void serve(const std::function<void()>& on_thread_start);
  void serve_woken();

  std::unique_ptr<Context> context_;
  std::shared_ptr<Inbox> inbox_;
  std::thread thread_;
};

}  // namespace weir::http
