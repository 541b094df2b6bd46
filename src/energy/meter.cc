// SPDX-License-Identifier: Apache-2.0
#include "energy/meter.h"

#include <cmath>

namespace weir::energy {

const char* part_name(Part part) {
  switch (part) {
    case Part::kProcessor: return "processor";
    case Part::kMemory: return "memory";
    case Part::kGpu: return "gpu";
    case Part::kMachine: return "machine";
    case Part::kOther: break;
  }
  return "other";
}

void Account::counter(Domain& domain, double joules, double wrap, TimePoint at) {
  if (!std::isfinite(joules) || joules < 0) return missing(domain);
  if (has_ && at > at_) {
    double more = joules - last_;
    if (more < 0) more = wrap >= last_ ? wrap - last_ + joules : joules;
    domain.joules += more;
    domain.watts = more / to_seconds(at - at_);
  }
  has_ = true;
  last_ = joules;
  at_ = at;
}

void Account::power(Domain& domain, double watts, TimePoint at) {
  if (!std::isfinite(watts) || watts < 0) return missing(domain);
  if (has_ && at > at_) domain.joules += (last_ + watts) / 2 * to_seconds(at - at_);
  domain.watts = watts;
  has_ = true;
  last_ = watts;
  at_ = at;
}

// The next reading bridges the gap: a counter exactly, power by the mean of the readings around it.
void Account::missing(Domain& domain) { ++domain.interrupted; }

double Meter::joules() const {
  double sum = 0;
  for (const Domain& domain : domains_)
    if (domain.counted) sum += domain.joules;
  return sum;
}

double Meter::watts() const {
  double sum = 0;
  for (const Domain& domain : domains_)
    if (domain.counted) sum += domain.watts;
  return sum;
}

}  // namespace weir::energy
