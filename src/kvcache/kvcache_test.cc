// SPDX-License-Identifier: Apache-2.0
// Blocks, slots and block tables: exact accounting, sharing, and copies that keep what other sequences see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "kvcache/block_allocator.h"
#include "kvcache/sequence_blocks.h"
#include "kvcache/state_slots.h"

namespace weir::kvcache {
namespace {

using ::testing::ElementsAre;

std::vector<BlockId> table(const SequenceBlocks& sequence) { return {sequence.blocks().begin(), sequence.blocks().end()}; }

TEST(BlockAllocator, HandsOutEachBlockOnceAndThenSaysWhatRanOut) {
  BlockAllocator blocks(3, 16);
  std::set<BlockId> seen;
  for (int i = 0; i < 3; ++i) seen.insert(blocks.allocate().value());
  EXPECT_EQ(seen, (std::set{BlockId(0), BlockId(1), BlockId(2)}));
  EXPECT_EQ(blocks.available(), 0);
  const auto refused = blocks.allocate();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(refused.error().message, "all 3 KV cache blocks are in use");
}

TEST(BlockAllocator, FreesABlockWithItsLastReferenceAndReusesItFirst) {
  BlockAllocator blocks(4, 16);
  const BlockId block = blocks.allocate().value();
  blocks.add_reference(block);
  EXPECT_TRUE(blocks.shared(block));
  EXPECT_FALSE(blocks.release(block));
  EXPECT_EQ(blocks.used(), 1);
  EXPECT_TRUE(blocks.release(block));
  EXPECT_EQ(blocks.used(), 0);
  EXPECT_EQ(blocks.references(block), 0);
  EXPECT_EQ(blocks.allocate().value(), block);
}

TEST(BlockAllocatorDeathTest, CatchesUseOfAFreeOrUnknownBlock) {
  BlockAllocator blocks(2, 16);
  const BlockId block = blocks.allocate().value();
  blocks.release(block);
  EXPECT_DEATH(blocks.release(block), "is free");
  EXPECT_DEATH(blocks.add_reference(BlockId(1)), "is free");
  EXPECT_DEATH(blocks.references(BlockId(2)), "id 2 of 2");
  EXPECT_DEATH(blocks.references(BlockId()), "id -1 of 2");
}

TEST(StateSlots, NamesItselfWhenItRunsOut) {
  StateSlots slots(1);
  const StateSlot slot = slots.allocate().value();
  EXPECT_EQ(slots.allocate().error().message, "all 1 recurrent state slots are in use");
  slots.release(slot);
  EXPECT_TRUE(slots.allocate());
}

TEST(SequenceBlocks, TakesABlockOnlyWhenATokenNeedsIt) {
  BlockAllocator blocks(8, 4);
  SequenceBlocks sequence(blocks);
  EXPECT_EQ(sequence.grow(1).value(), std::nullopt);
  EXPECT_EQ(blocks.used(), 1);
  ASSERT_TRUE(sequence.grow(4));
  EXPECT_EQ(blocks.used(), 1);
  ASSERT_TRUE(sequence.grow(9));
  EXPECT_THAT(table(sequence), ElementsAre(BlockId(0), BlockId(1), BlockId(2)));
  ASSERT_TRUE(sequence.grow(2));  // never shrinks
  EXPECT_EQ(sequence.tokens(), 9);
  sequence.free();
  EXPECT_EQ(blocks.used(), 0);
  EXPECT_EQ(sequence.tokens(), 0);
}

TEST(SequenceBlocks, RefusesToGrowWithoutTakingAnything) {
  BlockAllocator blocks(3, 4);
  SequenceBlocks first(blocks), second(blocks);
  ASSERT_TRUE(first.grow(8));
  const auto refused = second.grow(5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(refused.error().message, "2 more KV cache blocks are needed for 5 tokens, and 1 of 3 are free");
  EXPECT_EQ(blocks.used(), 2);
  EXPECT_TRUE(second.blocks().empty());
  EXPECT_TRUE(second.grow(4));
}

TEST(SequenceBlocks, ForkSharesBlocksAndTheFirstWriterCopiesThePartialOne) {
  BlockAllocator blocks(8, 4);
  SequenceBlocks parent(blocks);
  ASSERT_TRUE(parent.grow(6));
  SequenceBlocks child = parent.fork();
  EXPECT_EQ(blocks.used(), 2);
  EXPECT_EQ(child.tokens(), 6);

  EXPECT_EQ(child.blocks_to_grow(7), 1);
  EXPECT_EQ(child.grow(7).value(), (BlockCopy{BlockId(1), BlockId(2), 2}));
  EXPECT_THAT(table(child), ElementsAre(BlockId(0), BlockId(2)));
  EXPECT_EQ(parent.blocks_to_grow(7), 0);
  EXPECT_EQ(parent.grow(7).value(), std::nullopt);  // it holds that block alone by now
  EXPECT_THAT(table(parent), ElementsAre(BlockId(0), BlockId(1)));
  EXPECT_TRUE(blocks.shared(BlockId(0)));
}

TEST(SequenceBlocks, ForkAtABlockBorderNeedsNoCopy) {
  BlockAllocator blocks(8, 4);
  SequenceBlocks parent(blocks);
  ASSERT_TRUE(parent.grow(8));
  SequenceBlocks child = parent.fork();
  EXPECT_EQ(child.grow(9).value(), std::nullopt);
  EXPECT_EQ(parent.grow(9).value(), std::nullopt);
  EXPECT_EQ(blocks.used(), 4);
}

TEST(SequenceBlocks, GrowingByNothingCopiesNothing) {
  BlockAllocator blocks(2, 4);
  SequenceBlocks parent(blocks);
  ASSERT_TRUE(parent.grow(3));
  SequenceBlocks child = parent.fork();
  EXPECT_EQ(child.grow(3).value(), std::nullopt);
  EXPECT_EQ(blocks.used(), 1);
}

TEST(SequenceBlocks, CountsTheCopyWhenItDecidesWhetherThereIsRoom) {
  BlockAllocator blocks(2, 4);
  SequenceBlocks parent(blocks);
  ASSERT_TRUE(parent.grow(3));
  SequenceBlocks child = parent.fork();
  EXPECT_EQ(child.grow(5).error().code, ErrorCode::kExhausted);  // a copy and a new block, one is free
  EXPECT_EQ(table(child), table(parent));
  EXPECT_TRUE(child.grow(4));
}

TEST(SequenceBlocks, MovedFromTablesOwnNothing) {
  BlockAllocator blocks(4, 4);
  {
    SequenceBlocks first(blocks);
    ASSERT_TRUE(first.grow(5));
    SequenceBlocks second = std::move(first);
    SequenceBlocks third(blocks);
    ASSERT_TRUE(third.grow(4));
    third = std::move(second);
    EXPECT_EQ(blocks.used(), 2);
    EXPECT_EQ(third.tokens(), 5);
  }
  EXPECT_EQ(blocks.used(), 0);
}

// A model of the cache's memory: each sequence writes its own number to the positions it appends, does the copies that grow()
// asks for, and must read back exactly what it (or its ancestor before the fork) wrote, whatever the others did since.
class RandomOperations {
 public:
  explicit RandomOperations(std::uint64_t seed) : random_(seed), blocks_(kBlocks, kBlockTokens), memory_(kBlocks * kBlockTokens, -1) {}

  void step() {
    switch (below(10)) {
      case 0: sequences_.emplace_back(SequenceBlocks(blocks_), std::vector<int>{}); break;
      case 1:
      case 2:
        if (!sequences_.empty()) fork(below(sequences_.size()));
        break;
      case 3:
        if (!sequences_.empty()) sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(below(sequences_.size())));
        break;
      default:
        if (!sequences_.empty()) append(sequences_[below(sequences_.size())], 1 + below(2 * kBlockTokens));
    }
  }

  void check() const {
    std::map<BlockId, int> holders;
    for (const auto& [sequence, expected] : sequences_) {
      ASSERT_EQ(sequence.tokens(), static_cast<std::int64_t>(expected.size()));
      ASSERT_EQ(static_cast<std::int64_t>(sequence.blocks().size()), blocks_.blocks_for(sequence.tokens()));
      for (BlockId block : sequence.blocks()) ++holders[block];
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(memory_[cell(sequence, i)], expected[i]);
    }
    ASSERT_EQ(blocks_.used(), static_cast<std::int32_t>(holders.size()));
    for (const auto& [block, count] : holders) ASSERT_EQ(blocks_.references(block), count);
  }

  int refusals() const { return refusals_; }
  int copies() const { return copies_; }
  void clear() { sequences_.clear(); }
  std::int32_t used() const { return blocks_.used(); }

 private:
  using Sequence = std::pair<SequenceBlocks, std::vector<int>>;  // the table and what its positions must hold
  static constexpr std::int32_t kBlocks = 24, kBlockTokens = 4;

  std::size_t below(std::size_t bound) { return random_() % bound; }

  static std::size_t cell(const SequenceBlocks& sequence, std::size_t position) {
    const BlockId block = sequence.blocks()[position / kBlockTokens];
    return static_cast<std::size_t>(block.value) * kBlockTokens + position % kBlockTokens;
  }

  void fork(std::size_t index) {
    Sequence copy(sequences_[index].first.fork(), sequences_[index].second);
    sequences_.push_back(std::move(copy));
  }

  void append(Sequence& target, std::size_t count) {
    auto& [sequence, expected] = target;
    const std::int64_t needed = sequence.blocks_to_grow(sequence.tokens() + static_cast<std::int64_t>(count));
    const std::int32_t available = blocks_.available();
    const std::vector<BlockId> before = table(sequence);
    const auto grown = sequence.grow(sequence.tokens() + static_cast<std::int64_t>(count));
    ASSERT_EQ(grown.has_value(), needed <= available);
    if (!grown) {
      ++refusals_;
      ASSERT_EQ(table(sequence), before);
      return;
    }
    ASSERT_EQ(blocks_.available(), available - needed);
    if (*grown) copy(**grown);
    for (std::size_t i = 0; i < count; ++i) {
      expected.push_back(next_value_++);
      ASSERT_FALSE(blocks_.shared(sequence.blocks()[(expected.size() - 1) / kBlockTokens]));
      memory_[cell(sequence, expected.size() - 1)] = expected.back();
    }
  }

  void copy(const BlockCopy& copy) {
    ++copies_;
    const auto from = memory_.begin() + copy.from.value * kBlockTokens;
    std::copy(from, from + copy.tokens, memory_.begin() + copy.to.value * kBlockTokens);
  }

  std::mt19937_64 random_;
  BlockAllocator blocks_;
  std::vector<int> memory_;
  std::vector<Sequence> sequences_;
  int next_value_ = 0, refusals_ = 0, copies_ = 0;
};

TEST(SequenceBlocks, EverySequenceReadsWhatItWroteUnderRandomOperations) {
  int refusals = 0, copies = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RandomOperations run(seed);
    for (int i = 0; i < 200; ++i) {
      ASSERT_NO_FATAL_FAILURE(run.step()) << "seed " << seed << ", step " << i;
      ASSERT_NO_FATAL_FAILURE(run.check()) << "seed " << seed << ", step " << i;
    }
    refusals += run.refusals();
    copies += run.copies();
    run.clear();
    EXPECT_EQ(run.used(), 0) << "seed " << seed;
  }
  EXPECT_GT(refusals, 100);  // the run met the cases it is about
  EXPECT_GT(copies, 100);
}

}  // namespace
}  // namespace weir::kvcache
