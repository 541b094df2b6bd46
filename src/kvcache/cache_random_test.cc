// SPDX-License-Identifier: Apache-2.0
// Random operations on caches of every kind, against a memory that notices each wrong, stale or missing content.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "kvcache/test_memory.h"

namespace weir::kvcache {
namespace {

class RandomCache {
 public:
  RandomCache(const CacheOptions& options, std::uint64_t seed) : options_(options), random_(seed), cache_(options), memory_(options) {}

  void step() {
    memory_.begin_step();
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        if (live_.size() > 3) end();  // or else they would block one another most of the time
        start();
        break;
      case 3: end(); break;
      case 4: fork(); break;
      case 5: roll_back(); break;
      case 6: guess(); break;
      default:
        if (!live_.empty()) advance(*live_[below(live_.size())]);
    }
  }

  void check() const {
    const CacheStats stats = cache_.stats();
    for (std::size_t pool = 0; pool < stats.pools.size(); ++pool) {
      const PoolStats& p = stats.pools[pool];
      ASSERT_EQ(p.used + p.cached + p.free, p.capacity);
      ASSERT_TRUE(!live_.empty() || p.used == 0);
    }
  }

  void finish() {
    live_.clear();
    check();
    cache_.clear();
    EXPECT_EQ(cache_.stats().nodes, 0);
    for (const PoolStats& p : cache_.stats().pools) EXPECT_EQ(p.free, p.capacity);
  }
  std::int64_t found() const { return cache_.stats().found_tokens; }
  std::int64_t evicted() const { return cache_.stats().evicted; }

 private:
  struct Live {
    explicit Live(Cache& cache) : memory(cache) {}
    SequenceCache memory;
    std::vector<TokenId> tokens;
    std::int64_t prompt = 0;
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }
  TokenId token() { return static_cast<TokenId>(below(2)); }  // prompts often begin alike

  void start() {
    auto live = std::make_unique<Live>(cache_);
    live->prompt = 1 + static_cast<std::int64_t>(below(30));
    for (std::int64_t i = 0; i < live->prompt; ++i) live->tokens.push_back(i < 20 ? 1 : token());
    if (cache_.open(live->memory, live->tokens, live->prompt, below(4) == 0 ? "a" : "b")) live_.push_back(std::move(live));
  }

  void end() {
    if (!live_.empty()) live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(below(live_.size())));
  }

  void fork() {
    if (live_.empty()) return;
    Live& parent = *live_[below(live_.size())];
    auto child = std::make_unique<Live>(cache_);
    child->tokens = parent.tokens;
    child->prompt = parent.prompt;
    if (cache_.fork(parent.memory, child->memory)) live_.push_back(std::move(child));
  }

  void roll_back() {
    if (live_.empty()) return;
    Live& l = *live_[below(live_.size())];
    if (l.memory.computed() == 0) return;
    cache_.rollback(l.memory, l.tokens, static_cast<std::int64_t>(below(static_cast<std::size_t>(l.memory.computed()))));
    if (const auto keep = static_cast<std::size_t>(std::max(l.memory.computed(), l.prompt)); l.tokens.size() > keep) l.tokens.resize(keep);
  }

  // Some rows, prompt first; then decode rows of random tokens.
  void advance(Live& l) { run(l, 1 + static_cast<std::int64_t>(below(9)), false); }

  void guess() {
    if (!live_.empty()) run(*live_[below(live_.size())], 1 + static_cast<std::int64_t>(below(6)), true);
  }

  void run(Live& l, std::int64_t rows, bool take_back) {
    const std::int64_t first = l.memory.computed();
    if (first > 60) return;
    std::int64_t to = std::min({first + rows, cache_.next_checkpoint(l.memory, first), cache_.reach(l.memory)});
    if (first < l.prompt) to = std::min(to, l.prompt);
    if (to <= first) return;
    if (take_back && !cache_.keep_state(l.memory)) take_back = false;
    while (static_cast<std::int64_t>(l.tokens.size()) < to) l.tokens.push_back(token());
    cache_.grow(l.memory, to);
    std::vector<MemoryOp> ops;
    cache_.take_ops(ops);
    apply(ops, memory_, nullptr);
    memory_.run(l.memory, std::span(l.tokens).first(static_cast<std::size_t>(to)), l.prompt, first);
    const std::int64_t end = take_back ? first + static_cast<std::int64_t>(below(static_cast<std::size_t>(to - first + 1))) : to;
    if (end >= l.prompt) l.tokens.resize(static_cast<std::size_t>(end));
    cache_.commit(l.memory, l.tokens, end);
  }

  CacheOptions options_;
  std::mt19937_64 random_;
  Cache cache_;
  TestMemory memory_;
  std::vector<std::unique_ptr<Live>> live_;
};

void run_kind(const CacheOptions& options) {
  std::int64_t found = 0, evicted = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RandomCache run(options, seed);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_NO_FATAL_FAILURE(run.step()) << "seed " << seed << ", step " << i;
      ASSERT_NO_FATAL_FAILURE(run.check()) << "seed " << seed << ", step " << i;
    }
    found += run.found();
    evicted += run.evicted();
    run.finish();
  }
  EXPECT_GT(found, 20'000);  // the runs met the cases they are about
  EXPECT_GT(evicted, 1000);
}

CacheOptions kind(std::vector<GroupLayout> groups, std::int32_t slots, bool phases_differ) {
  CacheOptions options;
  options.block_tokens = 4;
  options.groups = std::move(groups);
  options.state_slots = slots;
  options.checkpoint_blocks = 2;
  options.phases_differ = phases_differ;
  options.event_limit = 50;
  return options;
}

TEST(RandomCache, FullAttention) { run_kind(kind({{40, 0}}, 0, true)); }
TEST(RandomCache, FullAndWindowedLayers) { run_kind(kind({{60, 0}, {30, 7}}, 0, false)); }
TEST(RandomCache, WindowedLayersOnly) { run_kind(kind({{24, 9}}, 0, true)); }
TEST(RandomCache, RecurrentLayersOnly) { run_kind(kind({}, 12, true)); }
TEST(RandomCache, HybridOfAllKinds) { run_kind(kind({{60, 0}, {30, 6}}, 14, true)); }

}  // namespace
}  // namespace weir::kvcache
