// SPDX-License-Identifier: Apache-2.0
// The engine on the real model: what a request gets is what it gets alone, whatever else runs, however the cache looks.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/testing.h"
#include "engine/generation.h"
#include "model/test_adapters.h"

namespace weir::engine {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

LoadedModel& smollm2() {
  static LoadedModel loaded = load_model(testing::smollm2_path(), {.threads = 2, .isa = ""}).value();
  return loaded;
}

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override { WEIR_REQUIRE_CACHED(testing::smollm2_path()); }

  Engine& start(EngineOptions options = {}) {
    engine_.reset();
    if (options.cache_tokens == 0) options.cache_tokens = 4096;
    auto started = Engine::start(smollm2(), std::move(options));
    EXPECT_TRUE(started.has_value()) << started.error().message;
    engine_ = std::move(*started);
    return *engine_;
  }

  std::vector<TokenId> ids(const std::string& text) { return smollm2().tokenizer->encode(text); }
  CompletionRequest request(const std::string& text, std::int64_t tokens = 16) { return {.prompt = ids(text), .max_tokens = tokens}; }
  std::unique_ptr<CompletionStream> submit(CompletionRequest request) {
    auto stream = engine_->submit(std::move(request));
    EXPECT_TRUE(stream.has_value()) << stream.error().message;
    return std::move(*stream);
  }
  Completion answer(CompletionRequest request) {
    const auto stream = submit(std::move(request));
    auto all = collect(*stream, kPatience);
    EXPECT_TRUE(all.has_value()) << all.error().message;
    return std::move(*all);
  }
  // Once with nothing else in the engine, in a fresh one.
  CompletionEvent alone(CompletionRequest request, EngineOptions options = {}) {
    options.speculation.reset();
    options.prefix_cache = false;
    options.cache_tokens = 4096;
    const auto engine = Engine::start(smollm2(), std::move(options)).value();
    const auto stream = engine->submit(std::move(request)).value();
    return collect(*stream, kPatience).value().answers.at(0);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, GreedyAnswerIsThatOfTheGenerator) {
  start();
  const auto event = answer(request("The capital of France is", 24)).answers.at(0);
  Generator generator(smollm2(), {.context = 1024});
  const auto expected =
      generator.generate({.prompt = ids("The capital of France is"), .sampling = {}, .max_tokens = 24}, [](auto) { return true; });
  EXPECT_EQ(event.tokens, expected->ids);
  EXPECT_EQ(event.text, expected->text);
  ASSERT_TRUE(event.finish);
  EXPECT_EQ(event.finish->reason, FinishReason::kLength);
  EXPECT_EQ(event.finish->timeline.tokens.size(), event.tokens.size());
  EXPECT_FALSE(event.finish->timeline.chunks.empty());
}

TEST_F(EngineTest, ManyAtOnceGetWhatEachGetsAlone) {
  std::vector<CompletionRequest> requests;
  const char* texts[] = {"Once upon a time", "The capital of France is", "def fibonacci(n):", "1 2 3 4 5 6 7 8", "A weir is a"};
  for (int i = 0; i < 10; ++i) {
    CompletionRequest r = request(texts[i % 5], 12 + i);
    r.sampling.temperature = i % 2 == 0 ? 0.f : 1.f;
    r.sampling.seed = 7 + static_cast<std::uint64_t>(i);
    requests.push_back(r);
  }
  std::vector<CompletionEvent> expected;
  for (const auto& r : requests) expected.push_back(alone(r));
  // 20 blocks for ten sequences: some are preempted on the way.
  start({.cache_tokens = 320, .max_running = 8, .token_budget = 48});
  std::vector<std::unique_ptr<CompletionStream>> streams;
  for (const auto& r : requests) streams.push_back(submit(r));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto all = collect(*streams[i], kPatience);
    ASSERT_TRUE(all.has_value()) << all.error().message;
    EXPECT_EQ(all->answers.at(0).tokens, expected[i].tokens) << i;
    EXPECT_EQ(all->answers.at(0).text, expected[i].text) << i;
  }
}

