// SPDX-License-Identifier: Apache-2.0
#include "engine/model_executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace weir::engine {
namespace {

constexpr Duration kWarmPass = std::chrono::milliseconds(60);  // a request may have to wait for one
constexpr std::int32_t kFirstPromptRows = 32, kMostPromptRows = 512;

}  // namespace

ModelExecutor::ModelExecutor(model::Model& model, const model::MemorySizes& sizes)
    : model_(model), memory_(model.traits(), sizes), pools_(memory_) {}

Result<std::unique_ptr<ModelExecutor>> ModelExecutor::create(model::Model& model, const model::MemorySizes& sizes) {
  std::unique_ptr<ModelExecutor> executor(new ModelExecutor(model, sizes));
  WEIR_TRY(executor->memory_.status());
  return executor;
}

void ModelExecutor::add_row(const scheduler::Row& row, const RowContext& context) {
  const auto first = static_cast<std::int32_t>(tokens_.size());
  const auto count = static_cast<std::int32_t>(row.tokens.size());
  tokens_.insert(tokens_.end(), row.tokens.begin(), row.tokens.end());
  slices_.push_back({.first_row = first,
                     .row_count = count,
                     .first_position = row.first_position,
                     .rope_length = context.rope_length,
                     .blocks = groups() > 0 ? row.memory->table(0) : std::span<const BlockId>(),
                     .state = row.memory->state(),
                     .prompt = row.phase == scheduler::Phase::kPrefill});
  for (std::int32_t group = 0; group < groups(); ++group) {
    const std::span<const BlockId> table = row.memory->table(static_cast<std::size_t>(group));
    const auto last = static_cast<std::size_t>((row.first_position + count - 1) / memory_.block_tokens());
    for (auto at = static_cast<std::size_t>(row.first_position / memory_.block_tokens()); at <= last && at < table.size(); ++at)
      memory_.note_use(group, table[at]);
  }
  adapters_.push_back(context.adapter);
  for (std::int32_t group = 1; group < groups(); ++group) tables_.push_back(row.memory->table(static_cast<std::size_t>(group)));
  for (std::int32_t r = count - row.logits; r < count; ++r) output_rows_.push_back(first + r);
}

Result<kernels::ConstMatrix> ModelExecutor::run(const scheduler::StepPlan& plan, std::span<const RowContext> contexts) {
  apply(plan.memory);
  tokens_.clear();
  slices_.clear();
  tables_.clear();
  adapters_.clear();
  output_rows_.clear();
  for (std::size_t i = 0; i < plan.rows.size(); ++i) add_row(plan.rows[i], contexts[i]);
  if (tokens_.empty()) return kernels::ConstMatrix();
  warm_.rows = 0;
  const kernels::Matrix out = logits(static_cast<std::int64_t>(output_rows_.size()));
  if (meter_ != nullptr) meter_->begin_step();
  const Status status = model_.forward(
      {.tokens = tokens_, .slices = slices_, .output_rows = output_rows_, .token_types = {}, .tables = tables_, .adapters = adapters_},
      memory_, out);
  if (meter_ != nullptr) breakdown_ = &meter_->end_step();
  WEIR_TRY(status);
  return out;
}

void ModelExecutor::apply(std::span<const kvcache::MemoryOp> ops) {
  if (!ops.empty()) warm_.rows = 0;
  kvcache::apply(ops, pools_, tier_);
}

kernels::Matrix ModelExecutor::logits(std::int64_t rows) {
  const auto needed = static_cast<std::size_t>(rows * vocabulary());
  if (logits_.size() < needed) logits_.resize(needed);
  return {logits_.data(), rows, vocabulary()};
}

// What the model's positions and the blocks of every group allow.
std::int32_t ModelExecutor::warm_rows_at_most() const {
  std::int64_t most = kMostPromptRows;
  if (const std::int64_t positions = model_.traits().max_positions; positions > 0) most = std::min(most, positions);
  for (std::int32_t g = 0; g < groups(); ++g) most = std::min(most, std::int64_t{memory_.blocks(g)} * memory_.block_tokens());
  return static_cast<std::int32_t>(most);
}

// A forward pass over the first blocks and the first state, which no sequence has yet.
Status ModelExecutor::pass_of(std::int32_t rows) {
  std::vector<BlockId> blocks;
  for (std::int32_t i = 0; groups() > 0 && i * memory_.block_tokens() < rows; ++i) blocks.push_back(BlockId(i));
  std::vector<TokenId> tokens(static_cast<std::size_t>(rows));
  for (std::int32_t i = 0; i < rows; ++i) tokens[static_cast<std::size_t>(i)] = i % vocabulary();
  const kernels::SequenceSlice slice{
      .row_count = rows, .blocks = blocks, .state = memory_.state_slots() > 0 ? StateSlot(0) : StateSlot(), .prompt = rows > 1};
  const std::vector<std::span<const BlockId>> tables(static_cast<std::size_t>(std::max(groups() - 1, 0)), blocks);
  const std::int32_t last = rows - 1;
  if (slice.state.valid()) memory_.clear_state(slice.state);
  return model_.forward({.tokens = tokens, .slices = {&slice, 1}, .output_rows = {&last, 1}, .token_types = {}, .tables = tables}, memory_,
                        logits(1));
}

// One row, then prompts: a short one twice, since its first pass is slow as all first passes are, and as many rows as take kWarmPass.
bool ModelExecutor::warm_up() {
  const std::int32_t rows = std::min(std::exchange(warm_.rows, 0), warm_rows_at_most());  // no pass follows one that fails
  if (rows < 1) return false;
  const auto begin = std::chrono::steady_clock::now();
  if (!pass_of(rows)) return false;
  const Duration took = std::max<Duration>(std::chrono::steady_clock::now() - begin, Duration(1));
  ++warm_.passes;
  if (warm_.passes < 3 && took <= 2 * kWarmPass) warm_.rows = kFirstPromptRows;
  if (warm_.passes == 3 && took <= kWarmPass / 2)
    warm_.rows = static_cast<std::int32_t>(std::min<std::int64_t>(rows * (kWarmPass / took), kMostPromptRows));
  return warm_.rows > 0;
}

}  // namespace weir::engine
