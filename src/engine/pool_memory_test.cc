// SPDX-License-Identifier: Apache-2.0
// The books and the memory get the same pools, whatever the budget; the books' operations arrive at the right layers.
#include "engine/pool_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace weir::engine {
namespace {

// Two layers that see all, four with windows of 64; 256 bytes a token and layer.
model::Traits windowed() {
  model::Traits t;
  t.hidden = 64;
  t.attention = {.heads = 4, .kv_heads = 2, .head_dim = 16, .value_dim = 16};
  for (int i = 0; i < 6; ++i) t.layers.push_back({.mixer = model::MixerKind::kAttention, .window = i % 3 == 0 ? 0 : 64});
  return t;
}

// One layer with attention, three with a gated delta rule.
model::Traits hybrid() {
  model::Traits t = windowed();
  t.recurrent = {.conv_taps = 4, .key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 16};
  t.layers.resize(4);
  for (std::size_t i = 1; i < 4; ++i) t.layers[i] = {.mixer = model::MixerKind::kGatedDelta};
  return t;
}

TEST(CacheLayout, BooksAndMemoryHaveTheSamePools) {
  for (const model::Traits& traits : {windowed(), hybrid()}) {
    const auto layout = cache_layout(traits, {.tokens = 10000, .sequences = 4, .step_rows = 128, .kv_type = DType::kBF16});
    ASSERT_TRUE(layout.has_value()) << layout.error().message;
    EXPECT_TRUE(kvcache::check(layout->cache).has_value());
    const model::SequenceMemory memory(traits, layout->memory);
    ASSERT_TRUE(memory.status().has_value()) << memory.status().error().message;
    EXPECT_EQ(memory.bytes(), layout->bytes);
    ASSERT_EQ(static_cast<std::size_t>(memory.groups()), layout->cache.groups.size());
    for (std::int32_t g = 0; g < memory.groups(); ++g) {
      EXPECT_EQ(memory.blocks(g), layout->cache.groups[static_cast<std::size_t>(g)].blocks);
      EXPECT_EQ(memory.window(g), layout->cache.groups[static_cast<std::size_t>(g)].window);
    }
    EXPECT_EQ(memory.state_slots(), layout->cache.state_slots);
    EXPECT_EQ(memory.block_tokens(), layout->cache.block_tokens);
    EXPECT_FALSE(layout->cache.phases_differ);
  }
}

TEST(CacheLayout, GivesEverySequenceItsPartlyFilledBlock) {
  const auto layout = cache_layout(windowed(), {.tokens = 1000, .sequences = 5});
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->memory.blocks[0], 32 + 4);
  EXPECT_EQ(layout->tokens, 36 * 32);
}

TEST(CacheLayout, WindowedLayersGetWhatRunningSequencesSeeAndWriteTwice) {
  CacheBudget budget{.tokens = 1 << 20, .sequences = 3, .step_rows = 100};
  const auto blocks = [&] { return cache_layout(windowed(), budget).value().memory.blocks[1]; };
  // 63 + 100 positions in blocks of 32 lie in seven at most.
  EXPECT_EQ(blocks(), 2 * 3 * 7);
  budget.prefix_cache = false;
  EXPECT_EQ(blocks(), 3 * 7);
  budget.tokens = 64;  // never more than those that see all
  EXPECT_EQ(blocks(), 2 + 2);
}

TEST(CacheLayout, FillsTheBytesItMayTakeAndNoMore) {
  for (const model::Traits& traits : {windowed(), hybrid()}) {
    const std::uint64_t most = 64 << 20;
    const auto layout = cache_layout(traits, {.bytes = most, .sequences = 2, .kv_type = DType::kF16});
    ASSERT_TRUE(layout.has_value()) << layout.error().message;
    EXPECT_LE(layout->bytes, most);
    EXPECT_GT(layout->bytes, most / 100 * 98);
    const auto fewer = cache_layout(traits, {.tokens = 320, .bytes = most, .sequences = 2, .kv_type = DType::kF16});
    EXPECT_EQ(fewer->memory.blocks[0], 11);
  }
}

TEST(CacheLayout, StatesAreForRunningSequencesSnapshotsAndCheckpoints) {
  CacheBudget budget{.tokens = 1 << 20, .sequences = 4, .prefix_cache = false};
  const auto slots = [&] { return cache_layout(hybrid(), budget).value().memory.state_slots; };
  EXPECT_EQ(slots(), 8);
  budget.snapshots = false;
  EXPECT_EQ(slots(), 4);
  budget.prefix_cache = true;  // a checkpoint every 256 positions; one more where a prompt ends
  EXPECT_EQ(slots(), 4 + (32768 + 3 + 7) / 8 + 4);
}

