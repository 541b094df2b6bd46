// SPDX-License-Identifier: Apache-2.0
// Random arrivals, lengths, priorities, cancels, forks, guesses, failed steps and caches that are much too small, for every kind of
// model and policy: every request ends with the answer it gets alone, everything is given back, and equal runs are equal.
// (Elsewhere: "temperature 0 answers change with load", "memory is not given back", "cache full: deadlock".)
#include <gtest/gtest.h>

#include <random>

#include "scheduler/test_engine.h"

namespace weir::scheduler {
namespace {

using std::chrono::milliseconds;

class RandomService {
 public:
  RandomService(const kvcache::CacheOptions& cache, std::unique_ptr<Policy> policy, std::uint64_t seed)
      : random_(seed),
        engine_(cache, {.token_budget = 24, .max_running = 6, .max_waiting = 12, .max_waiting_tokens = 300}, std::move(policy)) {}

  void step() {
    if (below(3) == 0) submit();
    if (below(25) == 0) cancel();
    if (below(8) == 0) fork();
    if (below(2) == 0) guess();
    if (below(60) == 0) note(engine_.fail_step());
    if (below(1000) == 0) engine_.cache.clear();
    note(engine_.step());
    const auto& stats = engine_.cache.stats();
    for (const kvcache::PoolStats& p : stats.pools) ASSERT_EQ(p.used + p.cached + p.free, p.capacity);
  }

  void finish() {
    ASSERT_NO_FATAL_FAILURE(engine_.drain());
    EXPECT_TRUE(engine_.live.empty());
    for (const kvcache::PoolStats& p : engine_.cache.stats().pools) EXPECT_EQ(p.used, 0);
    engine_.cache.clear();
    EXPECT_EQ(engine_.cache.stats().nodes, 0);
    EXPECT_EQ(engine_.scheduler.stats().waiting_tokens, 0);
  }

  std::uint64_t plans() const { return plans_; }
  TestEngine& engine() { return engine_; }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  // Everything a plan says, in one number.
  void note(const StepPlan& plan) {
    const auto add = [this](std::int64_t value) {
      plans_ = kvcache::fold_multiply(plans_ ^ static_cast<std::uint64_t>(value), 0x9fb21c651e98df25) + 1;
    };
    for (const Row& row : plan.rows) {
      for (const std::int64_t v : {row.sequence.value, std::int64_t{row.first_position}, static_cast<std::int64_t>(row.tokens.size()),
                                   std::int64_t{row.logits}, std::int64_t{row.drafted}})
        add(v);
    }
    for (const kvcache::MemoryOp& op : plan.memory) add(op.from * 1000 + op.to);
    for (const SeqId id : plan.preempted) add(id.value);
  }

  void submit() {
    Request r;
    const std::size_t size = 1 + below(30);
    const auto kind = static_cast<TokenId>(below(3));
    for (std::size_t i = 0; i < size; ++i) r.prompt.push_back(i < 14 ? kind : static_cast<TokenId>(below(4)));
    r.max_tokens = static_cast<std::int32_t>(below(25));
    r.priority = static_cast<std::int32_t>(below(3));
    r.tenant = r.salt = below(3) == 0 ? "a" : "b";
    if (below(2) == 0) r.ttft_target = milliseconds(1 + below(300));
    if (below(2) == 0) r.tpot_target = milliseconds(5 + below(30));
    if (below(4) == 0) r.start_by = engine_.clock.now() + milliseconds(below(500));
    r.prompt_logits = below(10) == 0;
    if (engine_.scheduler.stats().waiting < 12 && engine_.scheduler.stats().waiting_tokens + 30 < 300) engine_.submit(std::move(r));
  }

  SeqId any() {
    if (engine_.live.empty()) return {};
    return std::next(engine_.live.begin(), static_cast<std::ptrdiff_t>(below(engine_.live.size())))->first;
  }

  void cancel() {
    if (const SeqId id = any(); id.valid()) engine_.cancel(id);
  }
  void fork() {
    const SeqId id = any();
    if (id.valid()) engine_.fork(id, static_cast<TokenId>(1 + below(5)), 1 + below(3));
  }
  void guess() {
    const SeqId id = any();
    if (!id.valid()) return;
    const auto& expected = engine_.live.at(id).expected;
    const std::size_t known = engine_.scheduler.tokens(id).size();
    std::vector<TokenId> guesses;
    for (std::size_t i = known; i < std::min(expected.size(), known + 1 + below(5)); ++i)
      guesses.push_back(below(4) == 0 ? static_cast<TokenId>(below(6)) : expected[i]);
    engine_.scheduler.propose(id, guesses);
  }

  std::mt19937_64 random_;
  TestEngine engine_;
  std::uint64_t plans_ = 0;
};

kvcache::CacheOptions kind(std::vector<kvcache::GroupLayout> groups, std::int32_t slots) {
  kvcache::CacheOptions options;
  options.block_tokens = 4;
  options.groups = std::move(groups);
  options.state_slots = slots;
  options.checkpoint_blocks = 2;
  return options;
}

const std::vector<kvcache::CacheOptions>& kinds() {
  static const std::vector<kvcache::CacheOptions> all = {kind({{15, 0}}, 0), kind({{15, 0}, {9, 7}}, 0), kind({}, 5),
                                                         kind({{15, 0}, {9, 7}}, 4)};
  return all;
}

std::unique_ptr<Policy> policy(int number) {
  switch (number) {
    case 0: return first_come();
    case 1: return by_priority(milliseconds(50));
    case 2: return by_deadline(milliseconds(200));
    default: return fair_share({{"a", 3.0}});
  }
}

class RandomServiceTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomServiceTest, EveryAnswerIsThatOfTheRequestAloneAndEverythingIsGivenBack) {
  std::int64_t preemptions = 0, ended = 0, found = 0;
  for (std::uint64_t seed = 0; seed < kinds().size(); ++seed) {
    RandomService run(kinds()[seed], policy(GetParam()), seed);
    for (int i = 0; i < 6000 && !::testing::Test::HasFailure(); ++i)
      ASSERT_NO_FATAL_FAILURE(run.step()) << "kind " << seed << ", step " << i;
    ASSERT_NO_FATAL_FAILURE(run.finish()) << "kind " << seed;
    preemptions += run.engine().scheduler.stats().preemptions;
    found += run.engine().cache.stats().found_tokens;
    ended += run.engine().ended;
  }
  EXPECT_GT(preemptions, 400);  // the runs met the cases they are about
  EXPECT_GT(found, 8000);
  EXPECT_GT(ended, 2000);
}

INSTANTIATE_TEST_SUITE_P(Policies, RandomServiceTest, ::testing::Values(0, 1, 2, 3));

TEST(RandomService, TheSameCallsGiveTheSamePlans) {
  RandomService one(kinds()[3], policy(2), 7), two(kinds()[3], policy(2), 7);
  for (int i = 0; i < 500; ++i) {
    one.step();
    two.step();
    ASSERT_EQ(one.plans(), two.plans()) << "step " << i;
  }
  RandomService other(kinds()[3], policy(2), 8);
  for (int i = 0; i < 500; ++i) other.step();
  EXPECT_NE(one.plans(), other.plans());
}

}  // namespace
}  // namespace weir::scheduler