TEST_F(EngineTest, LogprobsDoNotDependOnPrefixHits) {
  start();
  std::string text = "Water is a chemical substance. ";
  for (int i = 0; i < 5; ++i) text += text;
  CompletionRequest r = request(text, 8);
  r.sampling.logprobs = 3;
  const auto first = answer(r).answers.at(0), second = answer(r).answers.at(0);
  EXPECT_EQ(first.finish->timeline.cached_tokens, 0);
  EXPECT_GT(second.finish->timeline.cached_tokens, 0);
  ASSERT_EQ(first.logprobs.size(), second.logprobs.size());
  for (std::size_t i = 0; i < first.logprobs.size(); ++i) {
    EXPECT_EQ(first.logprobs[i].token.logprob, second.logprobs[i].token.logprob);
    EXPECT_EQ(first.logprobs[i].rank, second.logprobs[i].rank);
  }
  r.tenant = "another";
  EXPECT_EQ(answer(r).answers.at(0).finish->timeline.cached_tokens, 0);
}

TEST_F(EngineTest, SeveralAnswersAreEachThatOfTheirNumber) {
  start();
  CompletionRequest r = request("My favourite colour is", 12);
  r.answers = 5;
  r.sampling.temperature = 1;
  r.sampling.seed = 3;
  const auto all = answer(r);
  ASSERT_EQ(all.answers.size(), 5u);
  EXPECT_NE(all.answers[0].tokens, all.answers[1].tokens);
  start({.max_running = 2, .max_waiting = 1});  // the others wait their turn, though the queue is full
  const auto again = answer(r);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(all.answers[i].tokens, again.answers[i].tokens) << i;
  r.answers = 1;
  EXPECT_EQ(answer(r).answers[0].tokens, all.answers[0].tokens);
}

TEST_F(EngineTest, PromptLogprobsAreExactInChunks) {
  CompletionRequest r = request("The quick brown fox jumps over the lazy dog and runs away from the bear.", 1);
  r.prompt_logprobs = 2;
  start();
  const auto whole = answer(r).answers.at(0);
  ASSERT_EQ(whole.prompt_logprobs.size(), r.prompt.size() - 1);
  start({.max_running = 1, .token_budget = 33});
  r.prompt_only = true;
  const auto again = answer(r).answers.at(0);
  EXPECT_TRUE(again.tokens.empty());
  ASSERT_EQ(again.prompt_logprobs.size(), whole.prompt_logprobs.size());
  for (std::size_t i = 0; i < whole.prompt_logprobs.size(); ++i) {
    EXPECT_EQ(again.prompt_logprobs[i].token.id, r.prompt[i + 1]);
    EXPECT_EQ(again.prompt_logprobs[i].token.logprob, whole.prompt_logprobs[i].token.logprob);
  }
}

TEST_F(EngineTest, CancelledRequestEndsAndGivesItsBlocksBack) {
  Engine& engine = start({.prefix_cache = false});
  const auto stream = submit(request("Count to a thousand: 1, 2, 3,", 2000));
  ASSERT_TRUE(stream->wait(kPatience));
  stream->cancel();
  std::optional<CompletionEvent> event;
  do event = stream->wait(kPatience);
  while (event && !event->last);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->finish->reason, FinishReason::kCancelled);
  EXPECT_LT(event->finish->generated, 2000);
  EXPECT_EQ(engine.drain(kPatience), 0);
  EXPECT_EQ(engine.stats().cache.pools.at(0).used, 0);
  EXPECT_FALSE(engine.submit(request("x")).has_value());
}

TEST_F(EngineTest, DroppedReaderCancels) {
  Engine& engine = start();
  submit(request("Once", 3000)).reset();
  EXPECT_EQ(engine.drain(kPatience), 0);
  EXPECT_EQ(engine.stats().scheduler.cancelled, 1);
}

TEST_F(EngineTest, SlowReaderLosesNothing) {
  start();
  const auto stream = submit(request("Once upon a time", 200));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto all = collect(*stream, kPatience).value();
  EXPECT_EQ(all.answers.at(0).tokens, alone(request("Once upon a time", 200)).tokens);
}

