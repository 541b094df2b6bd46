// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_roles.h"

#include <initializer_list>

namespace weir::engine {
namespace {

class Roles {
 public:
  void add(OpKind kind, std::initializer_list<const model::Linear*> linears) {
    for (const model::Linear* linear : linears) {
      if (linear->weight) roles[&*linear->weight] = kind;
    }
  }
  void add(OpKind kind, const std::vector<kernels::Weight>& weights) {
    for (const kernels::Weight& weight : weights) roles[&weight] = kind;
  }
  void add(const model::FfnWeights& ffn) {
    add(OpKind::kGateUp, {&ffn.gate, &ffn.up, &ffn.gate_up});
    add(OpKind::kDown, {&ffn.down});
  }
  void add(const model::LayerWeights& layer) {
    const model::AttentionWeights& a = layer.attention;
    const model::LatentWeights& l = layer.latent;
    const model::RecurrentWeights& r = layer.recurrent;
    const model::ExpertWeights& e = layer.experts;
    add(OpKind::kQkv, {&a.q, &a.k, &a.v, &a.qkv, &l.q, &l.q_down, &l.q_up, &l.kv_down});
    add(OpKind::kQkv, l.key_up);
    add(OpKind::kAttentionOut, l.value_up);
    add(OpKind::kAttentionOut, {&a.o, &l.o});
    add(OpKind::kRecurrentProducts, {&r.in, &r.qkv, &r.z, &r.alpha, &r.beta, &r.out});
    add(OpKind::kRouter, {&e.router, &e.shared_gate});
    add(layer.ffn);
    add(e.shared);
    for (const model::FfnWeights& expert : e.experts) add(expert);
  }

  std::unordered_map<const kernels::Weight*, OpKind> roles;
};

}  // namespace

std::unordered_map<const kernels::Weight*, OpKind> weight_roles(const model::Weights& weights) {
  Roles roles;
  for (const model::LayerWeights& layer : weights.layers) roles.add(layer);
  roles.add(OpKind::kHead, {&weights.head});
  return std::move(roles.roles);
}

}  // namespace weir::engine
