// SPDX-License-Identifier: Apache-2.0
// A thread that looks at what must go on: engines whose loop stands still make the server not ready, models that are idle leave, and
// systemd is told that the process lives.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/service_stats.h"

namespace weir::serving {

class ModelRegistry;

// Why an engine's loop counts as standing still, or nothing. `limit`: how long it may be silent.
std::string stall_reason(const engine::ServiceStats& stats, TimePoint now, Duration limit);

class Watchdog {
 public:
  Watchdog(std::shared_ptr<ModelRegistry> registry, Duration limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Of the last look, no older than a second unless this thread stands still itself, which is a reason too.
  std::vector<std::string> reasons() const;
  // Engines that have stood still for six times as long: only a new process helps.
  std::vector<std::string> dead() const;

 private:
  void run();
  void look();

  const std::shared_ptr<ModelRegistry> registry_;
  const Duration limit_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  TimePoint looked_{};
  std::vector<std::string> reasons_, dead_;
  std::thread thread_;
};

}  // namespace weir::serving
