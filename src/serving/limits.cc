// SPDX-License-Identifier: Apache-2.0
#include "serving/limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace weir::serving {
namespace {

// Rounded up, and at most some days.
Duration seconds(double value) { return Duration(static_cast<std::int64_t>(std::ceil(std::clamp(value, 0.0, 1e6) * 1e9))); }

}  // namespace

TokenBucket::TokenBucket(std::int64_t per_minute, TimePoint now) : limit_(per_minute), level_(static_cast<double>(per_minute)), at_(now) {}

void TokenBucket::set_limit(std::int64_t per_minute, TimePoint now) {
  refill(now);
  level_ = limit_ > 0 ? level_ / static_cast<double>(limit_) * static_cast<double>(per_minute) : static_cast<double>(per_minute);
  limit_ = per_minute;
}

void TokenBucket::refill(TimePoint now) {
  if (now > at_) level_ = std::min(level_ + to_seconds(now - at_) * per_second(), static_cast<double>(limit_));
  at_ = std::max(at_, now);
}

Duration TokenBucket::wait_for(std::int64_t amount, TimePoint now) {
  if (limit_ <= 0) return {};
  refill(now);
  const double missing = static_cast<double>(std::min(amount, limit_)) - level_;
  // A millionth is rounding: who waits as long as was said is not refused for it.
  if (missing <= 1e-6 * static_cast<double>(limit_)) return {};
  return seconds(missing / per_second());
}

void TokenBucket::take(std::int64_t amount, TimePoint now) {
  refill(now);
  level_ -= static_cast<double>(amount);
}

void TokenBucket::give_back(std::int64_t amount, TimePoint now) {
  refill(now);
  level_ = std::min(level_ + static_cast<double>(amount), static_cast<double>(limit_));
}

std::int64_t TokenBucket::left(TimePoint now) {
  refill(now);
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(level_ + 1e-6)), 0);
}

Duration TokenBucket::until_full(TimePoint now) {
  if (limit_ <= 0) return {};
  refill(now);
  return seconds((static_cast<double>(limit_) - level_) / per_second());
}

KeyUsage::KeyUsage(const KeyLimits& limits, const Clock& clock)
    : clock_(clock),
      requests_(limits.requests_per_minute, clock.now()),
      tokens_(limits.tokens_per_minute, clock.now()),
      concurrent_(limits.concurrent) {}

void KeyUsage::set_limits(const KeyLimits& limits) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  if (limits.requests_per_minute != requests_.limit()) requests_.set_limit(limits.requests_per_minute, now);
  if (limits.tokens_per_minute != tokens_.limit()) tokens_.set_limit(limits.tokens_per_minute, now);
  concurrent_ = limits.concurrent;
}

std::optional<KeyUsage::Refusal> KeyUsage::admit(std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  if (concurrent_ > 0 && running_ >= concurrent_)
    return Refusal{Refusal::Why::kConcurrent, concurrent_, seconds(std::clamp(mean_seconds_ / static_cast<double>(running_), 0.1, 60.0))};
  if (const Duration wait = requests_.wait_for(1, now); wait > Duration::zero())
    return Refusal{Refusal::Why::kRequests, requests_.limit(), wait};
  if (const Duration wait = tokens_.wait_for(tokens, now); wait > Duration::zero())
    return Refusal{Refusal::Why::kTokens, tokens_.limit(), wait};
  if (requests_.limit() > 0) requests_.take(1, now);
  if (tokens_.limit() > 0) tokens_.take(tokens, now);
  ++running_;
  return std::nullopt;
}

void KeyUsage::settle(std::int64_t charged, std::int64_t used) {
  const std::lock_guard lock(mutex_);
  if (tokens_.limit() > 0) tokens_.give_back(charged - used, clock_.now());
}

void KeyUsage::end(Duration took) {
  const std::lock_guard lock(mutex_);
  --running_;
  mean_seconds_ += 0.1 * (to_seconds(took) - mean_seconds_);
}

std::int64_t KeyUsage::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

std::vector<std::pair<std::string, std::string>> KeyUsage::headers() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.now();
  std::vector<std::pair<std::string, std::string>> lines;
  for (auto& [bucket, name] : {std::pair<TokenBucket*, const char*>(&requests_, "requests"), {&tokens_, "tokens"}}) {
    if (bucket->limit() <= 0) continue;
    lines.emplace_back(fmt::format("x-ratelimit-limit-{}", name), std::to_string(bucket->limit()));
    lines.emplace_back(fmt::format("x-ratelimit-remaining-{}", name), std::to_string(bucket->left(now)));
    lines.emplace_back(fmt::format("x-ratelimit-reset-{}", name), reset_time(bucket->until_full(now)));
  }
  return lines;
}

std::string reset_time(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(duration, Duration::zero())).count();
  if (ms < 1000) return fmt::format("{}ms", ms);
  const std::int64_t s = (ms + 999) / 1000;
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{}s", s / 60, s % 60);
  return fmt::format("{}h{}m{}s", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace weir::serving