TEST_F(EngineTest, WhatCannotBeServedIsRefusedWithTheReason) {
  start({.context = 256});
  const auto refused = [&](CompletionRequest r) {
    const auto stream = engine_->submit(std::move(r));
    return stream ? std::string() : stream.error().message;
  };
  EXPECT_NE(refused({}), "");
  EXPECT_NE(refused(request("x", 257)).find("256"), std::string::npos);
  CompletionRequest r = request("x");
  r.prompt.push_back(1 << 20);
  EXPECT_NE(refused(r).find("token 1048576"), std::string::npos);
  r = request("x");
  r.answers = 1000;
  EXPECT_NE(refused(r), "");
  r = request("x");
  r.grammar = grammar::GrammarSpec{.kind = grammar::GrammarKind::kJsonSchema, .text = R"({"type":"nothing"})"};
  EXPECT_NE(refused(r), "");
}

TEST_F(EngineTest, GrammarHoldsAndItsTokensDoNotDependOnNeighbours) {
  start();
  CompletionRequest r = request("Give me a person as JSON:", 120);
  r.grammar = grammar::GrammarSpec{
      .kind = grammar::GrammarKind::kJsonSchema,
      .text =
          R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":120}},)"
          R"("required":["name","age"],"additionalProperties":false})"};
  r.sampling.temperature = 1;
  r.sampling.seed = 11;
  const auto event = answer(r).answers.at(0);
  ASSERT_FALSE(event.finish->error) << event.finish->error->message;
  EXPECT_EQ(event.finish->reason, FinishReason::kStop);
  const auto value = json::parse(event.text, "answer");
  ASSERT_TRUE(value.has_value()) << event.text;
  EXPECT_TRUE(value->as_object().at("age").is_int64());
  EXPECT_GT(event.finish->forced, 0);
  r.answers = 3;
  const auto neighbour = submit(request("Once upon a time", 60));
  const auto again = answer(r);
  EXPECT_EQ(again.answers.at(0).tokens, event.tokens);
  for (const auto& each : again.answers) EXPECT_TRUE(json::parse(each.text, "answer").has_value()) << each.text;
  // With logprobs every token is drawn, none is forced.
  r.answers = 1;
  r.sampling.logprobs = 0;
  const auto drawn = answer(r).answers.at(0);
  EXPECT_EQ(drawn.text, event.text);
  EXPECT_EQ(drawn.logprobs.size(), drawn.tokens.size());
}

TEST_F(EngineTest, GuessesChangeNoToken) {
  const std::string text = "Repeat: one two three four five six seven. one two three four five six seven. one two three";
  for (const float temperature : {0.f, 0.7f}) {
    CompletionRequest r = request(text, 64);
    r.sampling.temperature = temperature;
    r.sampling.seed = 5;
    const auto expected = alone(r);
    start();
    const auto event = answer(r).answers.at(0);
    EXPECT_EQ(event.tokens, expected.tokens);
    if (temperature == 0) {
      EXPECT_GT(event.finish->accepted, 0);  // the model repeats
    }
  }
}

TEST_F(EngineTest, FollowersOfThePrefixCacheSeeWhatIsStored) {
  Engine& engine = start({.event_limit = 1000});
  CompletionRequest r = request("");
  for (TokenId id = 100; id < 200; ++id) r.prompt.push_back(id);
  r.prompt_only = true;
  answer(r);
  auto events = engine.drain_cache_events();
  for (int i = 0; i < 1000 && events.empty(); ++i) {  // they come with the numbers of the step, behind its last event
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    events = engine.drain_cache_events();
  }
  EXPECT_EQ(std::ranges::count(events, kvcache::CacheEvent::Kind::kStored, &kvcache::CacheEvent::kind), 3);
  const auto snapshot = engine.cache_snapshot();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->size(), 3u);
  EXPECT_TRUE(engine.drain_cache_events().empty());
}

TEST_F(EngineTest, SecondTierSurvivesARestart) {
  const testing::TemporaryFolder folder;
  CompletionRequest r = request("Water is a chemical substance. ", 6);
  for (int i = 0; i < 4; ++i)
    r.prompt.insert(r.prompt.end(), r.prompt.begin(), r.prompt.begin() + static_cast<std::ptrdiff_t>(r.prompt.size()));
  const auto expected = alone(r);
  CompletionRequest other = r;
  std::ranges::reverse(other.prompt);
  // With room for two such prompts: the first is driven out by others, the last is saved when the engine stops.
  const auto options = [&] { return EngineOptions{.cache_tokens = 160, .max_running = 1, .tier_folder = folder.path()}; };
  start(options());
  EXPECT_EQ(answer(r).answers.at(0).tokens, expected.tokens);
  answer(other);
  other.prompt.back() = other.prompt.front() = 42;
  answer(other);
  start(options());
  EXPECT_GT(answer(other).answers.at(0).finish->timeline.cached_tokens, 64);
  const auto again = answer(r).answers.at(0);
  EXPECT_EQ(again.tokens, expected.tokens);
  EXPECT_GT(again.finish->timeline.cached_tokens, 64);
}

