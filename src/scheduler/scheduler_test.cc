// SPDX-License-Identifier: Apache-2.0
// What a step runs, refusals, preemption, cancellation, guesses and forks. Every answer is compared with that of the request alone.
#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/test_engine.h"

namespace weir::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

// (sequence, first position, count, phase as p or d) of each row.
std::string rows_of(const StepPlan& plan) {
  std::string text;
  for (const Row& row : plan.rows) {
    text += fmt::format("{}{}:{}+{}{}", text.empty() ? "" : " ", row.sequence.value, row.first_position, row.tokens.size(),
                        row.phase == Phase::kPrefill ? "p" : "d");
    if (row.logits != 0) text += fmt::format("={}", row.logits);
  }
  return text;
}

TEST(Plan, RunsDecodeFirstAndFillsTheBudgetWithChunksOfPrompts) {
  TestEngine e(blocks_of_4(100), {.token_budget = 16, .max_running = 4});
  e.submit(talkative(6, 9));
  EXPECT_EQ(rows_of(e.step()), "0:0+6p=1");
  e.submit(talkative(30, 9, 100));
  e.submit(talkative(5, 9, 200));
  EXPECT_EQ(rows_of(e.step()), "0:6+1d=1 1:0+15p");
  EXPECT_EQ(rows_of(e.step()).substr(0, 21), "0:7+1d=1 1:15+15p=1");
  e.drain();
}

// "A long prompt starves everybody's streams."
TEST(Plan, ALongPromptStallsNoStream) {
  TestEngine e(blocks_of_4(400), {.token_budget = 32, .max_running = 8});
  std::vector<SeqId> streams;
  for (TokenId i = 0; i < 4; ++i) streams.push_back(e.submit(talkative(4, 30, 1 + 50 * i)));
  e.step();
  e.submit(talkative(600, 2, 5000));
  for (int i = 0; i < 10; ++i) {
    const StepPlan& plan = e.step();
    EXPECT_LE(plan.prefill_positions + plan.decode_positions, 32);
    EXPECT_GE(plan.prefill_positions, 4);
    for (const SeqId s : streams) {
      const bool streaming = std::ranges::find(e.finished, s) != e.finished.end() || e.live.contains(s);
      const bool has_row = std::ranges::find(plan.rows, s, &Row::sequence) != plan.rows.end();
      EXPECT_TRUE(has_row || !streaming) << "step " << i;
    }
  }
  e.drain();
}

TEST(Plan, PrefillLeavesStreamsTheirTimeBetweenTokens) {
  TestEngine e(blocks_of_4(400), {.token_budget = 200, .max_running = 8});
  Request stream = talkative(4, 60);
  stream.tpot_target = milliseconds(21);
  e.submit(std::move(stream));
  e.step();
  e.step();  // a decode step takes 1 ms, a position of prefill 1 ms more
  e.submit(talkative(600, 2, 5000));
  std::vector<std::int32_t> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back(e.step().prefill_positions);
  EXPECT_LE(chunks[3], 21);
  EXPECT_GE(chunks[3], 15);
  e.drain();
}

TEST(Plan, ASecondRequestStartsBehindThePrefixOfTheFirst) {
  TestEngine e(blocks_of_4(100), {.token_budget = 64, .max_running = 4});
  e.submit(talkative(20, 3));
  e.drain();
  Request again = talkative(20, 3);
  again.prompt.back() = 77;
  e.submit(std::move(again));
  EXPECT_EQ(rows_of(e.step()).substr(0, 9), "1:16+4p=1");
  EXPECT_EQ(e.cache.stats().found_tokens, 16);
  e.drain();
}

// "No echo, no prompt logprobs: evaluation harnesses at chance level."
TEST(Plan, PromptLogitsAreOfEveryPositionAlsoWhenTheCacheKnowsThePrompt) {
  TestEngine e(blocks_of_4(100), {.token_budget = 12, .max_running = 4});
  e.submit(talkative(20, 3));
  e.drain();
  Request again = talkative(20, 3);
  again.prompt_logits = true;
  e.submit(std::move(again));
  EXPECT_EQ(rows_of(e.step()), "1:0+12p=12");
  EXPECT_EQ(rows_of(e.step()), "1:12+8p=8");
  e.drain();
}

