// SPDX-License-Identifier: Apache-2.0
// OLMo 2 and 3 (norms after each part instead of before, q and k normalised as a whole) and OLMoE.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {

void plan_olmo2(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_rms_norm(plan, 1e-5);
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  t.attention.qk_norm = QkNorm::kWhole;
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  Names& n = plan.names;
  n.mixer_norm.clear();
  n.ffn_norm.clear();
  n.post_mixer_norm = c.gguf() ? "post_attention_norm" : "post_attention_layernorm";
  n.post_ffn_norm = c.gguf() ? "post_ffw_norm" : "post_feedforward_layernorm";

  // OLMo 3: three layers of four slide, and only the others' rope is stretched.
  const std::int32_t window = c.size_or({"sliding_window", "attention.sliding_window"}, 0);
  if (window > 0) use_windows(plan, window, [](std::int32_t i) { return (i + 1) % 4 != 0; });
  const RopeSpec stretched = read_rope(c, t.attention.head_dim, t.max_context, {.layer_type = "full_attention"});
  const std::int32_t full = add_rope(c, t, stretched);
  RopeSpec plain;
  plain.rotary_dim = stretched.rotary_dim;
  plain.theta = stretched.theta;
  const std::int32_t sliding = window > 0 ? add_rope(c, t, plain) : full;
  for (LayerTraits& layer : t.layers) layer.rope = layer.window ? sliding : full;
}

void plan_olmoe(Plan& plan) {
  read_decoder(plan);
  if (plan.config.has({"clip_qkv"})) plan.config.fail(ErrorCode::kUnsupported, "clip_qkv is not supported");
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  plan.traits.attention.qk_norm = QkNorm::kWhole;
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  read_experts(plan, {});
  for (LayerTraits& layer : plan.traits.layers) layer.ffn = FfnKind::kExperts;
}

}  // namespace weir::model
