// SPDX-License-Identifier: Apache-2.0
// A model at rest: what it holds and how many bytes a step reads of it. The pass itself is in forward.cc, loading in load.cc.
#include "model/model.h"

#include <set>

#include "model/pass.h"
#include "model/scratch.h"

namespace weir::model {

namespace {

// Adds up what lies in the files, each place once: a tied head or a view of a fused weight is not counted twice.
class WeightCounter {
 public:
  void add(const kernels::Weight& w) {
    if (!seen_.insert(w.view.bytes.data()).second) return;
    totals_.bytes += w.view.bytes.size();
    totals_.elements[w.view.type] += static_cast<std::uint64_t>(w.out() * w.in());
  }
  void add(const std::vector<kernels::Weight>& ws) {
    for (const kernels::Weight& w : ws) add(w);
  }
  void add(const Vector& v) { totals_.bytes += v.size() * sizeof(float); }
  void add(const NormWeights& n) {
    add(n.weight);
    add(n.bias);
  }
  void add(const Linear& l) {
    if (l.weight) add(*l.weight);
    add(l.bias);
  }
  void add(const FfnWeights& f) { add_all(f.gate, f.up, f.gate_up, f.down); }
  void add(const AttentionWeights& a) { add_all(a.q, a.k, a.v, a.qkv, a.o, a.q_norm, a.k_norm, a.sinks); }
  void add(const LatentWeights& m) { add_all(m.q, m.q_down, m.q_up, m.q_norm, m.kv_norm, m.kv_down, m.key_up, m.value_up, m.o); }
  void add(const RecurrentWeights& r) {
    add_all(r.in, r.qkv, r.z, r.alpha, r.beta, r.conv_weight, r.conv_bias, r.a, r.d, r.dt_bias, r.norm, r.out);
  }
  template <class... Parts>
  void add_all(const Parts&... parts) {
    (add(parts), ...);
  }
  const WeightTotals& totals() const { return totals_; }

 private:
  std::set<const std::byte*> seen_;
  WeightTotals totals_;
};

WeightTotals always_read(const Weights& weights) {
  WeightCounter c;
  c.add_all(weights.embedding_norm, weights.final_norm, weights.head);
  for (const LayerWeights& l : weights.layers) {
    c.add_all(l.mixer_norm, l.post_mixer_norm, l.ffn_norm, l.post_ffn_norm, l.after_mixer, l.after_ffn, l.attention, l.latent, l.recurrent,
              l.ffn, l.experts.router, l.experts.router_correction, l.experts.shared, l.experts.shared_gate);
  }
  return c.totals();
}

WeightTotals of_experts(const Weights& weights) {
  WeightCounter c;
  for (const LayerWeights& l : weights.layers) {
    for (const FfnWeights& expert : l.experts.experts) c.add(expert);
  }
  return c.totals();
}

}  // namespace

Model::Model(Traits traits, Weights weights, std::shared_ptr<kernels::Backend> backend)
    : traits_(std::move(traits)), weights_(std::move(weights)), backend_(std::move(backend)), scratch_(std::make_unique<Scratch>()) {}
Model::~Model() = default;

WeightTotals Model::always_read_weights() const { return always_read(weights_); }

WeightTotals Model::expert_weights() const { return of_experts(weights_); }

std::uint64_t Model::weight_bytes() const { return always_read(weights_).bytes + of_experts(weights_).bytes; }

std::uint64_t Model::active_weight_bytes() const {
  const auto experts = static_cast<std::uint64_t>(std::max(1, traits_.experts.experts));
  return always_read(weights_).bytes + of_experts(weights_).bytes / experts * static_cast<std::uint64_t>(traits_.experts.router.top_k);
}

Status Model::pool(kernels::ConstMatrix states, kernels::Matrix out) {
  if (!weights_.pooler) return fail(ErrorCode::kUnsupported, "this {} model has no pooler", traits_.family);
  const kernels::LinearJob one = job(states, weights_.pooler, out);
  backend_->linear({&one, 1});
  backend_->scale(1, 1, out);  // tanh
  return {};
}

}  // namespace weir::model
