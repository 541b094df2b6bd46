// SPDX-License-Identifier: Apache-2.0
// What users of other engines suffer from, one test for each complaint, on a tiny model. (Equal bits under load, prefixes and forks are
// in the random tests, memory in churn_test.cc.)
#include <gtest/gtest.h>

#include <thread>

#include "base/testing.h"
#include "engine/engine.h"

namespace weir::engine {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

class PromisesTest : public ::testing::Test {
 protected:
  Engine& start(EngineOptions options = {}) {
    if (options.cache_tokens == 0) options.cache_tokens = 512;
    engine_ = Engine::start(loaded_, std::move(options)).value();
    return *engine_;
  }
  static CompletionRequest request(std::size_t prompt, std::int64_t tokens) {
    CompletionRequest r;
    for (std::size_t i = 0; i < prompt; ++i) r.prompt.push_back(static_cast<TokenId>(33 + i * 7 % 60));
    r.max_tokens = tokens;
    r.ignore_end = true;
    return r;
  }
  std::unique_ptr<CompletionStream> submit(CompletionRequest r) { return engine_->submit(std::move(r)).value(); }
  CompletionEvent answer(CompletionRequest r) { return collect(*submit(std::move(r)), kPatience).value().answers.at(0); }
  template <class Condition>
  static bool soon(Condition&& condition) {
    const TimePoint end = steady_clock().now() + kPatience;
    while (!condition() && steady_clock().now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }

  LoadedModel loaded_ = load_model(testing::data_path("arch/llama"), {.threads = 1, .isa = ""}).value();
  std::unique_ptr<Engine> engine_;
};

// "a client disconnects and generation goes on"
TEST_F(PromisesTest, AClientThatDisconnectsStopsItsGenerationAndFreesItsBlocks) {
  std::atomic<bool> gone{false};
  std::atomic<int> steps_after{0};
  Engine& engine = start({.prefix_cache = false, .on_step = [&](const StepRecord&) { steps_after += gone ? 1 : 0; }});
  auto stream = submit(request(5, 120));
  ASSERT_TRUE(stream->wait(kPatience));
  stream.reset();
  gone = true;
  EXPECT_TRUE(soon([&] { return engine.stats().open_requests == 0; }));
  EXPECT_LE(steps_after, 1) << "the step that ran meanwhile, and no more";
  EXPECT_EQ(engine.stats().cache.pools.at(0).used, 0);
}

// "one bad request kills or hangs the server for all"
TEST_F(PromisesTest, AFaultInAStepEndsItsRequestsAndNotTheEngine) {
  std::atomic<int> steps{0};
  Engine& engine = start({.on_step = [&](const StepRecord&) {
    if (++steps == 3) throw std::runtime_error("a fault");
  }});
  CompletionRequest several = request(5, 100);
  several.answers = 3;
  const auto failed = answer(several);
  EXPECT_EQ(failed.finish->reason, FinishReason::kFailed);
  EXPECT_NE(failed.finish->error->message.find("a fault"), std::string::npos);
  EXPECT_EQ(answer(request(5, 10)).finish->reason, FinishReason::kLength);
  EXPECT_EQ(engine.drain(kPatience), 0);
}

// "health answers 200 while the engine is dead"
TEST_F(PromisesTest, TheBeatFollowsTheLoopAndStandsStillWhenAStepHangs) {
  std::atomic<bool> hang{true}, hangs{false};
  Engine& engine = start({.on_step = [&](const StepRecord&) {
    hangs = true;
    while (hang) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }});
  const TimePoint idle = engine.stats().last_beat;
  EXPECT_TRUE(soon([&] { return engine.stats().last_beat > idle; })) << "also without work";
  const auto stream = submit(request(5, 10));
  ASSERT_TRUE(soon([&] { return hangs.load(); }));
  const TimePoint stuck = engine.stats().last_beat;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(engine.stats().in_step);
  EXPECT_EQ(engine.stats().last_beat, stuck);
  hang = false;
  EXPECT_TRUE(collect(*stream, kPatience).has_value());
  EXPECT_TRUE(soon([&] { return engine.stats().last_beat > stuck; }));
}

// "a grammar or schema that isn't supported silently yields free text"
TEST_F(PromisesTest, AnUnsupportedKeywordOfASchemaIsNamedBeforeAnyToken) {
  start();
  CompletionRequest r = request(5, 20);
  r.ignore_end = false;
  r.grammar = grammar::GrammarSpec{.kind = grammar::GrammarKind::kJsonSchema, .text = R"({"type":"object","frobnicate":{"x":1}})"};
  const auto stream = engine_->submit(r);
  ASSERT_FALSE(stream.has_value());
  EXPECT_NE(stream.error().message.find("frobnicate"), std::string::npos) << stream.error().message;
}

// "KV cache full → deadlock or endless preemption"
TEST_F(PromisesTest, AFullCacheMakesRequestsWaitAndAllOfThemEnd) {
  Engine& engine = start({.cache_tokens = 128, .max_running = 4, .token_budget = 40});
  std::vector<std::unique_ptr<CompletionStream>> streams;
  for (int i = 0; i < 12; ++i) streams.push_back(submit(request(30 + static_cast<std::size_t>(i), 60)));
  for (const auto& stream : streams) EXPECT_EQ(collect(*stream, kPatience).value().answers.at(0).tokens.size(), 60u);
  EXPECT_GT(engine.stats().scheduler.preemptions, 0) << "the cache was not full";
  EXPECT_FALSE(engine.submit(request(100, 100)).has_value()) << "what can never fit is refused";
}

// "a long prompt starves everybody's streams"
TEST_F(PromisesTest, ALongPromptComesInChunksBetweenTheTokensOfStreams) {
  start({.max_running = 4, .token_budget = 36, .prefix_cache = false, .speculation = {}});
  const auto stream = submit(request(5, 120));
  ASSERT_TRUE(stream->wait(kPatience));
  const auto prompt = answer(request(110, 2));
  const auto streamed = collect(*stream, kPatience).value().answers.at(0);
  const Timeline &a = prompt.finish->timeline, &b = streamed.finish->timeline;
  ASSERT_GE(a.chunks.size(), 3u);
  const auto at = [](const Timeline& t, Duration d) { return t.queued + d; };
  if (at(b, b.tokens.back()) < at(a, a.chunks.back().end)) GTEST_SKIP() << "the stream had ended before";
  for (std::size_t i = 1; i < a.chunks.size(); ++i) {
    const auto between = std::ranges::count_if(
        b.tokens, [&](Duration token) { return at(b, token) > at(a, a.chunks[i - 1].end) && at(b, token) <= at(a, a.chunks[i].end); });
    EXPECT_GE(between, 1) << "chunk " << i << " came without a token";
  }
}

// "prompts truncated silently, context exceeded silently"
TEST_F(PromisesTest, WhatExceedsTheContextIsAnErrorWithTheNumbers) {
  start({.context = 64});
  const auto refused = engine_->submit(request(60, 5));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  for (const char* number : {"60", "5", "64", "4 at most"}) EXPECT_NE(refused.error().message.find(number), std::string::npos) << number;
  EXPECT_EQ(answer(request(60, 0)).tokens.size(), 4u) << "as many as there is room for";
}

// "no echo/prompt logprobs → evaluation harnesses at chance level"
TEST_F(PromisesTest, PromptLogprobsAreThoseOfTheSameTokensWhenGenerated) {
  start({.speculation = {}});
  CompletionRequest r = request(20, 30);
  r.sampling.logprobs = 0;
  const auto generated = answer(r);
  CompletionRequest echo = request(20, 1);
  echo.prompt.insert(echo.prompt.end(), generated.tokens.begin(), generated.tokens.end());
  echo.prompt_logprobs = 0;
  const auto scored = answer(echo);
  ASSERT_EQ(scored.prompt_logprobs.size(), echo.prompt.size() - 1);
  for (std::size_t i = 0; i < generated.tokens.size(); ++i) {
    EXPECT_EQ(scored.prompt_logprobs[19 + i].token.id, generated.tokens[i]);
    EXPECT_EQ(scored.prompt_logprobs[19 + i].token.logprob, generated.logprobs[i].token.logprob) << i;
  }
}

// "drain kills streams; model swap kills live requests"
TEST_F(PromisesTest, ADrainFinishesWhatWasSubmittedAndItsEventsOutliveTheEngine) {
  Engine& engine = start();
  const auto stream = submit(request(5, 120));
  EXPECT_EQ(engine.drain(kPatience), 0) << "also right after a submit";
  EXPECT_FALSE(engine.submit(request(5, 5)).has_value());
  engine_.reset();
  const auto late = collect(*stream, kPatience);
  ASSERT_TRUE(late.has_value()) << "nothing was read before, and the engine has gone";
  EXPECT_EQ(late->answers.at(0).tokens.size(), 120u);
  EXPECT_EQ(late->answers.at(0).finish->reason, FinishReason::kLength);
}

TEST_F(PromisesTest, AStopEndsEveryRequestAsCancelled) {
  start({.max_running = 1});
  std::vector<std::unique_ptr<CompletionStream>> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(submit(request(5, 120)));
  engine_.reset();
  for (const auto& stream : streams) {
    const auto all = collect(*stream, kPatience);
    ASSERT_TRUE(all.has_value());
    EXPECT_NE(all->answers.at(0).finish->reason, FinishReason::kFailed);
  }
}

}  // namespace
}  // namespace weir::engine
