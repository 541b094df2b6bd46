// SPDX-License-Identifier: Apache-2.0
#include "serving/event_pump.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace weir::serving {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(500);

template <class Work>
void guarded(Work work) {
  try {
    work();
  } catch (const std::exception& e) {
    log::error("an answer could not be written: {}", e.what());
  }
}

}  // namespace

EventPump::EventPump() : thread_([this] { run(); }) {}

EventPump::~EventPump() { stop(); }

void EventPump::wake(Client& client) {
  if (client.listed_.exchange(true, std::memory_order_acq_rel)) return;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    listed_.push_back(client.shared_from_this());
    notify = std::exchange(sleeping_, false);
  }
  if (notify) wake_.notify_one();
}

void EventPump::watch(const std::shared_ptr<Client>& client) { watched_.insert(client); }

void EventPump::unwatch(Client& client) { watched_.erase(client.shared_from_this()); }

void EventPump::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  watched_.clear();
  listed_.clear();
}

void EventPump::run() {
  std::vector<std::shared_ptr<Client>> now;
  TimePoint next_tick = steady_clock().now() + kTick;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (listed_.empty()) {
      sleeping_ = true;
      if (watched_.empty())
        wake_.wait(lock);
      else
        wake_.wait_until(lock, next_tick);
      sleeping_ = false;
    }
    now.swap(listed_);
    lock.unlock();
    for (const auto& client : now) {
      client->listed_.exchange(false, std::memory_order_acq_rel);  // sees what was told before a wake() that found it listed
      guarded([&] { client->on_pump(); });
    }
    now.clear();
    if (steady_clock().now() >= next_tick) {
      tick();
      next_tick = steady_clock().now() + kTick;
    }
    lock.lock();
  }
}

void EventPump::tick() {
  const std::vector<std::shared_ptr<Client>> clients(watched_.begin(), watched_.end());
  for (const auto& client : clients) guarded([&] { client->on_tick(); });
}

}  // namespace weir::serving
