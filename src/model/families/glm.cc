// SPDX-License-Identifier: Apache-2.0
// GLM-4 (partial rope in pairs, norms before and after each part) and GLM-4.5 (experts as in DeepSeek V3).
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void glm_base(Plan& plan, bool pairs, bool bias) {
  read_sizes(plan);
  read_attention(plan);
  use_rms_norm(plan, 1e-5);
  use_rope(plan, {.partial = 0.5}, pairs);
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  plan.qkv_bias = bias_by_flag(plan, "attention_bias", bias);
}

}  // namespace

void plan_glm(Plan& plan) {
  glm_base(plan, true, true);
  plan.names.ffn.gate_up = "mlp.gate_up_proj";
}

void plan_glm4(Plan& plan) {
  glm_base(plan, true, true);
  Names& n = plan.names;
  if (plan.config.gguf()) {
    n.post_mixer_norm = "post_attention_norm";
    n.post_ffn_norm = "post_ffw_norm";
    return;
  }
  n.ffn.gate_up = "mlp.gate_up_proj";
  n.post_mixer_norm = "post_self_attn_layernorm";
  n.post_ffn_norm = "post_mlp_layernorm";
}

void plan_glm4_moe(Plan& plan) {
  glm_base(plan, false, false);
  Config& c = plan.config;
  Traits& t = plan.traits;
  Names& n = plan.names;
  if (c.gguf() ? plan.tensors.has("blk.0.attn_q_norm.weight") : c.flag_or({"use_qk_norm"}, false)) t.attention.qk_norm = QkNorm::kPerHead;
  if (c.gguf()) {
    n.ffn_norm = "post_attention_norm";
    n.router_correction = "exp_probs_b.bias";
  } else {
    n.router_correction = "mlp.gate.e_score_correction_bias";
    n.shared = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj", ""};
  }
  read_experts(plan, {.score = kernels::RouterScore::kSigmoid, .renormalize = true});
  kernels::RouterParams& r = t.experts.router;
  r.group_score = kernels::GroupScore::kTopTwoSum;
  r.groups = c.size_or({"n_group", "expert_group_count"}, 1, 1, t.experts.experts);
  r.top_groups = c.size_or({"topk_group", "expert_group_used_count"}, 1, 1, r.groups);
  plan.shared_size = c.size_or({"n_shared_experts", "expert_shared_count"}, 0, 0, 256) * plan.expert_size;
  const auto dense = static_cast<std::size_t>(c.size_or({"first_k_dense_replace", "leading_dense_block_count"}, 1));
  for (std::size_t i = dense; i < t.layers.size(); ++i) t.layers[i].ffn = FfnKind::kExperts;
}

}  // namespace weir::model
