// SPDX-License-Identifier: Apache-2.0
// Phi-1, 1.5 and 2 (parallel residual, partial rotary, biases everywhere) and Phi-3 to 4-mini (fused weights, longrope).
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {

void plan_phi(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  use_rope(plan, {.partial = 0.5});
  Traits& t = plan.traits;
  t.parallel = true;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kGeluTanh);
  for (LayerTraits& layer : t.layers) layer.ffn = FfnKind::kPlain;
  plan.names.ffn_norm.clear();
  plan.qkv_bias = plan.o_bias = plan.ffn_bias = plan.head_bias = Bias::kRequired;
  if (plan.config.gguf()) return;
  plan.names.final_norm = "final_layernorm";
  plan.names.o = "self_attn.dense";
  plan.names.ffn = {"", "mlp.fc1", "mlp.fc2", ""};
  if (plan.config.flag_or({"qk_layernorm"}, false)) {
    t.attention.qk_norm = QkNorm::kPerHead;
    t.attention.qk_norm_kind = NormKind::kLayer;
    plan.names.q_norm = "self_attn.q_layernorm";
    plan.names.k_norm = "self_attn.k_layernorm";
  }
}

void plan_phi3(Plan& plan) {
  read_decoder(plan);
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  use_windows(plan, plan.config.size_or({"sliding_window", "attention.sliding_window"}, 0), [](std::int32_t) { return true; });
  if (plan.config.gguf()) return;
  plan.names.qkv = "self_attn.qkv_proj";
  plan.names.ffn.gate_up = "mlp.gate_up_proj";
}

}  // namespace weir::model
