// SPDX-License-Identifier: Apache-2.0
// Threads that submit, read, cancel and drop for a while, with grammars, guesses and several answers: everybody is served, and the
// memory returns to what it was. WEIR_CHURN_SECONDS sets how long (minutes, under the sanitizers), WEIR_CHURN_MODEL on what.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "base/system_memory.h"
#include "base/testing.h"
#include "engine/engine.h"

namespace weir::engine {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;  // freed memory is kept back, shadows grow
#else
constexpr bool kMemoryIsOurs = true;
#endif
constexpr Duration kPatience = std::chrono::seconds(120);
constexpr std::uint64_t kSlack = 24 << 20;  // of an allocator that several threads use

Duration churn_time() {
  const char* asked = std::getenv("WEIR_CHURN_SECONDS");
  return std::chrono::seconds(asked ? std::atoll(asked) : 4);
}

std::filesystem::path model_path() {
  const char* asked = std::getenv("WEIR_CHURN_MODEL");
  return asked ? std::filesystem::path(asked) : testing::data_path("arch/gemma3_text");
}

std::uint64_t memory_now() {
  ::malloc_trim(0);
  return process_memory().anonymous;
}

CompletionRequest wish(std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return random() % bound; };
  CompletionRequest r;
  for (std::size_t i = 0, size = 1 + below(50); i < size; ++i) r.prompt.push_back(static_cast<TokenId>(i < 33 ? 70 + i % 7 : below(256)));
  r.max_tokens = 1 + static_cast<std::int64_t>(below(30));
  if (below(6) == 0) r.answers = 2 + static_cast<std::int32_t>(below(4));
  r.sampling.temperature = below(2) == 0 ? 0.f : 1.f;
  if (below(6) == 0) r.sampling.logprobs = 2;
  if (below(8) == 0) r.prompt_logprobs = 1;
  if (below(8) == 0) r.sampling.stop = {"ab", "e"};
  if (below(10) == 0) r.time_limit = std::chrono::milliseconds(1 + below(20));
  if (below(10) == 0) r.queue_limit = std::chrono::milliseconds(1 + below(20));
  if (below(30) == 0) r.max_tokens = 1 << 20;  // refused
  if (below(5) == 0) {
    const char* texts[] = {"[a-h]{4,20}", "yes, please|no, thank you", "(\\d\\d:){1,4}x"};
    r.grammar = grammar::GrammarSpec{.kind = grammar::GrammarKind::kRegex, .text = texts[below(3)]};
  } else {
    r.ignore_end = below(4) == 0;
  }
  r.tenant = std::string(1, static_cast<char>('a' + below(3)));
  r.priority = static_cast<std::int32_t>(below(3));
  return r;
}

struct Counts {
  std::atomic<std::int64_t> submitted{0}, refused{0}, ended{0}, announced{0};
};

// One client: what it does with each request is random.
void client(Engine& engine, std::uint64_t seed, TimePoint end, Counts& counts) {
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<CompletionStream>> unread;  // read much later, or never
  while (steady_clock().now() < end) {
    ++counts.submitted;
    auto stream = engine.submit(wish(random), [&counts] { ++counts.announced; });
    if (!stream) {
      ++counts.refused;
      continue;
    }
    switch (random() % 6) {
      case 0: break;  // dropped
      case 1: (*stream)->wait(std::chrono::milliseconds(random() % 5)); break;
      case 2:
        unread.push_back(std::move(*stream));
        if (unread.size() > 8) unread.erase(unread.begin());
        break;
      default: {
        if (random() % 4 == 0) (*stream)->cancel();
        const auto all = collect(**stream, kPatience);
        ASSERT_TRUE(all.has_value()) << "a request without an end";
        for (const CompletionEvent& answer : all->answers) ASSERT_TRUE(answer.finish);
        ++counts.ended;
      }
    }
  }
  for (const auto& stream : unread) {
    while (auto event = stream->wait(kPatience)) {
      if (event->last) ++counts.ended;
    }
  }
}

void churn(Engine& engine, Duration time, Counts& counts, std::uint64_t seed) {
  const TimePoint end = steady_clock().now() + time;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { client(engine, seed + t, end, counts); });
  while (steady_clock().now() < end) {  // and somebody who looks
    EXPECT_GE(engine.stats().open_requests, 0);
    engine.drain_cache_events();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 20'000 && engine.stats().open_requests > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(engine.stats().open_requests, 0);
}

// "memory is not given back on unload", "one bad request kills or hangs the server for all"
TEST(EngineChurn, EverybodyIsServedAndTheMemoryIsGivenBack) {
  const testing::TemporaryFolder folder;
  LoadedModel loaded = load_model(model_path(), {.threads = 2, .isa = ""}).value();
  const auto start = [&] {
    return Engine::start(loaded, {.cache_tokens = 512,
                                  .max_running = 8,
                                  .max_waiting = 16,
                                  .token_budget = 64,
                                  .policy = "priority",
                                  .tier_folder = folder.path(),
                                  .tier_bytes = 1 << 20,
                                  .event_limit = 1000})
        .value();
  };
  Counts counts;
  auto engine = start();
  churn(*engine, churn_time() / 4, counts, 1);  // buffers grow, threads get their arenas
  engine.reset();
  const std::uint64_t unloaded = memory_now();
  engine = start();
  churn(*engine, churn_time() / 4, counts, 10);
  const std::uint64_t before = memory_now();
  churn(*engine, churn_time() / 2, counts, 20);
  const std::uint64_t after = memory_now();
  EXPECT_EQ(engine->drain(kPatience), 0);
  for (const kvcache::PoolStats& p : engine->stats().cache.pools) EXPECT_EQ(p.used, 0);
  const ServiceStats stats = engine->stats();
  EXPECT_EQ(stats.failed_steps, 0);
  engine.reset();
  if (kMemoryIsOurs) {
    EXPECT_LT(after, before + kSlack) << "grows with the requests";
    EXPECT_LT(memory_now(), unloaded + kSlack) << "stays when the engine has gone";
  }
  EXPECT_GT(counts.ended, 20);
  EXPECT_GT(counts.announced, 20);
  EXPECT_GT(stats.scheduler.cancelled, 5);
  RecordProperty("submitted", std::to_string(counts.submitted.load()));
  std::printf(
      "churn: %ld submitted, %ld refused, %ld ended, %ld cancelled, %ld preempted, %ld failed; %.1f -> %.1f MiB, unloaded %.1f -> %.1f\n",
      counts.submitted.load(), counts.refused.load(), counts.ended.load(), static_cast<long>(stats.scheduler.cancelled),
      static_cast<long>(stats.scheduler.preemptions), static_cast<long>(stats.failed), static_cast<double>(before) / (1 << 20),
      static_cast<double>(after) / (1 << 20), static_cast<double>(unloaded) / (1 << 20), static_cast<double>(memory_now()) / (1 << 20));
}

}  // namespace
}  // namespace weir::engine
