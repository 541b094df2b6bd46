// SPDX-License-Identifier: Apache-2.0
// The engine with its thread on the real model: random requests at once, in settings that force preemption, chunks, prefix hits,
// guesses, reloads from disk after a restart. What each gets is, to the last bit of its logprobs, what it gets alone.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/testing.h"
#include "engine/engine.h"

namespace weir::engine {
namespace {

constexpr Duration kPatience = std::chrono::seconds(120);

LoadedModel& smollm2() {
  static LoadedModel loaded = load_model(testing::smollm2_path(), {.threads = 2, .isa = ""}).value();
  return loaded;
}

std::vector<CompletionRequest> wishes(std::size_t count) {
  std::mt19937_64 random(42);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const std::string shared =
      "The weir was built across the river in the year 1784, to raise the water for the mill. The mill ground corn until the "
      "flood, and after the flood the mill ground corn again, since the weir had held.";
  const char* ends[] = {" Question: when was it built? Answer:", " After the flood the mill", " 1 2 3 1 2 3 1 2", " In short,"};
  std::vector<CompletionRequest> all;
  for (std::size_t i = 0; i < count; ++i) {
    CompletionRequest r;
    const std::string text = below(5) == 0 ? "Once upon a time" : shared.substr(0, 40 + below(2) * (shared.size() - 40)) + ends[below(4)];
    r.prompt = smollm2().tokenizer->encode(text);
    r.max_tokens = 6 + static_cast<std::int64_t>(below(14));
    r.sampling.temperature = i % 2 == 0 ? 0.f : 1.f;
    r.sampling.seed = i;
    r.sampling.logprobs = i % 3 == 0 ? 2 : -1;
    if (i % 7 == 3) r.answers = 3;
    if (i % 8 == 1) r.prompt_logprobs = 1;
    if (i % 6 == 5) r.sampling.stop = {"the", "3"};
    if (i % 9 == 4) r.sampling.frequency_penalty = 0.7f;
    if (i % 5 == 2) {
      r.grammar = grammar::GrammarSpec{
          .kind = grammar::GrammarKind::kRegex,
          .text = i % 2 == 0 ? R"((The|A) [a-z]{1,20} (river|mill)\.)" : R"(\{"year": [0-9]{4}, "name": "[a-z ]{1,12}"\})"};
    } else {
      r.ignore_end = i % 4 == 0;
    }
    r.priority = static_cast<std::int32_t>(below(3));
    all.push_back(r);
  }
  return all;
}

std::unique_ptr<Engine> start(EngineOptions options) {
  auto engine = Engine::start(smollm2(), std::move(options));
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  return std::move(*engine);
}

void expect_equal(const std::vector<sampling::TokenLogprobs>& a, const std::vector<sampling::TokenLogprobs>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].token.id, b[i].token.id);
    EXPECT_EQ(a[i].token.logprob, b[i].token.logprob);
    EXPECT_EQ(a[i].rank, b[i].rank);
  }
}

class EngineRandomTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kRequests = 14;

  void SetUp() override {
    WEIR_REQUIRE_CACHED(testing::smollm2_path());
    if (!alone_.empty()) return;
    requests_ = wishes(kRequests);
    const auto engine = start({.cache_tokens = 2048, .prefix_cache = false, .speculation = {}});
    for (const CompletionRequest& r : requests_) alone_.push_back(collect(*engine->submit(r).value(), kPatience).value());
  }

  // All requests, in an order of their own, some of them twice with the first cancelled on the way.
  void run(Engine& engine, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::size_t> order(kRequests);
    for (std::size_t i = 0; i < kRequests; ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    std::vector<std::unique_ptr<CompletionStream>> streams(kRequests), doomed;
    for (const std::size_t i : order) {
      if (random() % 3 == 0) doomed.push_back(engine.submit(requests_[i]).value());
      streams[i] = engine.submit(requests_[i]).value();
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
      if (!doomed.empty() && random() % 2 == 0) doomed.pop_back();
    }
    for (std::size_t i = 0; i < kRequests; ++i) {
      const auto all = collect(*streams[i], kPatience);
      ASSERT_TRUE(all.has_value()) << all.error().message;
      compare(*all, alone_[i], i);
    }
  }

  static void compare(const Completion& got, const Completion& alone, std::size_t request) {
    ASSERT_EQ(got.answers.size(), alone.answers.size());
    for (std::size_t a = 0; a < got.answers.size(); ++a) {
      SCOPED_TRACE("request " + std::to_string(request) + ", answer " + std::to_string(a));
      const CompletionEvent& one = got.answers[a];
      const CompletionEvent& other = alone.answers[a];
      ASSERT_TRUE(one.finish && other.finish);
      EXPECT_FALSE(one.finish->error) << one.finish->error->message;
      EXPECT_EQ(one.tokens, other.tokens);
      EXPECT_EQ(one.text, other.text);
      EXPECT_EQ(one.finish->reason, other.finish->reason);
      expect_equal(one.logprobs, other.logprobs);
      expect_equal(one.prompt_logprobs, other.prompt_logprobs);
    }
  }

  static inline std::vector<CompletionRequest> requests_;
  static inline std::vector<Completion> alone_;
};

// "temperature 0 answers change with load", "KV cache full → deadlock or endless preemption"
TEST_F(EngineRandomTest, SmallCacheAndSmallChunks) {
  const auto engine = start({.cache_tokens = 192, .max_running = 6, .token_budget = 40, .policy = "priority"});
  run(*engine, 1);
  EXPECT_EQ(engine->drain(kPatience), 0);
  const ServiceStats stats = engine->stats();
  EXPECT_GT(stats.scheduler.preemptions, 0);
  EXPECT_GT(stats.cache.found_tokens, 0);
  for (const kvcache::PoolStats& p : stats.cache.pools) EXPECT_EQ(p.used, 0);
}

TEST_F(EngineRandomTest, LargeCacheWithGuesses) {
  speculation::SpeculatorOptions eager;
  eager.fixed_length = 4;  // also where they do not pay, whatever this machine's clock says
  const auto engine = start({.cache_tokens = 4096, .policy = "fair-share", .speculation = eager});
  run(*engine, 2);
  run(*engine, 3);  // from cached prefixes
  EXPECT_GT(engine->stats().drafted_tokens, 20);
  EXPECT_GT(engine->stats().cache.found_tokens, 100);
}

// A prefix that comes back from disk, also into another process, gives the bits that were computed.
TEST_F(EngineRandomTest, SecondTierAndRestart) {
  const testing::TemporaryFolder folder;
  const auto again = [&] { return start({.cache_tokens = 160, .max_running = 3, .tier_folder = folder.path(), .tier_bytes = 64 << 20}); };
  auto engine = again();
  run(*engine, 4);
  const std::int64_t loaded = engine->stats().cache.loaded_blocks;
  engine.reset();
  engine = again();
  run(*engine, 5);
  EXPECT_EQ(engine->drain(kPatience), 0);
  EXPECT_GT(loaded + engine->stats().cache.loaded_blocks, 0);
}

}  // namespace
}  // namespace weir::engine