TEST(Plan, APromptAloneEndsWithItsLogits) {
  TestEngine e(blocks_of_4(100), {.token_budget = 12, .max_running = 4});
  e.submit(prompt_of(9, 0));
  EXPECT_EQ(rows_of(e.step()), "0:0+9p=1");
  EXPECT_TRUE(e.scheduler.idle());
}

// "KV cache full: deadlock." "Prompts truncated silently, context exceeded silently."
TEST(Submit, RefusesAtOnceWhatCanNeverFitAndSaysWhy) {
  TestEngine e(blocks_of_4(10), {.token_budget = 12, .max_running = 4});
  const auto refused = e.scheduler.submit(prompt_of(30, 11));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().message, "41 tokens need 11 KV cache blocks, and there are 10: ask for fewer tokens, or give the cache more");
  EXPECT_FALSE(e.scheduler.submit(prompt_of(0, 5)));
  EXPECT_FALSE(e.scheduler.submit(prompt_of(5, -1)));
  EXPECT_EQ(e.scheduler.stats().refused, 3);
  e.submit(prompt_of(30, 10));
  e.drain();
}

TEST(Submit, RefusesBeyondABoundedQueueAndTellsTheEstimatedWait) {
  TestEngine e(blocks_of_4(100), {.token_budget = 12, .max_running = 1, .max_waiting = 2});
  EXPECT_EQ(e.scheduler.estimated_wait(), Duration::zero());  // nothing was measured
  e.submit(talkative(8, 20));
  for (int i = 0; i < 5; ++i) e.step();
  e.submit(talkative(8, 20, 100));
  e.submit(talkative(8, 20, 200));
  const auto refused = e.scheduler.submit(prompt_of(8));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(refused.error().message, ::testing::StartsWith("the queue is full: 2 requests with 16 tokens wait, the estimated wait is "));
  EXPECT_GE(e.scheduler.estimated_wait(), milliseconds(16));
  e.drain();
  e.submit(talkative(8, 20));
  e.step();
  // By now answers are known to have about 20 tokens of 1 ms, and one is ahead.
  EXPECT_GE(e.scheduler.estimated_wait(), milliseconds(10));
  EXPECT_LE(e.scheduler.estimated_wait(), milliseconds(40));
  e.drain();
}

TEST(Submit, WaitsNoLongerThanAsked) {
  TestEngine e(blocks_of_4(100), {.token_budget = 12, .max_running = 1});
  e.submit(talkative(4, 30));
  Request impatient = talkative(4, 30, 100);
  impatient.start_by = e.clock.now() + milliseconds(9);
  const SeqId id = e.submit(std::move(impatient));
  std::vector<SeqId> expired;
  for (int i = 0; i < 12; ++i) {
    const auto& plan = e.step();
    expired.insert(expired.end(), plan.expired.begin(), plan.expired.end());
  }
  EXPECT_THAT(expired, ElementsAre(id));
  EXPECT_TRUE(e.scheduler.tokens(id).empty());
  EXPECT_EQ(e.scheduler.stats().expired, 1);
  e.drain();
}

// "KV cache full: endless preemption."
TEST(Preemption, TakesTheNewestAndResumesItWithTheSameTokensInTheSamePhases) {
  TestEngine e(blocks_of_4(12), {.token_budget = 64, .max_running = 4});
  const SeqId first = e.submit(talkative(14, 24)), second = e.submit(talkative(14, 24, 500));
  std::vector<SeqId> preempted;
  std::string resumed;
  for (int i = 0; i < 200 && !e.scheduler.idle(); ++i) {
    const StepPlan& plan = e.step();
    preempted.insert(preempted.end(), plan.preempted.begin(), plan.preempted.end());
    if (!preempted.empty() && resumed.find(" 1:") == std::string::npos &&
        std::ranges::find(plan.rows, second, &Row::sequence) != plan.rows.end())
      resumed += " " + rows_of(plan);
  }
  EXPECT_TRUE(e.scheduler.idle());  // both answers were compared
  ASSERT_FALSE(preempted.empty());
  for (const SeqId id : preempted) EXPECT_EQ(id, second);
  EXPECT_NE(first, second);
  EXPECT_EQ(e.scheduler.stats().preemptions, 1);  // not again and again
  EXPECT_EQ(e.cache.stats().pools[0].used, 0);
}

