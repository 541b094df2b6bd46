// SPDX-License-Identifier: Apache-2.0
#include "scheduler/policy.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

std::int64_t nanoseconds(TimePoint t) { return t.time_since_epoch().count(); }

struct FirstCome final : Policy {
  std::int64_t rank(const Request&, TimePoint) const override { return 0; }
};

struct ByPriority final : Policy {
  explicit ByPriority(Duration worth) : aging(worth) {}
  std::int64_t rank(const Request& r, TimePoint now) const override {
    return nanoseconds(now - std::clamp(r.priority, -1000, 1000) * aging);
  }
  bool preempts() const override { return true; }
  Duration aging;
};

struct ByDeadline final : Policy {
  explicit ByDeadline(Duration patience) : relaxed(patience) {}
  std::int64_t rank(const Request& r, TimePoint now) const override {
    return nanoseconds(now + (r.ttft_target > Duration::zero() ? r.ttft_target : relaxed));
  }
  Duration relaxed;
};

class FairShare final : public Policy {
 public:
  explicit FairShare(std::unordered_map<std::string, double> weights) : weights_(std::move(weights)) {}

  std::int64_t rank(const Request& r, TimePoint) const override {
    const auto end = ends_.find(r.tenant);
    return end == ends_.end() ? now_ : std::max(now_, end->second);
  }
  void accepted(const Request& r, std::int64_t rank) override {
    const auto weight = weights_.find(r.tenant);
    const double cost = static_cast<double>(r.prompt.size()) + r.max_tokens;
    const double share = weight == weights_.end() ? 1.0 : std::max(weight->second, 1e-3);
    if (ends_.size() >= kTenants) std::erase_if(ends_, [this](const auto& end) { return end.second <= now_; });  // as if new
    ends_[r.tenant] = rank + static_cast<std::int64_t>(cost * 1000 / share) + 1;
  }
  void started(std::int64_t rank) override { now_ = std::max(now_, rank); }

 private:
  static constexpr std::size_t kTenants = 10'000;
  std::unordered_map<std::string, double> weights_;
  std::unordered_map<std::string, std::int64_t> ends_;  // virtual time up to which a tenant has asked for work
  std::int64_t now_ = 0;                                // virtual time: of the last request that began
};

}  // namespace

std::unique_ptr<Policy> first_come() { return std::make_unique<FirstCome>(); }
std::unique_ptr<Policy> by_priority(Duration aging) { return std::make_unique<ByPriority>(aging); }
std::unique_ptr<Policy> by_deadline(Duration relaxed) { return std::make_unique<ByDeadline>(relaxed); }
std::unique_ptr<Policy> fair_share(std::unordered_map<std::string, double> weights) {
  return std::make_unique<FairShare>(std::move(weights));
}

}  // namespace weir::scheduler
