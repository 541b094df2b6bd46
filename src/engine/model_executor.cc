// SPDX-License-Identifier: Apache-2.0
#include "engine/model_executor.h"

namespace weir::engine {

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
  const std::int32_t groups = model_.traits().has_attention() ? memory_.groups() : 0;
  slices_.push_back({.first_row = first,
                     .row_count = count,
                     .first_position = row.first_position,
                     .rope_length = context.rope_length,
                     .blocks = groups > 0 ? row.memory->table(0) : std::span<const BlockId>(),
                     .state = row.memory->state(),
                     .prompt = row.phase == scheduler::Phase::kPrefill});
  for (std::int32_t group = 0; group < groups; ++group) {
    const std::span<const BlockId> table = row.memory->table(static_cast<std::size_t>(group));
    const auto last = static_cast<std::size_t>((row.first_position + count - 1) / memory_.block_tokens());
    for (auto at = static_cast<std::size_t>(row.first_position / memory_.block_tokens()); at <= last && at < table.size(); ++at)
      memory_.note_use(group, table[at]);
  }
  adapters_.push_back(context.adapter);
  for (std::int32_t group = 1; group < groups; ++group) tables_.push_back(row.memory->table(static_cast<std::size_t>(group)));
  for (std::int32_t r = count - row.logits; r < count; ++r) output_rows_.push_back(first + r);
}

Result<kernels::ConstMatrix> ModelExecutor::run(const scheduler::StepPlan& plan, std::span<const RowContext> contexts) {
  kvcache::apply(plan.memory, pools_, tier_);
  tokens_.clear();
  slices_.clear();
  tables_.clear();
  adapters_.clear();
  output_rows_.clear();
  for (std::size_t i = 0; i < plan.rows.size(); ++i) add_row(plan.rows[i], contexts[i]);
  if (tokens_.empty()) return kernels::ConstMatrix();
  const auto rows = static_cast<std::int64_t>(output_rows_.size());
  const auto needed = static_cast<std::size_t>(rows * vocabulary());
  if (logits_.size() < needed) logits_.resize(needed);
  const kernels::Matrix out(logits_.data(), rows, vocabulary());
  if (meter_ != nullptr) meter_->begin_step();
  const Status status = model_.forward(
      {.tokens = tokens_, .slices = slices_, .output_rows = output_rows_, .token_types = {}, .tables = tables_, .adapters = adapters_},
      memory_, out);
  if (meter_ != nullptr) breakdown_ = &meter_->end_step();
  WEIR_TRY(status);
  return out;
}

}  // namespace weir::engine