TEST(Preemption, ReplaysThePromptAsPrefillAndTheAnswerAsDecodeRows) {
  kvcache::CacheOptions no_prefixes = blocks_of_4(40);
  no_prefixes.prefix_cache = false;
  TestEngine e(no_prefixes, {.token_budget = 10, .max_running = 4});
  e.submit(talkative(14, 30));
  while (e.scheduler.tokens(SeqId(0)).size() < 28) e.step();
  const auto known = static_cast<int>(e.scheduler.tokens(SeqId(0)).size());
  e.fail_step();  // everything runs again
  EXPECT_EQ(rows_of(e.step()), "0:0+10p");
  EXPECT_EQ(rows_of(e.step()), "0:10+4p");
  EXPECT_EQ(rows_of(e.step()), "0:14+10d");
  EXPECT_EQ(rows_of(e.step()), fmt::format("0:24+{}d=1", known - 24));
  e.drain();
}

// "A client disconnects and generation goes on."
TEST(Cancel, FreesEverythingAtOnceInEveryStage) {
  TestEngine e(blocks_of_4(40), {.token_budget = 12, .max_running = 2});
  const SeqId streaming = e.submit(talkative(4, 30));
  e.step();
  const SeqId filling = e.submit(talkative(40, 30, 100)), waiting = e.submit(talkative(40, 30, 200));
  e.step();
  EXPECT_EQ(e.scheduler.stats().running, 2);
  EXPECT_EQ(e.scheduler.stats().waiting, 1);
  EXPECT_TRUE(e.cancel(waiting));
  EXPECT_EQ(e.scheduler.stats().waiting, 0);
  EXPECT_EQ(e.scheduler.stats().waiting_tokens, 0);
  const auto used = e.cache.stats().pools[0].used;
  EXPECT_TRUE(e.cancel(filling));
  EXPECT_LT(e.cache.stats().pools[0].used, used);
  EXPECT_TRUE(e.cancel(streaming));
  EXPECT_FALSE(e.cancel(streaming));
  EXPECT_EQ(e.cache.stats().pools[0].used, 0);
  EXPECT_TRUE(e.scheduler.idle());
  EXPECT_EQ(rows_of(e.step()), "");
}

TEST(Cancel, OfASequenceWhoseRowHasRunDropsItsResult) {
  TestEngine e(blocks_of_4(40), {.token_budget = 12, .max_running = 2});
  const SeqId one = e.submit(talkative(4, 30)), two = e.submit(talkative(4, 30, 100));
  const StepPlan& plan = e.scheduler.plan();
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_TRUE(e.cancel(one));
  const std::vector<TokenId> token = {5};
  e.scheduler.complete(std::vector<RowResult>{{token, false}, {token, true}}, milliseconds(1));
  EXPECT_TRUE(e.scheduler.tokens(one).empty());
  EXPECT_TRUE(e.scheduler.tokens(two).empty());
  EXPECT_TRUE(e.scheduler.idle());
  EXPECT_EQ(e.cache.stats().pools[0].used, 0);
}

// "One bad request kills or hangs the server for all."
TEST(Abandon, AFailedStepLosesNothing) {
  TestEngine e(blocks_of_4(40), {.token_budget = 12, .max_running = 3});
  for (TokenId i = 0; i < 3; ++i) e.submit(talkative(7, 10, 1 + 100 * i));
  for (int i = 0; i < 6; ++i) {
    e.step();
    e.fail_step();
    EXPECT_EQ(e.scheduler.stats().running, 0);
  }
  e.drain();
  EXPECT_EQ(e.ended, 3);
}

TEST(Guesses, AreVerifiedAsDecodeRowsAndTakenBackWhenWrong) {
  TestEngine e(blocks_of_4(40), {.token_budget = 12, .max_running = 2});
  const SeqId id = e.submit(talkative(6, 12));
  e.step();
  std::vector<TokenId> expected = e.live.at(id).expected;
  const auto known = e.scheduler.tokens(id).size();
  std::vector<TokenId> guesses(expected.begin() + static_cast<std::ptrdiff_t>(known),
                               expected.begin() + static_cast<std::ptrdiff_t>(known) + 3);
  e.scheduler.propose(id, guesses);
  EXPECT_EQ(rows_of(e.step()), fmt::format("0:6+{}d=4", known - 6 + 3));
  EXPECT_GE(e.scheduler.tokens(id).size(), known + 4);  // three right ones and the one behind
  const auto now = e.scheduler.tokens(id).size();
  const std::vector<TokenId> wrong = {5, 5, 5};
  e.scheduler.propose(id, expected[now] == 5 ? std::vector<TokenId>{1, 1, 1} : wrong);
  e.step();
  e.drain();
}

