// SPDX-License-Identifier: Apache-2.0
// How much one key may use: requests and tokens per minute as buckets that refill steadily, and requests at a time. A request is charged
// its prompt and the most it may generate when it is admitted; what it did not generate comes back at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace weir::serving {

// Zero: no limit.
struct KeyLimits {
  std::int64_t requests_per_minute = 0;
  std::int64_t tokens_per_minute = 0;
  std::int64_t concurrent = 0;
  friend bool operator==(const KeyLimits&, const KeyLimits&) = default;
};

// Holds a minute's worth at most and refills steadily. One that asks for more than it can ever hold gets it when it is full; the bucket
// is then in debt, so that the rate holds over time and nothing is refused for ever.
class TokenBucket {
 public:
  TokenBucket(std::int64_t per_minute, TimePoint now);

  void set_limit(std::int64_t per_minute, TimePoint now);  // keeps the share that is left
  Duration wait_for(std::int64_t amount, TimePoint now);   // until take() would succeed; zero: now
  void take(std::int64_t amount, TimePoint now);           // whatever is there
  void give_back(std::int64_t amount, TimePoint now);      // less than nothing takes more
  std::int64_t limit() const { return limit_; }            // 0: none, everything is granted
  std::int64_t left(TimePoint now);                        // at least 0
  Duration until_full(TimePoint now);

 private:
  void refill(TimePoint now);
  double per_second() const { return static_cast<double>(limit_) / 60; }

  std::int64_t limit_;
  double level_;
  TimePoint at_;
};

// What one key has used. All calls from any thread.
class KeyUsage {
 public:
  KeyUsage(const KeyLimits& limits, const Clock& clock);

  void set_limits(const KeyLimits& limits);

  struct Refusal {
    enum class Why { kRequests, kTokens, kConcurrent } why;
    std::int64_t limit = 0;
    Duration retry_after{};
  };
  // Admits and charges, or says when to come again. What was admitted is to be ended.
  std::optional<Refusal> admit(std::int64_t tokens);
  void settle(std::int64_t charged, std::int64_t used);  // at most once for each that was admitted
  void end(Duration took);

  std::int64_t running() const;
  // x-ratelimit-limit-requests, … in OpenAI's words, for the limits that there are.
  std::vector<std::pair<std::string, std::string>> headers();

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  TokenBucket requests_, tokens_;
  std::int64_t concurrent_ = 0, running_ = 0;
  double mean_seconds_ = 1;  // of a request of this key
};

// "1s", "6m0s", "250ms": as OpenAI writes the time until a limit is reset.
std::string reset_time(Duration duration);

}  // namespace weir::serving
