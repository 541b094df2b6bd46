// SPDX-License-Identifier: Apache-2.0
// Steps on a real model: the plan's memory operations on its KV blocks and states, then its rows as one forward pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/metered_backend.h"
#include "engine/pool_memory.h"
#include "engine/step_executor.h"
#include "kvcache/disk_tier.h"
#include "model/model.h"

namespace weir::engine {

class ModelExecutor final : public StepExecutor {
 public:
  // The model must outlive it. kExhausted when the memory cannot be had.
  static Result<std::unique_ptr<ModelExecutor>> create(model::Model& model, const model::MemorySizes& sizes);

  // For saves and loads of the plans; must outlive it. Its pools are those of pool_bytes().
  void use_tier(kvcache::DiskTier* tier) { tier_ = tier; }
  void apply(std::span<const kvcache::MemoryOp> ops);
  std::vector<std::uint64_t> pool_bytes() const { return pools_.pool_bytes(); }
  std::string memory_layout() const { return memory_.layout(); }

  // Whose measure of each step breakdown() gives; the model's own backend, must outlive it. Null: none.
  void use_meter(MeteredBackend* meter) { meter_ = meter; }
  const StepBreakdown* breakdown() const override { return meter_ != nullptr ? breakdown_ : nullptr; }

  std::int32_t vocabulary() const override { return model_.traits().vocab_size; }
  void for_each(std::int64_t count, FunctionRef<void(std::int64_t)> body) override { model_.backend().for_each(count, body); }
  Result<kernels::ConstMatrix> run(const scheduler::StepPlan& plan, std::span<const RowContext> contexts) override;
  bool prepare() override { return memory_.touch_ahead(); }
  bool warm_up() override;

 private:
  ModelExecutor(model::Model& model, const model::MemorySizes& sizes);
  void add_row(const scheduler::Row& row, const RowContext& context);
  std::int32_t groups() const { return model_.traits().has_attention() ? memory_.groups() : 0; }
  kernels::Matrix logits(std::int64_t rows);
  std::int32_t warm_rows_at_most() const;
  Status pass_of(std::int32_t rows);

  model::Model& model_;
  model::SequenceMemory memory_;
  PoolMemory pools_;
  kvcache::DiskTier* tier_ = nullptr;
  MeteredBackend* meter_ = nullptr;
  const StepBreakdown* breakdown_ = nullptr;

  // Rows of the next pass for warmth, and the passes so far. None after the first step, since it would write where sequences may lie.
  struct {
    std::int32_t rows = 1, passes = 0;
  } warm_;

  // One step's batch; kept between steps so that a steady state allocates nothing.
  std::vector<TokenId> tokens_;
  std::vector<kernels::SequenceSlice> slices_;
  std::vector<std::span<const BlockId>> tables_;
  std::vector<const model::Adapter*> adapters_;
  std::vector<std::int32_t> output_rows_;
  std::vector<float> logits_;
};

}  // namespace weir::engine
