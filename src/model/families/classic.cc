// SPDX-License-Identifier: Apache-2.0
// Decoders with layer norms: GPT-2, GPT-NeoX (Pythia), StarCoder2, StableLM, Nemotron.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void plain_ffn(Plan& plan) {
  for (LayerTraits& layer : plan.traits.layers) layer.ffn = FfnKind::kPlain;
}

void all_biases(Plan& plan, Bias bias) { plan.qkv_bias = plan.o_bias = plan.ffn_bias = bias; }

}  // namespace

void plan_gpt2(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  plain_ffn(plan);
  all_biases(plan, Bias::kRequired);
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "activation_function", Activation::kGeluTanh);
  t.attention.qkv = QkvLayout::kFused;
  c.expect_flag({"scale_attn_weights"}, true, "unscaled attention is not supported");
  c.expect_flag({"scale_attn_by_inverse_layer_idx"}, false, "attention scaled by the layer's index is not supported");
  c.expect_flag({"add_cross_attention"}, false, "cross attention is not supported");
  plan.positions = t.max_context;
  ffn_sizes_by_tensor(plan);
  Names& n = plan.names;
  n.position_embedding = "position_embd";
  if (c.gguf()) return;
  plan.transposed = true;
  n.token_embedding = "wte";
  n.position_embedding = "wpe";
  n.final_norm = "ln_f";
  n.layer = "h.";
  n.mixer_norm = "ln_1";
  n.ffn_norm = "ln_2";
  n.qkv = "attn.c_attn";
  n.o = "attn.c_proj";
  n.ffn = {"", "mlp.c_fc", "mlp.c_proj", ""};
  find_root(plan, {"transformer.", ""});
}

void plan_gpt_neox(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  use_rope(plan, {.partial = 0.25});
  plan.regrouped_rows = true;
  plain_ffn(plan);
  all_biases(plan, Bias::kRequired);
  Traits& t = plan.traits;
  t.parallel = plan.config.flag_or({"use_parallel_residual", "use_parallel_residual"}, true);
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kGeluErf);
  if (plan.config.gguf()) return;
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", true);
  t.attention.qkv = QkvLayout::kPerHead;
  Names& n = plan.names;
  n.token_embedding = "embed_in";
  n.final_norm = "final_layer_norm";
  n.head = "embed_out";
  n.qkv = "attention.query_key_value";
  n.o = "attention.dense";
  n.ffn = {"", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", ""};
  find_root(plan, {"gpt_neox.", ""});
}

void plan_starcoder2(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  use_rope(plan);
  plain_ffn(plan);
  all_biases(plan, bias_by_flag(plan, "use_bias", true));
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kGeluTanh);
  use_windows(plan, plan.config.size_or({"sliding_window", "attention.sliding_window"}, 0), [](std::int32_t) { return true; });
  if (!plan.config.gguf()) plan.names.ffn = {"", "mlp.c_fc", "mlp.c_proj", ""};
}

void plan_stablelm(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  use_rope(plan, {.partial = 0.25});
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  t.attention.qk_norm_kind = NormKind::kLayer;
  const bool gguf = plan.config.gguf();
  t.parallel = gguf ? !plan.tensors.has("blk.0.ffn_norm.weight") : plan.config.flag_or({"use_parallel_residual"}, false);
  if (t.parallel) plan.names.ffn_norm.clear();
  if (gguf ? plan.tensors.has("blk.0.attn_q_norm.weight") : plan.config.flag_or({"qk_layernorm"}, false))
    t.attention.qk_norm = QkNorm::kPerHead;
  if (gguf) return;
  plan.qkv_bias = bias_by_flag(plan, "use_qkv_bias", false);
  plan.names.q_norm = "self_attn.q_layernorm";
  plan.names.k_norm = "self_attn.k_layernorm";
}

void plan_nemotron(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  use_rope(plan, {.partial = 0.5});
  plain_ffn(plan);
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kReluSquared);
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  plan.ffn_bias = bias_by_flag(plan, "mlp_bias", false);
  if (!plan.config.gguf()) plan.norm_offset = 1;
}

}  // namespace weir::model
