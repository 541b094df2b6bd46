// SPDX-License-Identifier: Apache-2.0
// Prefixes: what is found again, what is not, what gives way, and the events that tell of it.
#include "kvcache/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kvcache/test_memory.h"

namespace weir::kvcache {
namespace {

using ::testing::ElementsAre;
using Kind = CacheEvent::Kind;

std::vector<TokenId> counting(TokenId first, std::size_t count) {
  std::vector<TokenId> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

CacheOptions blocks_of_4(std::int32_t blocks, std::int32_t window = 0) {
  CacheOptions options;
  options.block_tokens = 4;
  options.groups = {{blocks, window}};
  return options;
}

CacheOptions recurrent_only(std::int32_t slots) {
  CacheOptions options;
  options.block_tokens = 4;
  options.state_slots = slots;
  options.checkpoint_blocks = 2;
  return options;
}

// A cache with a memory that is checked at every step.
struct Bench {
  explicit Bench(const CacheOptions& options) : cache(options), memory(options) {}

  std::int64_t start(SequenceCache& s, std::span<const TokenId> tokens, std::int64_t prompt, std::string_view salt = "") {
    EXPECT_TRUE(cache.open(s, tokens, prompt, salt));
    return s.computed();
  }
  // Runs rows up to `end` as the scheduler would, in pieces that end where states are kept.
  void run(SequenceCache& s, std::span<const TokenId> tokens, std::int64_t prompt, std::int64_t end) {
    while (s.computed() < end) {
      const std::int64_t to = std::min(end, cache.next_checkpoint(s, s.computed()));
      cache.grow(s, to);
      forward(s, tokens, prompt, to);
      cache.commit(s, tokens, to);
    }
  }
  void forward(SequenceCache& s, std::span<const TokenId> tokens, std::int64_t prompt, std::int64_t to) {
    apply_ops();
    memory.begin_step();
    memory.run(s, tokens.first(static_cast<std::size_t>(to)), prompt, s.computed());
  }
  void apply_ops() {
    std::vector<MemoryOp> ops;
    cache.take_ops(ops);
    apply(ops, memory, cache.options().tier);
  }
  // A whole request: opened, run to its end, closed. What it found.
  std::int64_t serve(std::span<const TokenId> tokens, std::string_view salt = "", std::int64_t prompt = -1) {
    SequenceCache s(cache);
    if (prompt < 0) prompt = static_cast<std::int64_t>(tokens.size());
    const std::int64_t found = start(s, tokens, prompt, salt);
    run(s, tokens, prompt, static_cast<std::int64_t>(tokens.size()));
    return found;
  }

  Cache cache;
  TestMemory memory;
};

TEST(PrefixCache, GivesWholeBlocksButNeverTheLastToken) {
  Bench b(blocks_of_4(16));
  const auto prompt = counting(100, 12);
  EXPECT_EQ(b.serve(prompt), 0);
  EXPECT_EQ(b.serve(prompt), 8);  // the third block holds the last token, whose logits are wanted
  EXPECT_EQ(b.serve(counting(100, 13)), 12);
  EXPECT_EQ(b.serve(counting(100, 7)), 4);
  EXPECT_EQ(b.serve(counting(101, 12)), 0);
  auto other = prompt;
  other[5] = 7;
  EXPECT_EQ(b.serve(other), 4);
  EXPECT_EQ(b.cache.stats().pools[0].used, 0);
}

TEST(PrefixCache, KeepsTenantsApart) {
  Bench b(blocks_of_4(16));
  const auto prompt = counting(1, 9);
  b.serve(prompt, "tenant a");
  EXPECT_EQ(b.serve(prompt, "tenant b"), 0);
  EXPECT_EQ(b.serve(prompt, ""), 0);
  EXPECT_EQ(b.serve(prompt, "tenant a"), 8);
}

TEST(PrefixCache, LooksForNothingWhenAllRowsMustRun) {
  Bench b(blocks_of_4(16));
  const auto prompt = counting(1, 9);
  b.serve(prompt);
  SequenceCache s(b.cache);
  ASSERT_TRUE(b.cache.open(s, prompt, 9, "", false));
  EXPECT_EQ(s.computed(), 0);
  b.run(s, prompt, 9, 9);
}

// The hash function has a sink: when a step's input cancels the state, the rest no longer depends on what came before. Blocks
// that collide are made from that.
std::vector<TokenId> block_with_hash_of_zero_state(BlockHash parent, TokenId first) {
  std::vector<TokenId> tokens = {first, 5, 0, 0};
  const BlockHash before = block_hash(parent, std::span(tokens).first(2), 4);
  const std::uint64_t cancel = before ^ 0x8ebc6af09c88c6e3;
  tokens[2] = static_cast<TokenId>(static_cast<std::uint32_t>(cancel));
  tokens[3] = static_cast<TokenId>(static_cast<std::uint32_t>(cancel >> 32));
  return tokens;
}

TEST(PrefixCache, ACollisionOfHashesIsNoHit) {
  Bench b(blocks_of_4(16));
  auto one = block_with_hash_of_zero_state(root_hash(""), 1), other = block_with_hash_of_zero_state(root_hash(""), 2);
  ASSERT_EQ(block_hash(root_hash(""), one, 4), block_hash(root_hash(""), other, 4));
  ASSERT_NE(one, other);
  one.push_back(9);
  other.push_back(9);
  b.serve(one);
  EXPECT_EQ(b.serve(other), 0);
  EXPECT_EQ(b.serve(other), 0);  // its place is taken: it is not stored, and nothing breaks
  EXPECT_EQ(b.serve(one), 4);
}

TEST(PrefixCache, GivesUpTheLeastRecentlyUsedAndTheEndsOfPromptsBeforeTheirBeginnings) {
  Bench b(blocks_of_4(6));
  const auto old = counting(0, 13), recent = counting(500, 13);  // 3 whole blocks each, and a partial one
  b.serve(old);
  b.serve(recent);  // needs 4 of 6: two of the old ones go, from the end
  EXPECT_EQ(b.cache.stats().evicted, 1);
  SequenceCache s(b.cache);
  EXPECT_EQ(b.start(s, old, 13), 8);
  b.cache.close(s);
  EXPECT_EQ(b.start(s, recent, 13), 12);
}

TEST(PrefixCache, CountsEachBlockAsUsedCachedOrFree) {
  Bench b(blocks_of_4(8));
  const auto prompt = counting(1, 10);
  SequenceCache s(b.cache);
  b.start(s, prompt, 10);
  b.run(s, prompt, 10, 10);
  auto pool = b.cache.stats().pools[0];
  EXPECT_THAT(std::vector({pool.used, pool.cached, pool.free}), ElementsAre(3, 0, 5));
  b.cache.close(s);
  pool = b.cache.stats().pools[0];
  EXPECT_THAT(std::vector({pool.used, pool.cached, pool.free}), ElementsAre(0, 2, 6));
  EXPECT_EQ(b.cache.slack({}), 8);
  b.cache.clear();
  pool = b.cache.stats().pools[0];
  EXPECT_THAT(std::vector({pool.used, pool.cached, pool.free}), ElementsAre(0, 0, 8));
  EXPECT_EQ(b.cache.stats().nodes, 0);
  EXPECT_EQ(b.serve(prompt), 0);
}

TEST(PrefixCache, StoresNothingThatAStaleSequenceComputedAfterClear) {
  Bench b(blocks_of_4(8));
  const auto prompt = counting(1, 12);
  SequenceCache s(b.cache);
  b.start(s, prompt, 12);
  b.run(s, prompt, 12, 6);
  b.cache.clear();
  b.run(s, prompt, 12, 12);
  b.cache.close(s);
  EXPECT_EQ(b.cache.stats().pools[0].cached, 0);
}

TEST(PrefixCache, AnAnswersBlocksServeAPromptOnlyWhereThePhasesGiveTheSameBits) {
  const auto turn = counting(1, 12), next = counting(1, 20);  // a prompt of 6, its answer, and the next prompt with both
  Bench differ(blocks_of_4(16));
  differ.serve(turn, "", 6);
  EXPECT_EQ(differ.serve(next), 4);
  EXPECT_EQ(differ.serve(turn, "", 6), 8);  // resumed after a preemption: the same phases
  CacheOptions options = blocks_of_4(16);
  options.phases_differ = false;
  Bench same(options);
  same.serve(turn, "", 6);
  EXPECT_EQ(same.serve(next), 12);
}

TEST(PrefixCache, ForksShareAndCopyOnWrite) {
  Bench b(blocks_of_4(16));
  auto tokens = counting(1, 10);
  SequenceCache parent(b.cache), child(b.cache);
  b.start(parent, tokens, 6);
  b.run(parent, tokens, 6, 7);
  ASSERT_TRUE(b.cache.fork(parent, child));
  auto others = tokens;
  others[7] = 50;
  b.run(parent, tokens, 6, 10);
  b.run(child, others, 6, 10);
  EXPECT_EQ(b.cache.stats().copied_blocks, 1);
  EXPECT_EQ(parent.table(0)[0], child.table(0)[0]);
  EXPECT_NE(parent.table(0)[1], child.table(0)[1]);
}

TEST(PrefixCache, TakesBackRowsWithoutTouchingWhatIsStored) {
  Bench b(blocks_of_4(16));
  auto tokens = counting(1, 12);
  SequenceCache s(b.cache);
  b.start(s, tokens, 4);
  b.run(s, tokens, 4, 5);
  b.cache.grow(s, 9);  // four guesses
  b.forward(s, tokens, 4, 9);
  b.cache.commit(s, tokens, 6);  // one of them right
  EXPECT_EQ(s.computed(), 6);
  EXPECT_EQ(s.table(0).size(), 2u);
  tokens[6] = 77;
  b.run(s, tokens, 4, 12);
  b.cache.rollback(s, tokens, 6);  // into a block that is stored by now: the next row copies it
  tokens[6] = 78;
  b.run(s, tokens, 4, 12);
  EXPECT_EQ(b.cache.stats().copied_blocks, 1);
  b.cache.close(s);
  tokens[6] = 77;
  EXPECT_EQ(b.serve(tokens, "", 4), 8);
}

TEST(WindowedLayers, GiveBackWhatNoRowCanSee) {
  CacheOptions options = blocks_of_4(16);
  options.groups.push_back({6, 5});
  Bench b(options);
  const auto tokens = counting(1, 40);
  SequenceCache s(b.cache);
  b.start(s, tokens, 40);
  for (std::int64_t end = 4; end <= 40; end += 4) b.run(s, tokens, 40, end);
  EXPECT_EQ(b.cache.held(s, 0), 10);
  EXPECT_EQ(b.cache.held(s, 1), 1);  // a row at 40 sees 36 to 40
  EXPECT_FALSE(s.table(1)[8].valid());
  EXPECT_TRUE(s.table(1)[9].valid());
  EXPECT_EQ(b.cache.demand(1, 1000), 3);
}

TEST(WindowedLayers, AHitNeedsOnlyTheBlocksInsideTheWindow) {
  CacheOptions options = blocks_of_4(16);
  options.groups.push_back({5, 5});
  Bench b(options);
  const auto tokens = counting(1, 33);
  SequenceCache s(b.cache);
  b.start(s, tokens, 33);
  for (std::int64_t end = 4; end <= 32; end += 4) b.run(s, tokens, 33, end);
  b.run(s, tokens, 33, 33);
  b.cache.close(s);  // the windowed pool has 5 blocks: the first ones are long overwritten
  EXPECT_EQ(b.start(s, tokens, 33), 32);
  EXPECT_FALSE(s.table(1)[6].valid());
  EXPECT_TRUE(s.table(1)[7].valid());
  b.run(s, tokens, 33, 33);
  b.cache.close(s);
  EXPECT_EQ(b.start(s, counting(1, 6), 6), 0);  // the full layers know these, the windowed ones do not
}

TEST(RecurrentLayers, AreFoundWhereAStateWasKept) {
  Bench b(recurrent_only(8));
  const auto tokens = counting(1, 23);
  SequenceCache s(b.cache);
  b.start(s, tokens, 23);
  EXPECT_EQ(b.cache.next_checkpoint(s, 0), 8);
  EXPECT_EQ(b.cache.next_checkpoint(s, 16), 20);  // the last border inside the prompt
  EXPECT_EQ(b.cache.next_checkpoint(s, 20), 24);
  b.run(s, tokens, 23, 23);
  b.cache.close(s);
  EXPECT_EQ(b.cache.stats().pools[0].cached, 3);
  EXPECT_EQ(b.serve(tokens), 20);
  EXPECT_EQ(b.serve(counting(1, 19)), 16);
  EXPECT_EQ(b.serve(counting(1, 8)), 0);  // nobody kept the state after 4
  EXPECT_EQ(b.serve(counting(1, 7)), 4);
}

TEST(RecurrentLayers, ForkAndTakeBackRowsFromTheStateThatWasKept) {
  Bench b(recurrent_only(4));
  auto tokens = counting(1, 12);
  SequenceCache parent(b.cache), child(b.cache);
  b.start(parent, tokens, 4);
  b.run(parent, tokens, 4, 5);
  ASSERT_TRUE(b.cache.fork(parent, child));
  EXPECT_NE(parent.state(), child.state());

  ASSERT_TRUE(b.cache.keep_state(parent));
  b.cache.grow(parent, 8);
  b.forward(parent, tokens, 4, 8);
  b.cache.commit(parent, tokens, 6);
  EXPECT_EQ(parent.computed(), 5);  // the state after 6 is nowhere: that row runs again
  tokens[7] = 99;
  b.run(parent, tokens, 4, 10);
  b.run(child, counting(1, 12), 4, 12);
  b.cache.rollback(parent, tokens, 9);
  EXPECT_EQ(parent.computed(), 8);  // the nearest that was kept
  b.run(parent, tokens, 4, 12);
}

TEST(RecurrentLayers, TheOnlySlotLeftMayBeTheOneThatWasFound) {
  Bench b(recurrent_only(2));
  const auto tokens = counting(1, 6);
  SequenceCache one(b.cache), two(b.cache), three(b.cache);
  b.start(one, tokens, 6);
  b.run(one, tokens, 6, 6);
  EXPECT_EQ(b.start(two, tokens, 6), 4);  // takes the kept state itself
  b.run(two, tokens, 6, 6);
  EXPECT_FALSE(b.cache.open(three, tokens, 6, ""));
  EXPECT_FALSE(three.is_open());
}

TEST(CacheEvents, TellWhatIsStoredAndRemovedWithHashesThatARouterComputesToo) {
  CacheOptions options = blocks_of_4(3);
  options.event_limit = 100;
  Bench b(options);
  b.serve(counting(10, 9), "t");
  auto events = b.cache.drain_events();
  ASSERT_EQ(events.size(), 2u);
  const BlockHash first = block_hash(root_hash("t"), counting(10, 4), 4), second = block_hash(first, counting(14, 4), 4);
  EXPECT_EQ(events[0].kind, Kind::kStored);
  EXPECT_EQ(events[0].hash, first);
  EXPECT_EQ(events[0].parent, root_hash("t"));
  EXPECT_EQ(events[0].tokens, counting(10, 4));
  EXPECT_EQ(events[1].hash, second);
  EXPECT_EQ(events[1].parent, first);
  b.serve(counting(90, 7), "t");
  events = b.cache.drain_events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, Kind::kRemoved);
  EXPECT_EQ(events[0].hash, second);
  EXPECT_EQ(events[1].kind, Kind::kStored);
  EXPECT_EQ(events[1].number, 3u);
  b.cache.clear();
  events = b.cache.drain_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kCleared);
  EXPECT_FALSE(events[0].resync);
}

TEST(CacheEvents, ASlowFollowerIsToldToStartAgainFromASnapshot) {
  CacheOptions options = blocks_of_4(16);
  options.event_limit = 3;
  Bench b(options);
  b.serve(counting(0, 17));
  b.serve(counting(100, 9));
  const auto events = b.cache.drain_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kCleared);
  EXPECT_TRUE(events[0].resync);
  const auto snapshot = b.cache.snapshot_events();
  ASSERT_EQ(snapshot.size(), 6u);
  std::set<BlockHash> known = {root_hash("")};
  for (const CacheEvent& e : snapshot) {
    EXPECT_TRUE(known.contains(e.parent));  // parents come first
    known.insert(e.hash);
  }
  b.serve(counting(200, 5));
  EXPECT_EQ(b.cache.drain_events().size(), 1u);  // and the stream goes on
}

TEST(BlockHash, IsTheSameInEveryVersion) {
  EXPECT_EQ(root_hash(""), 0xe11fe04f35c129dcull);
  EXPECT_EQ(block_hash(root_hash("tenant"), counting(1, 4), 4), 0xa468b0a180c222dfull);
  EXPECT_NE(block_hash(1, counting(1, 4), 4), block_hash(1, counting(1, 4), 3));
  EXPECT_NE(block_hash(1, counting(1, 3), 4), block_hash(1, counting(1, 4), 4));
}

TEST(CacheOptions, AreCheckedBeforeUse) {
  CacheOptions options = blocks_of_4(16);
  EXPECT_TRUE(check(options));
  options.block_tokens = 0;
  EXPECT_EQ(check(options).error().message, "KV blocks of 0 tokens: 1 to 4096 are possible");
  options = blocks_of_4(-1);
  EXPECT_FALSE(check(options));
  options = recurrent_only(-1);
  EXPECT_FALSE(check(options));
}

}  // namespace
}  // namespace weir::kvcache
