// SPDX-License-Identifier: Apache-2.0
// When requests are due, as a seeded schedule made before the run: an open loop does not wait for the server. Each process is named by a
// short text; the same text and seed give the same moments on every machine.
//   constant:20         20 a second, evenly            poisson:20         independent users
//   gamma:20,0.5        burstiness 0.5 (1 is Poisson; below: burstier; above: more even)
//   bursts:20,8         8 at once, so often that 20 a second come on average
//   ramp:5,50           Poisson, its rate rising evenly from 5 to 50 over the run     expramp:5,50  by equal factors
//   stairs:5,10,20      Poisson, the run's time divided evenly among the rates
//   diurnal:20,0.8,1h   Poisson, 20 on average, swinging by 80 % as a sine of that period (which begins at its lowest)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weir::loadgen {

struct ArrivalProcess {
  enum class Kind { kConstant, kPoisson, kGamma, kBursts, kRamp, kExponentialRamp, kStairs, kDiurnal };
  Kind kind = Kind::kPoisson;
  std::vector<double> rates{1};  // per second; ramps have two, stairs any number
  double burstiness = 1;         // gamma
  std::int64_t burst = 1;
  double swing = 0;  // diurnal, 0..1
  double period_s = 0;

  static Result<ArrivalProcess> parse(std::string_view text);
  // The same process at another mean rate, for sweeps and searches: all rates scaled alike.
  ArrivalProcess at_rate(double rate) const;
  double mean_rate() const;
  double rate_at(double at_s, double length_s) const;  // of the moment, in a run of that length
  std::string description() const;
};

// How much: a number of requests, a length of time, or the earlier of both. Ramps, stairs and diurnal need the length (or get the one in
// which they bring that many requests).
struct RunSize {
  std::optional<std::int64_t> requests;
  std::optional<Duration> length;
};

// Moments from the run's start, ascending. kExhausted beyond 50 million.
Result<std::vector<Duration>> schedule(const ArrivalProcess& process, const RunSize& size, std::uint64_t seed);

}  // namespace weir::loadgen
