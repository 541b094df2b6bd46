// SPDX-License-Identifier: Apache-2.0
// What is looked at beside a load: metrics endpoints, and what this machine does. Perf Analyzer's names where it has them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loadgen/observer.h"
#include "loadgen/scenario.h"

namespace CLI {
class App;
}

namespace weir::cli {

class ObserveOptions {
 public:
  void add_to(CLI::App& app);
  // Finds what to look at and makes the load's runs tell the observer. The load does not need to be prepared yet.
  Status attach(loadgen::LoadSpec& spec);
  // Adds "observations" to what the latest run saw.
  void add_to(loadgen::Measured& measured) const;

 private:
  bool wanted() const { return collect_ || !urls_.empty() || server_pid_ > 0; }
  bool collect_ = false;
  std::vector<std::string> urls_;
  double interval_ms_ = 1000;
  std::string filter_;
  int server_pid_ = 0;
  std::unique_ptr<loadgen::Observer> observer_;
};

}  // namespace weir::cli
