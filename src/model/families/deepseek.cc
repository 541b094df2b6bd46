// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3 (also Moonlight and Kimi K2, which are V3 in other sizes): latent attention, experts chosen in groups.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void latent_sizes(Plan& plan) {
  Config& c = plan.config;
  Traits& t = plan.traits;
  LatentTraits& l = t.latent;
  t.attention.heads = c.size({"num_attention_heads", "attention.head_count"}, 1, 4096);
  t.attention.kv_heads = 1;
  l.q_rank = c.size_or({"q_lora_rank", "attention.q_lora_rank"}, 0);
  l.kv_rank = c.size({"kv_lora_rank", "attention.kv_lora_rank"});
  l.rope_dim = c.size({"qk_rope_head_dim", "rope.dimension_count"}, 1, 65536);
  if (c.gguf()) {
    // Without the keys that end in _mla the plain ones mean the heads before they are compressed.
    l.nope_dim = c.size({nullptr, "attention.key_length_mla|attention.key_length"}, l.rope_dim + 1, 65536) - l.rope_dim;
    l.value_dim = c.size({nullptr, "attention.value_length_mla|attention.value_length"}, 1, 65536);
  } else {
    l.nope_dim = c.size({"qk_nope_head_dim"}, 1, 65536);
    l.value_dim = c.size({"v_head_dim"}, 1, 65536);
  }
  t.attention.head_dim = l.nope_dim + l.rope_dim;
  t.attention.value_dim = l.value_dim;
  for (LayerTraits& layer : t.layers) layer.mixer = MixerKind::kLatentAttention;
}

// Yarn enters twice: in the frequencies, and squared in the scale of the scores (when mscale_all_dim is given).
void latent_rope(Plan& plan) {
  Config& c = plan.config;
  Traits& t = plan.traits;
  RopeSpec spec = read_rope(c, t.latent.rope_dim, t.max_context);
  spec.rotary_dim = t.latent.rope_dim;
  spec.pairs = c.flag_or({"rope_interleave"}, true);
  if (c.gguf() && c.has({nullptr, "rope.scaling.yarn_log_multiplier"}))  // 0.1 · mscale_all_dim; mscale is the same in all models
    spec.mscale = spec.mscale_all_dim = c.real_or({nullptr, "rope.scaling.yarn_log_multiplier"}, 0, 0, 1e6) * 10;
  const std::int32_t index = add_rope(c, t, spec);
  for (LayerTraits& layer : t.layers) layer.rope = index;

  double scale = 1 / std::sqrt(static_cast<double>(t.attention.head_dim));
  if (spec.scaling != RopeScaling::kNone && spec.mscale_all_dim != 0) {
    const double magnitude = yarn_magnitude(spec.factor, spec.mscale_all_dim);
    scale *= magnitude * magnitude;
  }
  t.attention.scale = static_cast<float>(scale);
}

void latent_names(Plan& plan) {
  Names& n = plan.names;
  if (plan.config.gguf()) {
    n.q_down = "attn_q_a";
    n.q_down_norm = "attn_q_a_norm";
    n.q_up = "attn_q_b";
    n.kv_down = "attn_kv_a_mqa";
    n.kv_down_norm = "attn_kv_a_norm";
    n.kv_up = "attn_kv_b";
    n.key_up = "attn_k_b";
    n.value_up = "attn_v_b";
    return;
  }
  n.q_down = "self_attn.q_a_proj";
  n.q_down_norm = "self_attn.q_a_layernorm";
  n.q_up = "self_attn.q_b_proj";
  n.kv_down = "self_attn.kv_a_proj_with_mqa";
  n.kv_down_norm = "self_attn.kv_a_layernorm";
  n.kv_up = "self_attn.kv_b_proj";
  n.shared = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj", ""};
  plan.latent_bias = bias_by_flag(plan, "attention_bias", false);
}

// V2: softmax, groups by their best expert ("greedy" has no groups). V3: sigmoid with a correction, groups by their best two.
void routing(Plan& plan) {
  Config& c = plan.config;
  kernels::RouterParams& r = plan.traits.experts.router;
  const std::string method = c.text_or({"topk_method"}, plan.traits.family == "deepseek_v2" ? "greedy" : "noaux_tc");
  const std::string correction = c.gguf() ? "exp_probs_b.bias" : "mlp.gate.e_score_correction_bias";
  bool corrected = method == "noaux_tc";
  if (c.gguf()) {
    corrected = false;
    for (std::int32_t i = 0; i < plan.layer_count(); ++i) corrected |= plan.tensors.has(fmt::format("blk.{}.{}", i, correction));
  } else if (corrected) {
    c.expect_text({"scoring_func"}, "sigmoid");
  } else if (method == "greedy" || method == "group_limited_greedy") {
    c.expect_text({"scoring_func"}, "softmax");
    c.expect_flag({"norm_topk_prob"}, false, "renormalised softmax routing is not part of this family");
  } else {
    c.fail(ErrorCode::kUnsupported, "topk_method \"{}\" is not supported", method);
  }
  if (corrected) plan.names.router_correction = correction;
  if (corrected && !c.has({nullptr, "expert_gating_func"})) r.score = kernels::RouterScore::kSigmoid;
  r.group_score = corrected ? kernels::GroupScore::kTopTwoSum : kernels::GroupScore::kMax;
  if (method == "greedy") return;
  r.groups = c.size_or({"n_group", "expert_group_count"}, 1, 1, plan.traits.experts.experts);
  r.top_groups = c.size_or({"topk_group", "expert_group_used_count"}, r.groups, 1, r.groups);
}

}  // namespace

void plan_deepseek(Plan& plan) {
  read_sizes(plan);
  use_rms_norm(plan);
  latent_sizes(plan);
  latent_rope(plan);
  latent_names(plan);
  Config& c = plan.config;
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  plan.ffn_bias = bias_by_flag(plan, "mlp_bias", false);
  if (!c.has({"n_routed_experts", "expert_count"})) return;
  read_experts(plan, {});
  routing(plan);
  plan.shared_size = c.size_or({"n_shared_experts", "expert_shared_count"}, 0, 0, 256) * plan.expert_size;
  if (c.size_or({"moe_layer_freq"}, 1) != 1) c.fail(ErrorCode::kUnsupported, "moe_layer_freq other than 1 is not supported");
  const auto dense = static_cast<std::size_t>(c.size_or({"first_k_dense_replace", "leading_dense_block_count"}, 0));
  for (std::size_t i = dense; i < plan.traits.layers.size(); ++i) plan.traits.layers[i].ffn = FfnKind::kExperts;
}

}  // namespace weir::model
