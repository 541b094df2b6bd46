// SPDX-License-Identifier: Apache-2.0
// Qwen3-Next and Qwen3.5: three layers of the gated delta rule to one of gated attention.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen.h"

namespace weir::model {
namespace {

void delta_names(Plan& plan) {
  Names& n = plan.names;
  if (plan.config.gguf()) {
    n.ffn_norm = "post_attention_norm";
    n.delta_qkvz = "ssm_in";  // early converters kept it whole
    n.delta_ba = "ssm_ba";
    n.delta_qkv = "attn_qkv";
    n.delta_z = "attn_gate";
    n.delta_alpha = "ssm_alpha";
    n.delta_beta = "ssm_beta";
    n.conv = "ssm_conv1d";
    n.a = "ssm_a";
    n.dt_bias = "ssm_dt.bias";
    n.recurrent_norm = "ssm_norm";
    n.recurrent_out = "ssm_out";
    return;
  }
  n.delta_qkvz = "linear_attn.in_proj_qkvz";
  n.delta_ba = "linear_attn.in_proj_ba";
  n.delta_qkv = "linear_attn.in_proj_qkv";
  n.delta_z = "linear_attn.in_proj_z";
  n.delta_alpha = "linear_attn.in_proj_a";
  n.delta_beta = "linear_attn.in_proj_b";
  n.conv = "linear_attn.conv1d";
  n.a = "linear_attn.A_log";
  n.dt_bias = "linear_attn.dt_bias";
  n.recurrent_norm = "linear_attn.norm";
  n.recurrent_out = "linear_attn.out_proj";
}

void delta_sizes(Plan& plan) {
  Config& c = plan.config;
  RecurrentTraits& r = plan.traits.recurrent;
  r.conv_taps = c.size({"linear_conv_kernel_dim", "ssm.conv_kernel"}, 1, 64);
  r.key_heads = c.size({"linear_num_key_heads", "ssm.group_count"}, 1, 4096);
  r.value_heads = c.size({"linear_num_value_heads", "ssm.time_step_rank"}, 1, 4096);
  r.key_dim = c.size({"linear_key_head_dim", "ssm.state_size"}, 1, 65536);
  r.value_dim = c.gguf() ? c.size({nullptr, "ssm.inner_size"}) / r.value_heads : c.size({"linear_value_head_dim"}, 1, 65536);
  r.norm_group = r.value_dim;
  r.norm_before_gate = true;
}

void delta_layers(Plan& plan) {
  Config& c = plan.config;
  auto& layers = plan.traits.layers;
  const auto types = c.texts({"layer_types"});
  const auto recurrent = c.integers({nullptr, "attention.recurrent_layers"});
  const auto interval = static_cast<std::size_t>(c.size_or({"full_attention_interval", "full_attention_interval"}, 4, 1));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    bool delta = (i + 1) % interval != 0;
    if (i < recurrent.size()) delta = recurrent[i] != 0;
    if (i < types.size()) delta = types[i] == "linear_attention";
    if (i < types.size() && !delta && types[i] != "full_attention")
      c.fail(ErrorCode::kUnsupported, "layer_types: \"{}\" is not supported in this family", types[i]);
    if (!delta) continue;
    layers[i].mixer = MixerKind::kGatedDelta;
    layers[i].rope = -1;
  }
}

void next_base(Plan& plan) {
  read_decoder(plan, {.partial = 0.25});
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  t.attention.qk_norm = QkNorm::kPerHead;
  t.attention.output_gate = true;
  plan.config.expect_flag({"attn_output_gate"}, true, "attention without its output gate is not supported in this family");
  if (!plan.config.gguf()) {
    plan.norm_offset = 1;
    plan.ignored.emplace_back("mtp.");
    plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  }
  delta_names(plan);
  delta_sizes(plan);
  delta_layers(plan);
}

}  // namespace

void plan_qwen3_next(Plan& plan) {
  next_base(plan);
  read_experts(plan, {.renormalize = true});
  qwen_shared_expert(plan);
  qwen_sparse_layers(plan);
}

void plan_qwen3_5(Plan& plan) {
  next_base(plan);
  plan.traits.recurrent.tiled_value_heads = plan.config.gguf();  // the converter deals value heads out like cards
  if (!plan.config.has({"num_experts", "expert_count"})) return;
  read_experts(plan, {.renormalize = true});
  qwen_shared_expert(plan);
  for (LayerTraits& layer : plan.traits.layers) layer.ffn = FfnKind::kExperts;
}

}  // namespace weir::model
