// SPDX-License-Identifier: Apache-2.0
// What a model remembers of its sequences: KV blocks of the layers with attention and state slots of the recurrent ones,
// in mappings whose pages cost nothing until they are touched. Layers that see equally far back form a group with blocks of its
// own, so that a sliding window keeps no more than it shows. A block holds its tokens of all layers of its group, so that memory
// fills from the front as sequences grow. Which sequence owns what is kvcache's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "model/traits.h"

namespace weir::model {

// Layers with attention that share a block table.
struct KvGroup {
  std::int32_t window = 0;  // the farthest that any of them sees back, itself included; 0 = to the start
  std::vector<std::int32_t> layers;
};

// Layers that see all first, if there are any, then a group for each window, the narrowest first. At most kMostKvGroups: layers with
// still other windows are among those that see all.
std::vector<KvGroup> kv_groups(const Traits& traits);
inline constexpr std::size_t kMostKvGroups = 8;

struct MemorySizes {
  std::vector<std::int32_t> blocks;  // of each of kv_groups(), or one number: all layers share one table
  std::int32_t block_tokens = 32;
  std::int32_t state_slots = 0;
  DType kv_type = DType::kF32;
};

class SequenceMemory {
 public:
  // Sizes may come from outside: what cannot be had is told by status(), and by Model::forward.
  SequenceMemory(const Traits& traits, const MemorySizes& sizes);
  // One table for all layers.
  SequenceMemory(const Traits& traits, std::int32_t blocks, std::int32_t block_tokens, std::int32_t state_slots, DType kv_type)
      : SequenceMemory(traits, MemorySizes{{blocks}, block_tokens, state_slots, kv_type}) {}
  ~SequenceMemory();
  SequenceMemory(const SequenceMemory&) = delete;
  SequenceMemory& operator=(const SequenceMemory&) = delete;

  // kInvalidArgument for negative sizes or a type that check_type() refuses; kExhausted when the system has not that much.
  const Status& status() const;

  const kernels::KvLayer& kv(std::int32_t layer) const;        // a layer without attention has no keys
  const kernels::StateLayer& state(std::int32_t layer) const;  // a layer without recurrence has no data
  void clear_state(StateSlot slot);                            // zeroes, as a new sequence needs
  void copy_state(StateSlot from, StateSlot to);
  // At least the first `tokens` positions, of all layers of the group.
  void copy_block(std::int32_t group, BlockId from, BlockId to, std::int32_t tokens);

  // The block's pages are, or will be, touched. For touch_ahead(), which makes a piece of those that follow ready, in idle time; false:
  // there is nothing to do (pages_ahead.h).
  void note_use(std::int32_t group, BlockId block);
  bool touch_ahead();

  // Whole blocks and states as bytes, for keeping them elsewhere: the same order wherever layout() is the same.
  std::uint64_t block_bytes(std::int32_t group) const;
  std::uint64_t state_bytes() const;
  void read_block(std::int32_t group, BlockId block, std::span<std::byte> out) const;
  void write_block(std::int32_t group, BlockId block, std::span<const std::byte> bytes);
  void read_state(StateSlot slot, std::span<std::byte> out) const;
  void write_state(StateSlot slot, std::span<const std::byte> bytes);
  std::string layout() const;

  std::int32_t groups() const;                      // tables that a sequence has
  std::int32_t group_of(std::int32_t layer) const;  // of a layer with attention
  std::int32_t window(std::int32_t group) const;    // as in KvGroup
  std::int32_t blocks(std::int32_t group = 0) const;
  std::int32_t block_tokens() const;
  std::int32_t state_slots() const;
  std::uint64_t bytes() const;  // of all blocks and states together

  // kInvalidArgument when the model's keys and values cannot be kept as this type: F32, F16 and BF16 always can, Q8_0 when heads
  // are multiples of 32.
  static Status check_type(const Traits& traits, DType kv_type);
  static std::uint64_t bytes_per_token(const Traits& traits, DType kv_type);
  static std::uint64_t bytes_per_state(const Traits& traits);
  // Of a block of these layers, from its start to the start of the next.
  static std::uint64_t bytes_per_block(const Traits& traits, const KvGroup& group, std::int32_t block_tokens, DType kv_type);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::model
