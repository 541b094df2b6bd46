// SPDX-License-Identifier: Apache-2.0
// One thread that turns what engines tell into what clients get. An engine's thread only puts a session on the list; a step of many
// streams wakes the pump once. Sessions run one after the other, so that none of them needs a lock for its state.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/clock.h"

namespace weir::serving {

class EventPump {
 public:
  class Client : public std::enable_shared_from_this<Client> {
   public:
    virtual ~Client() = default;
    virtual void on_pump() = 0;  // something happened
    virtual void on_tick() {}    // about twice a second, while it is watched

   private:
    friend class EventPump;
    std::atomic<bool> listed_{false};
  };

  EventPump();
  ~EventPump();
  EventPump(const EventPump&) = delete;
  EventPump& operator=(const EventPump&) = delete;

  // on_pump() follows on the pump's thread, once for any number of calls before it. From any thread; returns at once.
  void wake(Client& client);
  // on_tick() comes until it ends or `unwatch`. On the pump's thread.
  void watch(const std::shared_ptr<Client>& client);
  void unwatch(Client& client);
  void stop();

 private:
  void run();
  void tick();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Client>> listed_;
  bool sleeping_ = false, stopping_ = false;
  std::unordered_set<std::shared_ptr<Client>> watched_;  // the thread's own
  std::thread thread_;
};

}  // namespace weir::serving