void write_adapter(const std::filesystem::path& folder, std::uint32_t seed) {
  model::testing::TestAdapter adapter;
  for (int layer = 0; layer < 30; ++layer) {
    adapter.changes.emplace_back(fmt::format("model.layers.{}.self_attn.q_proj", layer), 576, 576, adapter.rank, ++seed);
    adapter.changes.emplace_back(fmt::format("model.layers.{}.mlp.down_proj", layer), 576, 1536, adapter.rank, ++seed);
  }
  adapter.write_peft(folder);
}

TEST_F(EngineTest, AdaptersMixInOneBatchAndShareNoPrefixes) {
  const testing::TemporaryFolder folder;
  write_adapter(folder.path() / "a", 1);
  write_adapter(folder.path() / "b", 1000);
  Engine& engine = start();
  ASSERT_TRUE(engine.adapters().load("a", folder.path() / "a"));
  ASSERT_TRUE(engine.adapters().load("b", folder.path() / "b"));
  EXPECT_FALSE(engine.adapters().load("a", folder.path() / "b"));
  CompletionRequest r =
      request("A weir is a low dam built across a river to raise the level of water upstream or to regulate its flow. It", 24);
  std::map<std::string, std::vector<TokenId>> alone;
  for (const char* name : {"", "a", "b"}) {
    r.adapter = name;
    const auto event = answer(r).answers.at(0);
    EXPECT_EQ(event.finish->timeline.cached_tokens, 0) << name;
    alone[name] = event.tokens;
  }
  EXPECT_NE(alone[""], alone["a"]);
  EXPECT_NE(alone["a"], alone["b"]);
  std::vector<std::pair<std::string, std::unique_ptr<CompletionStream>>> streams;
  for (const char* name : {"a", "", "b", "a", "b", ""}) {
    r.adapter = name;
    streams.emplace_back(name, submit(r));
  }
  // Gone for new requests, kept by those that run; the same name may come back with another content.
  ASSERT_TRUE(engine.adapters().unload("a"));
  EXPECT_FALSE(engine.adapters().unload("a"));
  for (auto& [name, stream] : streams) EXPECT_EQ(collect(*stream, kPatience)->answers.at(0).tokens, alone[name]) << name;
  r.adapter = "a";
  EXPECT_EQ(engine.submit(r).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(engine.adapters().load("a", folder.path() / "b"));
  EXPECT_EQ(answer(r).answers.at(0).tokens, alone["b"]);
}

TEST_F(EngineTest, DraftModelChangesNoTokenAndIsMostlyRight) {
  for (const float temperature : {0.f, 1.f}) {
    CompletionRequest r = request("My favourite season of the year is", 40);
    r.sampling.temperature = temperature;
    r.sampling.seed = 21;
    const auto expected = alone(r);
    EngineOptions options;
    options.draft = load_model(testing::smollm2_path(), {.threads = 2, .isa = ""}).value();  // as large as the target: always right
    options.speculation->fixed_length = 3;                                                   // it cannot pay, and is to run all the same
    start(std::move(options));
    const auto event = answer(r).answers.at(0);
    EXPECT_EQ(event.tokens, expected.tokens);
    EXPECT_GT(event.finish->drafted, 0) << temperature;
    EXPECT_GE(event.finish->accepted * 10, event.finish->drafted * 8) << temperature;
  }
}

TEST_F(EngineTest, WhatARequestTookIsKnownByKindOfOperation) {
  Engine& engine = start();
  const auto first = submit(request("Once upon a time", 20));
  const auto event = answer(request("The capital of France is", 20)).answers.at(0);
  collect(*first, kPatience).value();
  const StepBreakdown& cost = event.finish->cost;
  EXPECT_GT(cost.total().seconds, 0);
  EXPECT_GT(cost[OpKind::kHead].bytes, 0);
  EXPECT_GT(cost[OpKind::kAttention].all_multiply_adds(), 0);
  // Its share only: another request ran too.
  const ServiceStats stats = engine.stats();
  EXPECT_GT(stats.cost.total().seconds, cost.total().seconds);
}

TEST_F(EngineTest, StopTextsEndWithoutShowing) {
  start();
  CompletionRequest r = request("1, 2, 3, 4, 5, 6, 7, 8, 9,", 64);
  r.sampling.stop = {"15"};
  const auto event = answer(r).answers.at(0);
  EXPECT_EQ(event.finish->reason, FinishReason::kStop);
  EXPECT_EQ(event.finish->stop_text, "15");
  EXPECT_EQ(event.text.find("15"), std::string::npos);
  EXPECT_NE(event.text.find("14"), std::string::npos);
}

TEST_F(EngineTest, StopTokensEndAlsoWhatIgnoresTheModelsEnd) {
  start();
  CompletionRequest r = request("1 2 3 4 5 6 7 8", 12);
  r.ignore_end = true;
  const auto free = answer(r).answers.at(0);
  ASSERT_EQ(free.tokens.size(), 12u);
  r.sampling.stop_tokens = {free.tokens[5]};
  const auto first = std::ranges::find(free.tokens, free.tokens[5]) - free.tokens.begin();
  const auto stopped = answer(r).answers.at(0);
  EXPECT_EQ(stopped.finish->reason, FinishReason::kStop);
  EXPECT_EQ(stopped.tokens.size(), static_cast<std::size_t>(first) + 1);
  r.min_tokens = first + 3;  // not before, then at once where it is likely
  const auto later = answer(r).answers.at(0);
  EXPECT_GE(later.tokens.size(), static_cast<std::size_t>(first) + 3);
  EXPECT_EQ(std::ranges::find(later.tokens.begin(), later.tokens.begin() + first + 2, free.tokens[5]), later.tokens.begin() + first + 2);
}

// What a grammar leaves no choice of is not an error: it is kept, and ends where it ends.
TEST_F(EngineTest, AGrammarThatEndsBeforeMinTokensEndsThere) {
  start();
  for (const float temperature : {0.f, 1.f}) {
    for (const std::int32_t top_k : {0, 5}) {
      CompletionRequest r = request("Yes or no?", 30);
      r.sampling.temperature = temperature;
      r.sampling.top_k = top_k;
      r.min_tokens = 20;
      r.grammar = grammar::GrammarSpec{.kind = grammar::GrammarKind::kChoice, .choices = {"yes", "no"}};
      const auto event = answer(r).answers.at(0);
      ASSERT_FALSE(event.finish->error) << event.finish->error->message;
      EXPECT_EQ(event.finish->reason, FinishReason::kStop);
      EXPECT_TRUE(event.text == "yes" || event.text == "no") << event.text;
    }
  }
}

TEST_F(EngineTest, SpecialTokensAreShownWhenAskedFor) {
  start();
  CompletionRequest r = request("<|im_start|>user\nHello<|im_end|>\n", 8);
  const TokenId mark = smollm2().tokenizer->find("<|im_start|>").value();
  r.sampling.logit_bias = {{mark, 100.f}};
  r.ignore_end = true;
  EXPECT_EQ(answer(r).answers.at(0).text.find("<|im_start|>"), std::string::npos);
  r.show_special = true;
  EXPECT_TRUE(answer(r).answers.at(0).text.starts_with("<|im_start|>"));
}

TEST_F(EngineTest, LimitsOfTimeEndRequests) {
  start({.max_running = 1});
  const auto first = submit(request("Count: 1, 2, 3,", 1500));
  CompletionRequest waits = request("x");
  waits.queue_limit = std::chrono::milliseconds(20);
  const auto expired = answer(waits).answers.at(0);
  EXPECT_EQ(expired.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(expired.finish->error->code, ErrorCode::kDeadline);
  first->cancel();
  CompletionRequest cut = request("Count: 1, 2, 3,", 2000);
  cut.time_limit = std::chrono::milliseconds(100);
  const auto event = answer(cut).answers.at(0);
  EXPECT_EQ(event.finish->error->code, ErrorCode::kDeadline);
  EXPECT_LT(event.tokens.size(), 2000u);
}

}  // namespace
}  // namespace weir::engine
