// SPDX-License-Identifier: Apache-2.0
// The contract of a Batch, rule by rule.
#include "model/batch_check.h"

#include <algorithm>
#include <limits>

#include "model/adapter.h"

namespace weir::model {

namespace {

using kernels::SequenceSlice;

Status check_ids(std::span<const std::int32_t> ids, std::int64_t limit, const char* what) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= limit) return fail(ErrorCode::kInvalidArgument, "row {}: {} {} is not in [0, {})", i, what, ids[i], limit);
  }
  return {};
}

// Positions that a learned table or the scaling of rope allows; plain rope has no end.
std::int64_t position_limit(const Traits& traits, const Weights& weights) {
  const std::int64_t most = traits.max_positions > 0 ? traits.max_positions : std::numeric_limits<std::int32_t>::max();
  return weights.position_embedding ? weights.position_embedding->view.dim(0) - traits.position_offset : most;
}

// A table of a slice. Blocks before the window of the first row may be gone.
Status check_blocks(std::size_t index, const SequenceSlice& slice, std::span<const BlockId> table, const SequenceMemory& memory,
                    std::int32_t group) {
  const std::int64_t end = std::int64_t{slice.first_position} + slice.row_count, size = memory.block_tokens();
  const auto reach = static_cast<std::int64_t>(table.size()) * size;
  if (end > reach) {
    return fail(ErrorCode::kInvalidArgument, "slice {} ends at position {}, its {} blocks hold {}", index, end, table.size(), reach);
  }
  const std::int32_t window = memory.window(group), limit = memory.blocks(group);
  const std::int64_t first_seen = window > 0 ? std::max<std::int64_t>(0, std::int64_t{slice.first_position} - window + 1) / size : 0;
  for (std::int64_t i = 0; i * size < end; ++i) {
    const BlockId block = table[static_cast<std::size_t>(i)];
    if (block.valid() ? block.value >= limit : i >= first_seen) {
      return fail(ErrorCode::kInvalidArgument, "slice {}: block {} is not in [0, {})", index, block.value, limit);
    }
  }
  return {};
}

// All tables of a slice.
Status check_tables(std::size_t index, const Batch& batch, const SequenceMemory& memory) {
  const SequenceSlice& slice = batch.slices[index];
  WEIR_TRY(check_blocks(index, slice, slice.blocks, memory, 0));
  const auto further = static_cast<std::size_t>(memory.groups()) - 1;
  for (std::size_t g = 0; g < further; ++g)
    WEIR_TRY(check_blocks(index, slice, batch.tables[index * further + g], memory, static_cast<std::int32_t>(g) + 1));
  return {};
}

Status check_state(std::size_t index, const SequenceSlice& slice, const SequenceMemory& memory, std::vector<bool>& used) {
  if (!slice.state.valid() || slice.state.value >= memory.state_slots()) {
    return fail(ErrorCode::kInvalidArgument, "slice {}: state slot {} is not in [0, {})", index, slice.state.value, memory.state_slots());
  }
  const auto slot = static_cast<std::size_t>(slice.state.value);
  if (used[slot]) return fail(ErrorCode::kInvalidArgument, "slice {}: state slot {} is another slice's too", index, slot);
  used[slot] = true;
  return {};
}

Status check_slice(const Traits& traits, std::int64_t limit, std::size_t index, const SequenceSlice& slice) {
  if (slice.row_count < 1 || slice.first_position < 0 || slice.rope_length < 0) {
    return fail(ErrorCode::kInvalidArgument, "slice {} has {} rows from position {}, rope length {}", index, slice.row_count,
                slice.first_position, slice.rope_length);
  }
  const std::int64_t end = std::int64_t{slice.first_position} + slice.row_count;
  if (end > limit) {
    return fail(ErrorCode::kInvalidArgument, "slice {} ends at position {}, this model has {} positions", index, end, limit);
  }
  if (!traits.attention.causal && slice.first_position != 0) {
    return fail(ErrorCode::kInvalidArgument, "slice {} starts at position {}: an encoder takes a sequence whole", index,
                slice.first_position);
  }
  return {};
}

}  // namespace

Status check_batch(const Traits& traits, const Weights& weights, const SequenceMemory& memory, const Batch& batch,
                   std::vector<bool>& state_used) {
  WEIR_TRY(check_ids(batch.tokens, traits.vocab_size, "token"));
  if (!batch.token_types.empty()) {
    if (batch.token_types.size() != batch.tokens.size() || !weights.type_embedding) {
      return fail(ErrorCode::kInvalidArgument, "{} token types for {} tokens{}", batch.token_types.size(), batch.tokens.size(),
                  weights.type_embedding ? "" : " of a model that has no types");
    }
    WEIR_TRY(check_ids(batch.token_types, weights.type_embedding->view.dim(0), "token type"));
  }
  const std::int64_t limit = position_limit(traits, weights);
  const bool attention = traits.has_attention(), recurrent = traits.has_state();
  state_used.assign(recurrent ? static_cast<std::size_t>(memory.state_slots()) : 0, false);
  const std::size_t tables = attention ? batch.slices.size() * static_cast<std::size_t>(memory.groups() - 1) : 0;
  if (batch.tables.size() != tables) {
    return fail(ErrorCode::kInvalidArgument, "{} further block tables for {} slices, {} are needed", batch.tables.size(),
                batch.slices.size(), tables);
  }
  std::int64_t row = 0;
  for (std::size_t i = 0; i < batch.slices.size(); ++i) {
    const SequenceSlice& slice = batch.slices[i];
    if (slice.first_row != row) return fail(ErrorCode::kInvalidArgument, "slice {} starts at row {}, not {}", i, slice.first_row, row);
    WEIR_TRY(check_slice(traits, limit, i, slice));
    row += slice.row_count;
    if (attention) WEIR_TRY(check_tables(i, batch, memory));
    if (recurrent) WEIR_TRY(check_state(i, slice, memory, state_used));
  }
  const auto rows = static_cast<std::int64_t>(batch.tokens.size());
  if (row != rows) return fail(ErrorCode::kInvalidArgument, "the slices cover {} rows of {}", row, rows);
  std::int64_t previous = -1;
  for (const std::int32_t output : batch.output_rows) {
    if (output <= previous || output >= rows) {
      return fail(ErrorCode::kInvalidArgument, "output row {} after {} of {} rows: they ascend", output, previous, rows);
    }
    previous = output;
  }
  return {};
}

Status check_adapters(const Model& model, const Batch& batch) {
  if (batch.adapters.empty()) return {};
  if (batch.adapters.size() != batch.slices.size())
    return fail(ErrorCode::kInvalidArgument, "{} adapters for {} slices", batch.adapters.size(), batch.slices.size());
  for (std::size_t i = 0; i < batch.adapters.size(); ++i)
    if (batch.adapters[i] && !batch.adapters[i]->made_for(model))
      return fail(ErrorCode::kInvalidArgument, "slice {}: its adapter was loaded for another model", i);
  return {};
}

}  // namespace weir::model
