// SPDX-License-Identifier: Apache-2.0
#include "serving/watchdog.h"

#include <fmt/core.h>

#include "base/log.h"
#include "serving/model_registry.h"
#include "serving/service_manager.h"

namespace weir::serving {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);
constexpr int kDead = 6;
constexpr Duration kOld = std::chrono::seconds(5);

}  // namespace

std::string stall_reason(const engine::ServiceStats& stats, TimePoint now, Duration limit) {
  const Duration silent = now - stats.last_beat;
  if (silent <= limit) return {};
  return fmt::format("its step loop has not moved for {:.0f} s{}, with {} open requests", to_seconds(silent),
                     stats.in_step ? ", within a step" : "", stats.open_requests);
}

Watchdog::Watchdog(std::shared_ptr<ModelRegistry> registry, Duration limit)
    : registry_(std::move(registry)), limit_(limit), looked_(steady_clock().now()), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::vector<std::string> Watchdog::reasons() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> reasons = reasons_;
  if (steady_clock().now() - looked_ > kOld) reasons.emplace_back("the watchdog itself has not looked for more than 5 s");
  return reasons;
}

std::vector<std::string> Watchdog::dead() const {
  const std::lock_guard lock(mutex_);
  return dead_;
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return stopping_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void Watchdog::look() {
  registry_->tick();
  std::vector<std::string> reasons, dead;
  for (const auto& host : registry_->hosts()) {
    if (host->service() == nullptr) continue;
    const engine::ServiceStats stats = host->service()->stats();
    const TimePoint now = steady_clock().now();
    if (std::string reason = stall_reason(stats, now, limit_); !reason.empty()) reasons.push_back(host->spec().name + ": " + reason);
    if (std::string reason = stall_reason(stats, now, kDead * limit_); !reason.empty()) dead.push_back(host->spec().name + ": " + reason);
  }
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    changed = reasons.empty() != reasons_.empty();
    reasons_ = reasons;
    dead_ = std::move(dead);
    looked_ = steady_clock().now();
  }
  if (changed && !reasons.empty()) log::error("not ready: {}", reasons.front());
  if (changed && reasons.empty()) log::info("ready again: all step loops move");
  if (reasons.empty()) notify_alive();
}

}  // namespace weir::serving
