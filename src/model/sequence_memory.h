// SPDX-License-Identifier: Apache-2.0
// What a model remembers of its sequences: KV blocks of the layers with attention and state slots of the recurrent ones,
// in one mapping each whose pages cost nothing until they are touched. A block holds its tokens of all layers, so that memory
// fills from the front as sequences grow. Which sequence owns what is kvcache's business.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "model/traits.h"

namespace weir::model {

class SequenceMemory {
 public:
  // Sizes may come from outside: what cannot be had is told by status(), and by Model::forward.
  SequenceMemory(const Traits& traits, std::int32_t blocks, std::int32_t block_tokens, std::int32_t state_slots, DType kv_type);
  ~SequenceMemory();
  SequenceMemory(const SequenceMemory&) = delete;
  SequenceMemory& operator=(const SequenceMemory&) = delete;

  // kInvalidArgument for negative sizes or a type that check_type() refuses; kExhausted when the system has not that much.
  const Status& status() const;

  const kernels::KvLayer& kv(std::int32_t layer) const;        // a layer without attention has no keys
  const kernels::StateLayer& state(std::int32_t layer) const;  // a layer without recurrence has no data
  void clear_state(StateSlot slot);                            // zeroes, as a new sequence needs
  void copy_state(StateSlot from, StateSlot to);
  void copy_block(BlockId from, BlockId to);
  std::int32_t block_tokens() const;
  std::int32_t blocks() const;
  std::int32_t state_slots() const;

  // kInvalidArgument when the model's keys and values cannot be kept as this type: F32, F16 and BF16 always can, Q8_0 when heads
  // are multiples of 32.
  static Status check_type(const Traits& traits, DType kv_type);
  static std::uint64_t bytes_per_token(const Traits& traits, DType kv_type);
  static std::uint64_t bytes_per_state(const Traits& traits);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::model
