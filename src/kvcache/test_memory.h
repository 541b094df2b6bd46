// SPDX-License-Identifier: Apache-2.0
// For tests: a memory and a model that show every mistake of the books. What a position leaves in the memory is a hash of all tokens
// up to it and of the phases they ran in; a row reads all that it may see and finds out if any of it is another's, stale or missing.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "kvcache/cache.h"

namespace weir::kvcache {

using Content = std::uint64_t;

// What each position must leave behind: [i] after tokens[0..i].
inline std::vector<Content> contents(std::span<const TokenId> tokens, std::int64_t prompt, bool phases_differ) {
  std::vector<Content> all;
  Content last = 17;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool decode = phases_differ && static_cast<std::int64_t>(i) >= prompt;
    last = fold_multiply(last ^ static_cast<std::uint32_t>(tokens[i]), decode ? 0xe7037ed1a0b428db : 0x8ebc6af09c88c6e3) + 1;
    all.push_back(last);
  }
  return all;
}

// The model's next token, from the content of the last position.
inline TokenId next_token(Content content, TokenId vocabulary) {
  return static_cast<TokenId>((content >> 20) % static_cast<Content>(vocabulary));
}

class TestMemory final : public PoolMemory {
 public:
  explicit TestMemory(const CacheOptions& options) : options_(options), states_(static_cast<std::size_t>(options.state_slots), 0) {
    for (const GroupLayout& g : options.groups) blocks_.emplace_back(static_cast<std::size_t>(g.blocks * options.block_tokens), 0);
  }

  std::vector<std::uint64_t> pool_bytes() const {
    std::vector<std::uint64_t> bytes(blocks_.size(), sizeof(Content) * static_cast<std::size_t>(options_.block_tokens));
    bytes.push_back(sizeof(Content));
    return bytes;
  }

  void copy(std::int32_t pool, std::int32_t from, std::int32_t to, std::int32_t tokens) override {
    const auto source = part(pool, from);
    const std::size_t count = is_state(pool) ? 1 : static_cast<std::size_t>(tokens);
    std::copy_n(source.begin(), count, part(pool, to).begin());
  }
  void clear(std::int32_t pool, std::int32_t id) override { std::ranges::fill(part(pool, id), kStart); }
  void read(std::int32_t pool, std::int32_t id, std::span<std::byte> bytes) const override {
    std::memcpy(bytes.data(), const_cast<TestMemory*>(this)->part(pool, id).data(), bytes.size());
  }
  void write(std::int32_t pool, std::int32_t id, std::span<const std::byte> bytes) override {
    std::memcpy(part(pool, id).data(), bytes.data(), bytes.size());
  }

  void begin_step() { written_.clear(); }

  // Runs positions [first, tokens.size()) of a sequence.
  void run(const SequenceCache& sequence, std::span<const TokenId> tokens, std::int64_t prompt, std::int64_t first) {
    const auto all = contents(tokens, prompt, options_.phases_differ);
    for (auto p = static_cast<std::size_t>(first); p < tokens.size(); ++p) {
      for (std::size_t g = 0; g < blocks_.size(); ++g) {
        check_seen(sequence, g, all, p);
        cell(sequence, g, p) = all[p];
      }
      if (!states_.empty()) {
        Content& state = states_[static_cast<std::size_t>(sequence.state().value)];
        ASSERT_EQ(state, p == 0 ? kStart : all[p - 1]) << "the state before position " << p;
        state = all[p];
      }
    }
    for (std::size_t g = 0; g < blocks_.size(); ++g) note_writes(sequence, g, static_cast<std::size_t>(first), tokens.size());
  }

 private:
  static constexpr Content kStart = 17;
  bool is_state(std::int32_t pool) const { return static_cast<std::size_t>(pool) == blocks_.size(); }
  std::span<Content> part(std::int32_t pool, std::int32_t id) {
    if (is_state(pool)) return std::span(states_).subspan(static_cast<std::size_t>(id), 1);
    const auto size = static_cast<std::size_t>(options_.block_tokens);
    return std::span(blocks_[static_cast<std::size_t>(pool)]).subspan(static_cast<std::size_t>(id) * size, size);
  }
  Content& cell(const SequenceCache& sequence, std::size_t group, std::size_t position) {
    const auto size = static_cast<std::size_t>(options_.block_tokens);
    const BlockId block = sequence.table(group)[position / size];
    return part(static_cast<std::int32_t>(group), block.value)[position % size];
  }
  void check_seen(const SequenceCache& sequence, std::size_t group, std::span<const Content> all, std::size_t position) {
    const auto window = static_cast<std::size_t>(options_.groups[group].window);
    for (std::size_t q = window == 0 || window > position ? 0 : position - window + 1; q < position; ++q) {
      ASSERT_TRUE(sequence.table(group)[q / static_cast<std::size_t>(options_.block_tokens)].valid()) << q << " seen from " << position;
      ASSERT_EQ(cell(sequence, group, q), all[q]) << "group " << group << ": position " << q << " seen from " << position;
    }
  }
  // No block has two writers in a step.
  void note_writes(const SequenceCache& sequence, std::size_t group, std::size_t first, std::size_t end) {
    const auto size = static_cast<std::size_t>(options_.block_tokens);
    for (std::size_t block = first / size; block <= (end - 1) / size; ++block)
      ASSERT_TRUE(written_.insert({group, sequence.table(group)[block]}).second) << "two writers of a block";
  }

  CacheOptions options_;
  std::vector<std::vector<Content>> blocks_;  // [group][block, token]
  std::vector<Content> states_;
  std::set<std::pair<std::size_t, BlockId>> written_;
};

}  // namespace weir::kvcache
