// SPDX-License-Identifier: Apache-2.0
#include "bench/model_cost.h"

#include <algorithm>
#include <cmath>

#include "model/sequence_memory.h"

namespace weir::bench {
namespace {

// Operations of one row with one position it sees: q·k and the weighted v of each head, multiply and add being two.
double attention_ops_per_position(const model::Traits& traits, model::MixerKind mixer) {
  const model::AttentionTraits& a = traits.attention;
  if (mixer == model::MixerKind::kAttention) return 2.0 * a.heads * (a.head_dim + a.value_dim);
  const model::LatentTraits& l = traits.latent;  // heads meet the cache's own vectors
  return mixer == model::MixerKind::kLatentAttention ? 2.0 * a.heads * (2.0 * l.kv_rank + l.rope_dim) : 0;
}

double seen(double window, double context) { return window > 0 ? std::min(window, context) : context; }

}  // namespace

ModelCost::ModelCost(const model::Model& model, DType kv_type, kernels::Activations activations, const kernels::Limits& limits)
    : always_(model.always_read_weights()), experts_(model.expert_weights()) {
  const model::Traits& traits = model.traits();
  if (const auto& head = model.weights().head.weight) head_[head->view.type] = static_cast<std::uint64_t>(head->out() * head->in());
  if (traits.experts.experts > 0) chosen_ = static_cast<double>(traits.experts.router.top_k) / traits.experts.experts;
  state_bytes_ = static_cast<double>(model::SequenceMemory::bytes_per_state(traits));
  for (const model::LayerTraits& layer : traits.layers) {
    model::Traits alone = traits;
    alone.layers = {layer};
    windows_.push_back({static_cast<double>(layer.window), static_cast<double>(model::SequenceMemory::bytes_per_token(alone, kv_type)),
                        attention_ops_per_position(traits, layer.mixer)});
  }
  for (const auto* part : {&always_.elements, &experts_.elements})
    for (const auto& [type, count] : *part) arithmetic_[type] = kernels::arithmetic_for(type, activations, limits);
}

double ModelCost::weight_bytes(std::int64_t rows) const {
  const double touched = 1 - std::pow(1 - chosen_, static_cast<double>(rows));
  return static_cast<double>(always_.bytes) + touched * static_cast<double>(experts_.bytes);
}

double ModelCost::context_bytes(double context) const {
  double bytes = state_bytes_;
  for (const Window& window : windows_) bytes += window.bytes * seen(window.positions, context);
  return bytes;
}

double ModelCost::attention_ops(double context) const {
  double ops = 0;
  for (const Window& window : windows_) ops += window.ops * seen(window.positions, context);
  return ops;
}

kernels::Work ModelCost::step(std::int64_t rows, std::int64_t outputs) const {
  kernels::Work work;
  work.bytes = weight_bytes(rows);
  const auto add = [&](const std::map<DType, std::uint64_t>& elements, double times) {
    for (const auto& [type, count] : elements) work.ops[arithmetic_.at(type)] += 2 * times * static_cast<double>(count);
  };
  add(always_.elements, static_cast<double>(rows));
  add(head_, static_cast<double>(outputs - rows));
  add(experts_.elements, static_cast<double>(rows) * chosen_);
  return work;
}

}  // namespace weir::bench
