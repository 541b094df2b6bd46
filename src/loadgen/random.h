// SPDX-License-Identifier: Apache-2.0
// Seeded randomness that gives the same numbers on every machine and compiler: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) and
// distributions drawn by our own code, since those of <random> differ between standard libraries.
#pragma once

#include <cstdint>

namespace weir::loadgen {

class Random {
 public:
  // `stream` tells apart independent uses of one seed (arrivals, lengths, texts, …).
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0);

  std::uint64_t next();
  double uniform();                          // [0, 1), 53 bits
  std::uint64_t below(std::uint64_t bound);  // [0, bound), bound > 0
  double exponential(double mean);
  double normal(double mean, double deviation);
  double gamma(double shape, double scale);  // Marsaglia and Tsang, ACM TOMS 26 (2000); both > 0

 private:
  std::uint64_t state_;
};

// Streams of one seed, so that changing one use leaves the others alone.
enum : std::uint64_t {
  kArrivalStream = 1,
  kPromptLengthStream = 2,
  kOutputLengthStream = 3,
  kTextStream = 4,
  kThinkStream = 5,
  kBootstrapStream = 6,
  kServerStream = 7,
  kOrderStream = 8,
};

}  // namespace weir::loadgen
