// SPDX-License-Identifier: Apache-2.0
// The seam to whatever tells energy: a meter has domains (a socket, its memory, a GPU, the whole machine) and adds up joules from one
// sample() to the next, whether the source counts energy or only shows power. Nothing is read in between.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weir::energy {

enum class Part { kProcessor, kMemory, kGpu, kMachine, kOther };
const char* part_name(Part part);  // "processor", …

struct Domain {
  std::string name;             // "package-0", "GPU 0"
  Part part = Part::kOther;     // kMachine holds all the others
  bool counted = true;          // in the total. What lies within another domain is not, so that no joule counts twice
  double joules = 0;            // since the first sample
  double watts = 0;             // over the latest interval; at first what the source shows
  std::size_t interrupted = 0;  // readings that failed; the next one bridges the gap
};

// Joules of one domain from the readings of its source, in order of time.
class Account {
 public:
  // A counter that starts anew after `wrap` joules (0: unknown; a step back is then a restart, from which on it counts).
  void counter(Domain& domain, double joules, double wrap, TimePoint at);
  // Power now: the mean of the two readings counts for the time between them.
  void power(Domain& domain, double watts, TimePoint at);
  void missing(Domain& domain);  // this reading failed

 private:
  bool has_ = false;
  double last_ = 0;
  TimePoint at_{};
};

class Meter {
 public:
  virtual ~Meter() = default;
  virtual std::string source() const = 0;          // "rapl", "hwmon", "nvml", "model"
  virtual bool estimate() const { return false; }  // nothing was measured, or only indirectly
  virtual void sample(TimePoint at) = 0;           // reads all domains
  const std::vector<Domain>& domains() const { return domains_; }
  std::vector<Domain>& domains() { return domains_; }
  double joules() const;  // of the domains that count
  double watts() const;

 protected:
  std::vector<Domain> domains_;
};

}  // namespace weir::energy