TEST(Guesses, NeverExceedWhatIsLeftToGenerateNorTheBudget) {
  TestEngine e(blocks_of_4(40), {.token_budget = 6, .max_running = 2});
  const SeqId id = e.submit(talkative(3, 5));
  e.step();
  const std::vector<TokenId> many(50, 1);
  e.scheduler.propose(id, many);
  const StepPlan& plan = e.step();
  EXPECT_LE(plan.decode_positions, 5);
  EXPECT_EQ(plan.rows[0].drafted, 3);
  e.drain();
}

TEST(Guesses, LeaveRoomForPromptsThatWait) {
  TestEngine e(blocks_of_4(80), {.token_budget = 12, .max_running = 2});
  const SeqId id = e.submit(talkative(3, 40));
  e.step();
  e.submit(talkative(30, 4, 100));
  for (int i = 0; i < 3 && e.live.contains(id); ++i) {
    e.scheduler.propose(id, std::vector<TokenId>(11, 1));
    EXPECT_GE(e.step().prefill_positions, 4);
  }
  e.drain();
}

TEST(Forks, ShareThePromptAndGoTheirOwnWays) {
  TestEngine e(blocks_of_4(40), {.token_budget = 64, .max_running = 8});
  const SeqId parent = e.submit(talkative(14, 12));
  e.step();
  const auto used = e.cache.stats().pools[0].used;
  std::vector<SeqId> children;
  for (const TokenId last : {1, 2, 5}) children.push_back(e.fork(parent, last));
  EXPECT_EQ(e.cache.stats().pools[0].used, used);
  e.step();
  EXPECT_EQ(e.cache.stats().copied_blocks, 3);
  e.drain();
  EXPECT_EQ(e.ended, 4);
  EXPECT_EQ(e.cache.stats().pools[0].used, 0);
  EXPECT_FALSE(e.scheduler.fork(parent, 14, std::vector<TokenId>{1}));
}

TEST(Forks, WithoutAPlaceWaitAndRunTheSame) {
  TestEngine e(blocks_of_4(40), {.token_budget = 64, .max_running = 1});
  const SeqId parent = e.submit(talkative(14, 12));
  e.step();
  e.fork(parent, 1);
  e.fork(parent, 2);
  EXPECT_EQ(e.scheduler.stats().waiting, 2);
  e.drain();
  EXPECT_EQ(e.ended, 3);
}

// All answers to a request come before those to later requests, though they are opened later.
TEST(Forks, StandInTheOrderWhereTheirParentDoes) {
  TestEngine e(blocks_of_4(40), {.token_budget = 64, .max_running = 1});
  const SeqId parent = e.submit(talkative(14, 4));
  const SeqId later = e.submit(talkative(14, 4, 100));
  e.step();
  const SeqId child = e.fork(parent, 5);
  ASSERT_TRUE(child.valid());
  std::vector<SeqId> ended;
  while (!e.scheduler.idle()) {
    e.step();
    ended.insert(ended.end(), e.finished.begin(), e.finished.end());
  }
  EXPECT_EQ(ended, (std::vector<SeqId>{parent, child, later}));
}

TEST(Options, ABudgetMustHoldARowOfEachSequenceAndABlock) {
  kvcache::Cache cache(blocks_of_4(4));
  EXPECT_TRUE(Scheduler::check({.token_budget = 12, .max_running = 8}, cache));
  EXPECT_EQ(Scheduler::check({.token_budget = 11, .max_running = 8}, cache).error().message,
            "a budget of 11 tokens for 8 sequences: at least 12, for one row each and a block of a prompt");
  EXPECT_FALSE(Scheduler::check({.token_budget = 12, .max_running = 0}, cache));
}

}  // namespace
}  // namespace weir::scheduler
