// SPDX-License-Identifier: Apache-2.0
// A backend that passes every operation on and, while a step is measured, notes what it took: two readings of the clock an operation, no
// allocation. Products are told apart by the role that their weight has in the model. Outside of a step it only passes on.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include "engine/step_cost.h"
#include "kernels/backend.h"

namespace weir::model {
class Model;
}

namespace weir::engine {

class MeteredBackend final : public kernels::Backend {
 public:
  explicit MeteredBackend(std::shared_ptr<kernels::Backend> backend);
  ~MeteredBackend() override;

  // Whose weights they are; without it all products are kOtherProducts. The model must outlive its use.
  void learn_roles(const model::Model& model);

  // Around a forward pass, by the thread that runs it.
  void begin_step();
  const StepBreakdown& end_step();  // valid until the next begin_step()

  std::string description() const override { return backend_->description(); }
  DType kv_type() const override { return backend_->kv_type(); }
  bool phases_differ() const override { return backend_->phases_differ(); }
  std::int64_t packed_bytes(const kernels::Weight& weight) const override { return backend_->packed_bytes(weight); }
  void pack(const kernels::Weight& weight, std::span<std::byte> out) override { backend_->pack(weight, out); }
  void pack_alone(const kernels::Weight& weight, std::span<std::byte> out) const override { backend_->pack_alone(weight, out); }
  std::string packed_layout() const override { return backend_->packed_layout(); }
  void for_each(std::int64_t count, FunctionRef<void(std::int64_t)> body) override { backend_->for_each(count, body); }

  void embed(const kernels::Weight& table, std::span<const TokenId> ids, float scale, kernels::Matrix out) override;
  void linear(std::span<const kernels::LinearJob> jobs) override;
  void norm(kernels::ConstMatrix x, const kernels::NormParams& params, kernels::Matrix out) override;
  void rope(kernels::Matrix x, std::int32_t heads, std::int32_t offset, kernels::ConstMatrix table, bool pairs) override;
  void store_kv(kernels::ConstMatrix keys, kernels::ConstMatrix values, std::span<const kernels::SequenceSlice> slices,
                const kernels::KvLayer& layer) override;
  void attention(kernels::ConstMatrix q, std::span<const kernels::SequenceSlice> slices, const kernels::KvLayer& layer,
                 const kernels::AttentionParams& params, kernels::Matrix out) override;
  void route(kernels::ConstMatrix logits, const kernels::RouterParams& params, std::span<std::int32_t> ids,
             std::span<float> weights) override;
  void gather_rows(kernels::ConstMatrix x, std::span<const std::int32_t> rows, kernels::Matrix out) override;
  void combine_rows(kernels::ConstMatrix x, std::span<const std::int32_t> rows, std::span<const float> weights, std::int32_t top_k,
                    bool accumulate, kernels::Matrix out) override;
  void copy_columns(kernels::ConstMatrix x, const kernels::ColumnPieces& pieces, kernels::Matrix out) override;
  void activate(kernels::Activation kind, kernels::ConstMatrix x, kernels::Matrix out) override;
  void activate_mul(kernels::Activation kind, kernels::ConstMatrix gate, kernels::ConstMatrix up, kernels::Matrix out) override;
  void clamped_swiglu(kernels::ConstMatrix gate, kernels::ConstMatrix up, float alpha, float limit, kernels::Matrix out) override;
  void add(kernels::ConstMatrix x, float scale, kernels::Matrix out) override;
  void multiply(kernels::ConstMatrix x, kernels::Matrix out) override;
  void scale(float factor, float softcap, kernels::Matrix x) override;
  void causal_conv(kernels::ConstMatrix x, const kernels::ConvParams& params, std::span<const kernels::SequenceSlice> slices,
                   const kernels::StateLayer& state, kernels::Matrix out) override;
  void ssd_scan(kernels::ConstMatrix x, kernels::ConstMatrix b, kernels::ConstMatrix c, kernels::ConstMatrix dt,
                const kernels::SsdParams& params, std::span<const kernels::SequenceSlice> slices, const kernels::StateLayer& state,
                std::int64_t state_offset, kernels::Matrix out) override;
  void delta_scan(kernels::ConstMatrix q, kernels::ConstMatrix k, kernels::ConstMatrix v, kernels::ConstMatrix alpha,
                  kernels::ConstMatrix beta, const kernels::DeltaParams& params, std::span<const kernels::SequenceSlice> slices,
                  const kernels::StateLayer& state, std::int64_t state_offset, kernels::Matrix out) override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  class Timed;
  OpKind kind_of(std::span<const kernels::LinearJob> jobs) const;

  std::shared_ptr<kernels::Backend> backend_;
  std::unordered_map<const kernels::Weight*, OpKind> roles_;
  StepBreakdown step_;
  Time begin_;
  bool measuring_ = false;
};

}  // namespace weir::engine
