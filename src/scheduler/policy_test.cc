// SPDX-License-Identifier: Apache-2.0
// Who goes first under each policy, and that nobody waits for ever under any.
#include "scheduler/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scheduler/test_engine.h"

namespace weir::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

Request request(TokenId first, std::int32_t max_tokens = 6) {
  Request r;
  r.prompt = {first, 7, 8, 9, 10};
  r.max_tokens = max_tokens;
  return r;
}

// The order in which requests begin when one runs at a time.
std::vector<std::int64_t> order_of_starts(TestEngine& e) {
  std::vector<std::int64_t> order;
  while (!e.scheduler.idle()) {
    for (const Row& row : e.step().rows) {
      if (std::ranges::find(order, row.sequence.value) == order.end()) order.push_back(row.sequence.value);
    }
  }
  return order;
}

TEST(FirstCome, KeepsTheOrderOfArrival) {
  TestEngine e(blocks_of_4(20), {.token_budget = 8, .max_running = 1});
  for (TokenId i = 0; i < 4; ++i) e.submit(request(i));
  EXPECT_THAT(order_of_starts(e), ElementsAre(0, 1, 2, 3));
}

TEST(ByPriority, HigherGoesFirstAndTakesThePlaceOfARunningOne) {
  TestEngine e(blocks_of_4(20), {.token_budget = 8, .max_running = 1}, by_priority(seconds(10)));
  const SeqId first = e.submit(talkative(5, 12));
  e.step();
  ASSERT_TRUE(e.live.contains(first));
  Request high = request(2), middle = request(3);
  high.priority = 2;
  middle.priority = 1;
  const SeqId m = e.submit(middle), h = e.submit(high);
  const StepPlan& plan = e.step();
  EXPECT_THAT(plan.preempted, ElementsAre(first));
  EXPECT_EQ(plan.rows[0].sequence, h);
  EXPECT_THAT(order_of_starts(e), ElementsAre(h.value, m.value, first.value));
}

TEST(ByPriority, WaitingIsWorthPriority) {
  const auto policy = by_priority(seconds(10));
  const FakeClock start;
  Request high = request(1), low = request(2);
  high.priority = 1;
  const auto old = policy->rank(low, start.now());
  EXPECT_LT(policy->rank(high, start.now() + seconds(9)), old);
  EXPECT_GT(policy->rank(high, start.now() + seconds(11)), old);
  high.priority = 2'000'000'000;  // from outside: no overflow
  EXPECT_LT(policy->rank(high, start.now()), old);
}

TEST(ByDeadline, EarliestFirstAndThoseWithoutATargetAfterTheirPatience) {
  TestEngine e(blocks_of_4(20), {.token_budget = 8, .max_running = 1}, by_deadline(seconds(5)));
  Request busy = request(0, 3);
  e.submit(busy);
  e.step();
  Request none = request(1), late = request(2), soon = request(3);
  late.ttft_target = seconds(9);
  soon.ttft_target = milliseconds(200);
  const auto a = e.submit(late).value, b = e.submit(none).value, c = e.submit(soon).value;
  auto order = order_of_starts(e);
  std::erase(order, 0);
  EXPECT_THAT(order, ElementsAre(c, b, a));
}

// Tenant a floods; b and c come later with a few. By weight, b is worth two.
TEST(FairShare, AFloodOfOneTenantDelaysTheOthersLittle) {
  TestEngine e(blocks_of_4(20), {.token_budget = 8, .max_running = 1}, fair_share({{"b", 2.0}}));
  std::map<std::int64_t, std::string> tenant;
  const auto send = [&](const std::string& name, int count) {
    for (int i = 0; i < count; ++i) {
      Request r = request(static_cast<TokenId>(tenant.size()), 5);
      r.tenant = name;
      tenant[e.submit(std::move(r)).value] = name;
    }
  };
  send("a", 20);
  e.step();
  send("b", 8);
  send("c", 4);
  std::string order;
  for (const std::int64_t id : order_of_starts(e)) order += tenant.at(id);
  std::map<char, int> begun;
  for (const char t : order.substr(0, 13)) ++begun[t];
  EXPECT_LE(begun['a'], 5) << order;
  EXPECT_GE(begun['b'], 5) << order;
  EXPECT_GE(begun['c'], 3) << order;
}

// Whatever keeps arriving, a request that is there starts within a bound: the flood of better ranked ones ends for it, since
// ranks grow with time (or with the work that others were given).
void expect_no_starvation(std::unique_ptr<Policy> policy, std::int64_t overtakers) {
  TestEngine e(blocks_of_4(30), {.token_budget = 12, .max_running = 2, .max_waiting = 64}, std::move(policy));
  Request victim = request(1, 4);
  victim.priority = -1;
  victim.tenant = "small";
  std::int64_t sent = 0;
  const auto flood = [&] {
    while (e.scheduler.stats().waiting < 8) {
      Request r = request(static_cast<TokenId>(10 + sent++ % 1000), 4);
      r.priority = 3;
      r.tenant = "big";
      r.ttft_target = milliseconds(1);
      e.submit(std::move(r));
    }
  };
  flood();
  const SeqId id = e.submit(std::move(victim));
  int steps = 0;
  for (; e.live.contains(id) && steps < 2000; ++steps) {
    flood();
    e.step();
  }
  EXPECT_LT(steps, 2000);
  EXPECT_GT(e.ended, overtakers);  // the flood was one
}

TEST(Starvation, NeverUnderFirstCome) { expect_no_starvation(first_come(), 7); }
TEST(Starvation, NeverUnderPriority) { expect_no_starvation(by_priority(milliseconds(100)), 8); }
TEST(Starvation, NeverUnderDeadlines) { expect_no_starvation(by_deadline(milliseconds(500)), 8); }
TEST(Starvation, NeverUnderFairShare) { expect_no_starvation(fair_share({{"big", 50.0}}), 0); }

}  // namespace
}  // namespace weir::scheduler
