// SPDX-License-Identifier: Apache-2.0
// One step as data: which rows of which sequences to run and what the memory has to do before. The engine turns it into a batch;
// a simulator turns it into time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kvcache/cache.h"

namespace weir::scheduler {

// Positions of the prompt are prefill, all behind it decode, also when a sequence runs again after a preemption: where the two
// differ in arithmetic, the phase picks it and a resumed sequence gets the same bits.
enum class Phase { kPrefill, kDecode };

// Consecutive positions of one sequence, which has at most one entry in a step.
struct Row {
  SeqId sequence;
  std::int32_t first_position = 0;
  Phase phase = Phase::kPrefill;
  std::int32_t logits = 0;                         // wanted for the last so many positions
  std::int32_t drafted = 0;                        // the last so many tokens are guesses to be verified
  std::span<const TokenId> tokens;                 // one per position; valid until complete()
  const kvcache::SequenceCache* memory = nullptr;  // block tables and state slot; reach to the last position
};

struct StepPlan {
  std::uint64_t number = 0;
  std::vector<Row> rows;                  // decode first
  std::vector<kvcache::MemoryOp> memory;  // in this order, before the rows: copies on write, states, the second tier
  std::vector<SeqId> preempted;           // wait again; nothing to do but to tell
  std::vector<SeqId> expired;             // gone: their start_by passed
  std::int32_t prefill_positions = 0, decode_positions = 0;
};

// What came of Row i.
struct RowResult {
  std::span<const TokenId> tokens;  // to append: the sampled one, with guesses the accepted ones before it, forced ones behind it
  bool finished = false;            // the sequence ends with these
};

}  // namespace weir::scheduler
