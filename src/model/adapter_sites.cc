// SPDX-License-Identifier: Apache-2.0
// A model's own names come from its Naming. Those of the other container are a table here: what a role is called differs little between
// families, and no family calls two roles the same.
#include "model/adapter_sites.h"

#include <charconv>

#include "model/traits.h"
#include "model/weights.h"

namespace weir::model {
namespace {

constexpr std::int32_t kMixerInput = 0, kFfnInput = 1, kSharedInput = 2, kExpertInput = 3;

struct Alias {
  Role role;
  const char *hf, *gguf;
};

// "{}" is an expert's number.
constexpr Alias kAliases[] = {
    {Role::kQ, "self_attn.q_proj", "attn_q"},
    {Role::kQ, "attention.self.query", nullptr},
    {Role::kK, "self_attn.k_proj", "attn_k"},
    {Role::kK, "attention.self.key", nullptr},
    {Role::kV, "self_attn.v_proj", "attn_v"},
    {Role::kV, "attention.self.value", nullptr},
    {Role::kQkv, "self_attn.qkv_proj", "attn_qkv"},
    {Role::kQkv, "attn.c_attn", nullptr},
    {Role::kQkv, "self_attention.query_key_value", nullptr},
    {Role::kQkv, "attention.query_key_value", nullptr},
    {Role::kO, "self_attn.o_proj", "attn_output"},
    {Role::kO, "self_attn.out_proj", nullptr},
    {Role::kO, "self_attn.dense", nullptr},
    {Role::kO, "attn.c_proj", nullptr},
    {Role::kO, "self_attention.dense", nullptr},
    {Role::kO, "attention.dense", nullptr},
    {Role::kO, "attention.output.dense", nullptr},
    {Role::kGate, "mlp.gate_proj", "ffn_gate"},
    {Role::kGate, "feed_forward.w1", nullptr},
    {Role::kUp, "mlp.up_proj", "ffn_up"},
    {Role::kUp, "mlp.fc1", nullptr},
    {Role::kUp, "mlp.c_fc", nullptr},
    {Role::kUp, "mlp.dense_h_to_4h", nullptr},
    {Role::kUp, "intermediate.dense", nullptr},
    {Role::kUp, "feed_forward.w3", nullptr},
    {Role::kGateUp, "mlp.gate_up_proj", "ffn_up"},
    {Role::kDown, "mlp.down_proj", "ffn_down"},
    {Role::kDown, "mlp.fc2", nullptr},
    {Role::kDown, "mlp.c_proj", nullptr},
    {Role::kDown, "mlp.dense_4h_to_h", nullptr},
    {Role::kDown, "output.dense", nullptr},
    {Role::kDown, "feed_forward.w2", nullptr},
    {Role::kRouter, "mlp.gate", "ffn_gate_inp"},
    {Role::kRouter, "block_sparse_moe.gate", nullptr},
    {Role::kExpertGate, "mlp.experts.{}.gate_proj", nullptr},
    {Role::kExpertGate, "block_sparse_moe.experts.{}.w1", nullptr},
    {Role::kExpertUp, "mlp.experts.{}.up_proj", nullptr},
    {Role::kExpertUp, "block_sparse_moe.experts.{}.w3", nullptr},
    {Role::kExpertDown, "mlp.experts.{}.down_proj", nullptr},
    {Role::kExpertDown, "block_sparse_moe.experts.{}.w2", nullptr},
    {Role::kStackedGate, nullptr, "ffn_gate_exps"},
    {Role::kStackedUp, nullptr, "ffn_up_exps"},
    {Role::kStackedGateUp, nullptr, "ffn_gate_up_exps"},
    {Role::kStackedDown, nullptr, "ffn_down_exps"},
    {Role::kSharedGate, "mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {Role::kSharedGate, "mlp.shared_experts.gate_proj", nullptr},
    {Role::kSharedUp, "mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {Role::kSharedUp, "mlp.shared_experts.up_proj", nullptr},
    {Role::kSharedDown, "mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {Role::kSharedDown, "mlp.shared_experts.down_proj", nullptr},
    {Role::kSharedWeight, "mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {Role::kQDown, "self_attn.q_a_proj", "attn_q_a"},
    {Role::kQUp, "self_attn.q_b_proj", "attn_q_b"},
    {Role::kKvDown, "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {Role::kKvUp, "self_attn.kv_b_proj", "attn_kv_b"},
    {Role::kHead, "lm_head", "output"},
    {Role::kHead, "embed_out", nullptr},
    {Role::kEmbedding, "embed_tokens", "token_embd"},
    {Role::kEmbedding, "wte", nullptr},
    {Role::kEmbedding, "embed_in", nullptr},
    {Role::kEmbedding, "word_embeddings", nullptr},
    {Role::kEmbedding, "embeddings.word_embeddings", nullptr},
};

constexpr std::string_view kHfRoots[] = {
    "model.language_model.", "language_model.model.", "model.", "transformer.", "gpt_neox.", "bert.", "roberta.", "backbone.", ""};
constexpr std::string_view kHfLayers[] = {"layers.", "h.", "encoder.layer."};

std::string key_of(std::int64_t layer, std::string_view name) { return fmt::format("{}/{}", layer, name); }

// The key of "PREFIX<number>.<name>", or "".
std::string key_in_layer(std::string_view module, std::string_view root, std::string_view layers) {
  if (!module.starts_with(root)) return "";
  module.remove_prefix(root.size());
  if (!module.starts_with(layers)) return "";
  module.remove_prefix(layers.size());
  std::int32_t layer = -1;
  const auto parsed = std::from_chars(module.data(), module.data() + module.size(), layer);
  const auto used = static_cast<std::size_t>(parsed.ptr - module.data());
  if (parsed.ec != std::errc() || layer < 0 || used >= module.size() || module[used] != '.') return "";
  return key_of(layer, module.substr(used + 1));
}

std::string without_weight(const std::string& full) { return full.ends_with(".weight") ? full.substr(0, full.size() - 7) : full; }

}  // namespace

AdapterSites::AdapterSites(const Traits& traits, const Weights& weights, bool gguf_adapter)
    : naming_(*weights.naming), gguf_(gguf_adapter) {
  globals(weights);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) layer(static_cast<std::int32_t>(i), traits, weights.layers[i]);
}

std::vector<const AdapterSite*> AdapterSites::find(std::string_view module) const {
  std::vector<const AdapterSite*> found;
  const auto take = [&](const std::string& key) {
    if (key.empty() || !found.empty()) return;
    for (auto [at, end] = by_name_.equal_range(key); at != end; ++at) found.push_back(&sites_[at->second]);
  };
  const auto take_global = [&](std::string_view root) {
    if (module.starts_with(root)) take(key_of(-1, module.substr(root.size())));
  };
  const Names& names = naming_.names;
  if (same_container()) take(key_in_layer(module, names.root, names.layer));
  if (gguf_) {
    take(key_in_layer(module, "", "blk."));
    take_global("");
    return found;
  }
  for (const std::string_view root : kHfRoots)
    for (const std::string_view layers : kHfLayers) take(key_in_layer(module, root, layers));
  if (same_container()) take_global(names.root);
  for (const std::string_view root : kHfRoots) take_global(root);
  return found;
}

void AdapterSites::add(const std::string& own_name, Role role, AdapterSite site, std::int32_t expert) {
  site.layer = layer_;
  const std::size_t index = sites_.size();
  sites_.push_back(std::move(site));
  const auto named = [&](const std::string& name) {
    const std::string key = key_of(layer_, name);
    for (auto [at, end] = by_name_.equal_range(key); at != end; ++at)
      if (at->second == index) return;
    by_name_.emplace(key, index);
  };
  if (same_container() && !own_name.empty()) named(own_name);
  for (const Alias& alias : kAliases) {
    const char* name = gguf_ ? alias.gguf : alias.hf;
    if (alias.role != role || !name) continue;
    const std::string_view text = name;
    const std::size_t hole = text.find("{}");
    named(hole == std::string_view::npos ? std::string(text) : fmt::format("{}{}{}", text.substr(0, hole), expert, text.substr(hole + 2)));
  }
}

void AdapterSites::add(const std::string& own_name, Role role, const Linear& linear, std::int32_t input, std::int64_t heads,
                       std::int32_t expert) {
  if (!linear.weight) return;
  AdapterSite site;
  site.input = input;
  site.out = linear.weight->out();
  site.in = linear.weight->in();
  site.parts = {{&*linear.weight, 0, naming_.paired_rows ? heads : 0}};
  add(own_name, role, std::move(site), expert);
}

void AdapterSites::attention(const Traits& traits, const AttentionWeights& w) {
  const AttentionTraits& t = traits.attention;
  const Names& names = naming_.names;
  if (w.qkv.weight) {
    AdapterSite whole{.input = kMixerInput, .out = w.qkv.weight->out(), .in = w.qkv.weight->in(), .parts = {{&*w.qkv.weight}}};
    whole.other_order = naming_.regrouped_rows;
    add(names.qkv, Role::kQkv, std::move(whole));
  } else if (w.q.weight && w.k.weight && w.v.weight) {
    add(names.q, Role::kQ, w.q, kMixerInput, t.heads);
    add(names.k, Role::kK, w.k, kMixerInput, t.kv_heads);
    add(names.v, Role::kV, w.v, kMixerInput);
    const std::int64_t q = w.q.weight->out(), k = w.k.weight->out();
    const auto heads = [&](std::int64_t n) { return naming_.paired_rows ? n : 0; };
    AdapterSite whole{.input = kMixerInput, .out = q + k + w.v.weight->out(), .in = w.q.weight->in()};
    whole.parts = {{&*w.q.weight, 0, heads(t.heads)}, {&*w.k.weight, q, heads(t.kv_heads)}, {&*w.v.weight, q + k}};
    whole.other_order = naming_.regrouped_rows;
    add(names.qkv, Role::kQkv, std::move(whole));
  }
  add(names.o, Role::kO, w.o);
}

void AdapterSites::latent(const LatentTraits& t, const LatentWeights& w) {
  const Names& names = naming_.names;
  add(names.q, Role::kQ, w.q, kMixerInput);
  add(names.q_down, Role::kQDown, w.q_down, kMixerInput);
  add(names.kv_down, Role::kKvDown, w.kv_down, kMixerInput);
  add(names.q_up, Role::kQUp, w.q_up);
  AdapterSite up{.in = t.kv_rank};
  for (std::size_t h = 0; h < w.key_up.size(); ++h) {
    up.parts.push_back({&w.key_up[h], up.out, 0, true});
    up.parts.push_back({&w.value_up[h], up.out + t.nope_dim});
    up.out += t.nope_dim + t.value_dim;
  }
  add(names.kv_up, Role::kKvUp, std::move(up));
  add(names.o, Role::kO, w.o);
}

// Only as the model's own file has them: containers differ in the order of rows.
void AdapterSites::recurrent(const RecurrentWeights& w) {
  const Names& names = naming_.names;
  add(names.recurrent_in, Role::kNone, w.in);
  if (w.qkv.weight) {
    add(names.delta_qkv, Role::kNone, w.qkv, kMixerInput);
    add(names.delta_z, Role::kNone, w.z, kMixerInput);
    add(names.delta_alpha, Role::kNone, w.alpha, kMixerInput);
    add(names.delta_beta, Role::kNone, w.beta, kMixerInput);
  }
  add(names.recurrent_out, Role::kNone, w.out);
}

void AdapterSites::feed_forward(const FfnNames& names, const FfnWeights& w, bool shared) {
  const std::int32_t input = shared ? kSharedInput : kFfnInput;
  add(names.gate, shared ? Role::kSharedGate : Role::kGate, w.gate, input);
  add(names.up, shared ? Role::kSharedUp : Role::kUp, w.up, input);
  add(names.down, shared ? Role::kSharedDown : Role::kDown, w.down);
  if (w.gate.weight && w.up.weight && !names.gate_up.empty()) {
    AdapterSite both{.input = input, .out = w.gate.weight->out() + w.up.weight->out(), .in = w.gate.weight->in()};
    both.parts = {{&*w.gate.weight}, {&*w.up.weight, w.gate.weight->out()}};
    add(names.gate_up, shared ? Role::kNone : Role::kGateUp, std::move(both));
  }
}

void AdapterSites::stacked(const std::string& own_name, Role role, const std::vector<FfnWeights>& experts,
                           std::vector<Linear FfnWeights::*> members) {
  AdapterSite site{.experts = static_cast<std::int64_t>(experts.size())};
  for (const FfnWeights& expert : experts) {
    std::int64_t first = 0;
    for (const auto member : members) {
      site.parts.push_back({&*(expert.*member).weight, first});
      first += (expert.*member).weight->out();
    }
    site.out = first;
    site.in = (expert.*members.front()).weight->in();
  }
  add(without_weight(own_name), role, std::move(site));
}

void AdapterSites::experts(const ExpertWeights& w) {
  const Names& names = naming_.names;
  add(names.router, Role::kRouter, w.router);
  feed_forward(names.shared, w.shared, true);
  add(names.shared_gate, Role::kSharedWeight, w.shared_gate);
  if (w.experts.empty() || !w.experts.front().gate.weight) return;  // gate and up interleaved: no adapter changes them
  for (std::size_t e = 0; e < w.experts.size(); ++e) {
    const auto number = static_cast<std::int32_t>(e);
    const std::string base = names.experts.empty() ? "" : fmt::format("{}{}.", names.experts, e);
    const auto own = [&](const std::string& name) { return base.empty() ? "" : base + name; };
    add(own(names.expert.gate), Role::kExpertGate, w.experts[e].gate, kExpertInput + number, 0, number);
    add(own(names.expert.up), Role::kExpertUp, w.experts[e].up, kExpertInput + number, 0, number);
    add(own(names.expert.down), Role::kExpertDown, w.experts[e].down, -1, 0, number);
  }
  if (!gguf_) return;
  stacked(names.stacked_gate, Role::kStackedGate, w.experts, {&FfnWeights::gate});
  stacked(names.stacked_up, Role::kStackedUp, w.experts, {&FfnWeights::up});
  stacked(names.stacked_down, Role::kStackedDown, w.experts, {&FfnWeights::down});
  stacked(names.stacked_gate_up, Role::kStackedGateUp, w.experts, {&FfnWeights::gate, &FfnWeights::up});
}

void AdapterSites::layer(std::int32_t index, const Traits& traits, const LayerWeights& w) {
  layer_ = index;
  attention(traits, w.attention);
  if (w.latent.kv_down.weight) latent(traits.latent, w.latent);
  if (w.recurrent.out.weight) recurrent(w.recurrent);
  if (w.ffn.down.weight) feed_forward(naming_.names.ffn, w.ffn, false);
  experts(w.experts);
}

void AdapterSites::globals(const Weights& weights) {
  layer_ = -1;
  add(naming_.names.head, Role::kHead, weights.head);
  AdapterSite table{.out = weights.token_embedding.in(), .in = weights.token_embedding.out(), .embedding = true};
  add(naming_.names.token_embedding, Role::kEmbedding, std::move(table));
}

}  // namespace weir::model