TEST(CacheLayout, StatesTakeNoMoreThanKeysAndValues) {
  model::Traits traits = hybrid();
  traits.recurrent.key_dim = traits.recurrent.value_dim = 128;
  const CacheBudget budget{.tokens = 100000, .sequences = 2, .snapshots = false, .kv_type = DType::kF32};
  const auto layout = cache_layout(traits, budget);
  ASSERT_TRUE(layout.has_value());
  const std::uint64_t states = static_cast<std::uint64_t>(layout->memory.state_slots) * model::SequenceMemory::bytes_per_state(traits);
  const std::uint64_t running = 2 * model::SequenceMemory::bytes_per_state(traits);
  EXPECT_LE(states - running, layout->bytes - states);
  EXPECT_GE(layout->memory.state_slots, 4);
}

TEST(CacheLayout, RefusesBudgetsThatMakeNoSense) {
  const auto code = [](const CacheBudget& budget) {
    const auto layout = cache_layout(windowed(), budget);
    return layout ? ErrorCode::kInternal : layout.error().code;
  };
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.tokens = -1}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.tokens = 100, .sequences = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.tokens = 100, .block_tokens = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.tokens = 100, .kv_type = DType::kQ4_0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.bytes = 1000}), ErrorCode::kExhausted);
}

TEST(CacheLayout, HugeNumbersAreCut) {
  const auto layout = cache_layout(windowed(), {.tokens = INT64_MAX, .sequences = 65536});
  ASSERT_TRUE(layout.has_value()) << layout.error().message;
  EXPECT_TRUE(kvcache::check(layout->cache).has_value());
}

struct Example {
  model::Traits traits = hybrid();
  CacheLayout layout = cache_layout(traits, {.tokens = 128, .sequences = 1, .kv_type = DType::kBF16}).value();
  model::SequenceMemory memory{traits, layout.memory};
  PoolMemory pools{memory};
};

TEST(PoolMemory, PoolsAreTheGroupsThenTheStates) {
  const Example e;
  EXPECT_EQ(e.pools.pool_bytes(), (std::vector<std::uint64_t>{e.memory.block_bytes(0), e.memory.state_bytes()}));
  EXPECT_EQ(e.pools.bytes_of(0), 32u * 2 * 2 * 16 * 2);
  EXPECT_EQ(e.pools.bytes_of(1), 3u * 4 * (3 * (2 * 32 + 64) + 4 * 16 * 16));
}

TEST(PoolMemory, WhatWasReadComesBackWhereItIsWritten) {
  Example e;
  for (const std::int32_t pool : {0, 1}) {
    std::vector<std::byte> bytes(e.pools.bytes_of(pool)), found(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + 5);
    e.pools.write(pool, 1, bytes);
    e.pools.read(pool, 1, found);
    EXPECT_EQ(found, bytes);
    e.pools.read(pool, 0, found);
    EXPECT_TRUE(std::ranges::all_of(found, [](std::byte b) { return b == std::byte(0); }));
  }
}

TEST(PoolMemory, CopiesStatesAndClearsThem) {
  Example e;
  const std::vector<std::byte> bytes(e.pools.bytes_of(1), std::byte(0x3f));
  std::vector<std::byte> found(bytes.size());
  e.pools.write(1, 0, bytes);
  e.pools.copy(1, 0, 2, 0);
  e.pools.clear(1, 0);
  e.pools.read(1, 2, found);
  EXPECT_EQ(found, bytes);
  e.pools.read(1, 0, found);
  EXPECT_TRUE(std::ranges::all_of(found, [](std::byte b) { return b == std::byte(0); }));
}

// Sixteen positions lie interleaved: of each head the tiles that hold the first positions come along, nothing behind them.
TEST(PoolMemory, CopiesTheFirstPositionsOfABlock) {
  Example e;
  e.pools.write(0, 0, std::vector<std::byte>(e.pools.bytes_of(0), std::byte(0x3f)));
  e.pools.copy(0, 0, 1, 10);
  const kernels::KvLayer& layer = e.memory.kv(0);
  const std::size_t tile = 16 * 16 * 2, head = 2 * tile;
  for (const std::byte* side : {layer.keys, layer.values}) {
    const std::byte* block = side + layer.block_stride;
    for (std::size_t h = 0; h < 2; ++h) {
      EXPECT_EQ(block[h * head], std::byte(0x3f));
      EXPECT_EQ(block[h * head + tile - 1], std::byte(0x3f));
      EXPECT_EQ(block[h * head + tile], std::byte(0));
      EXPECT_EQ(block[h * head + head - 1], std::byte(0));
    }
  }
}

}  // namespace
}  // namespace weir::engine
