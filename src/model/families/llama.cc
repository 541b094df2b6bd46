// SPDX-License-Identifier: Apache-2.0
// Llama and what follows it closely: pre-norm, SwiGLU, rotary embedding, grouped queries.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

// q, k, v, o by one flag; the three of the ffn by another. GGUF: where present.
void llama_biases(Plan& plan) {
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  plan.ffn_bias = bias_by_flag(plan, "mlp_bias", false);
}

void llama_base(Plan& plan, const RopeDefaults& rope = {}) {
  read_sizes(plan);
  read_attention(plan);
  use_rms_norm(plan);
  use_rope(plan, rope, rows_are_paired(plan));
  plan.paired_rows = true;
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
}

void experts_everywhere(Plan& plan) {
  for (LayerTraits& layer : plan.traits.layers) layer.ffn = FfnKind::kExperts;
}

void mixtral_experts(Plan& plan) {
  read_experts(plan, {.renormalize = true});
  experts_everywhere(plan);
  if (plan.config.gguf()) return;
  plan.names.router = "block_sparse_moe.gate";
  plan.names.experts = "block_sparse_moe.experts.";
  plan.names.expert = {"w1", "w3", "w2", ""};
  if (!plan.tensors.has(plan.names.root + plan.names.layer + "0.block_sparse_moe.gate.weight")) {  // as transformers 5 names it in memory
    plan.names.router = "mlp.gate";
    plan.names.experts = "mlp.experts.";
  }
}

void granite_multipliers(Plan& plan) {
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.embedding_scale = static_cast<float>(c.real_or({"embedding_multiplier", "embedding_scale"}, 1));
  t.residual_scale = static_cast<float>(c.real_or({"residual_multiplier", "residual_scale"}, 1));
  t.attention.scale = static_cast<float>(c.real_or({"attention_multiplier", "attention.scale"}, t.attention.scale));
  t.logit_scale = static_cast<float>(1 / c.real_or({"logits_scaling", "logit_scale"}, 1, 1e-6, 1e6));
}

}  // namespace

void plan_llama(Plan& plan) {
  llama_base(plan);
  llama_biases(plan);
  if (!plan.config.gguf()) return;
  // One GGUF architecture stands for Llama, Mistral and Mixtral.
  const std::int32_t window = plan.config.size_or({nullptr, "attention.sliding_window"}, 0);
  use_windows(plan, window, [](std::int32_t) { return true; });
  if (plan.config.size_or({nullptr, "expert_count"}, 0) > 0) mixtral_experts(plan);
}

void plan_mistral(Plan& plan) {
  llama_base(plan);
  llama_biases(plan);
  use_windows(plan, plan.config.size_or({"sliding_window"}, 0), [](std::int32_t) { return true; });
}

void plan_mixtral(Plan& plan) {
  llama_base(plan, {.theta = 1e6});
  use_windows(plan, plan.config.size_or({"sliding_window"}, 0), [](std::int32_t) { return true; });
  mixtral_experts(plan);
}

void plan_smollm3(Plan& plan) {
  llama_base(plan, {.theta = 2e6});
  llama_biases(plan);
  Config& c = plan.config;
  const std::int32_t interval = c.size_or({"no_rope_layer_interval"}, 4, 1);
  const auto rotated = c.integers({"no_rope_layers"});  // 1 where the layer has rope, whatever the name says
  for (std::size_t i = 0; i < plan.traits.layers.size(); ++i) {
    const bool rope = i < rotated.size() ? rotated[i] != 0 : (i + 1) % static_cast<std::size_t>(interval) != 0;
    if (!rope) plan.traits.layers[i].rope = -1;
  }
  if (c.flag_or({"use_sliding_window"}, false))
    use_windows(plan, c.size_or({"sliding_window"}, 0),
                [&](std::int32_t i) { return plan.traits.layers[static_cast<std::size_t>(i)].rope < 0; });
}

void plan_granite(Plan& plan) {
  llama_base(plan);
  llama_biases(plan);
  granite_multipliers(plan);
}

void plan_granite_moe(Plan& plan) {
  llama_base(plan);
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  granite_multipliers(plan);
  read_experts(plan, {.score = kernels::RouterScore::kSoftmaxOfTop});
  experts_everywhere(plan);
  plan.shared_size = plan.config.size_or({"shared_intermediate_size", "expert_shared_feed_forward_length"}, 0);
  if (plan.config.gguf()) return;
  Names& n = plan.names;
  n.router = "block_sparse_moe.router.layer";
  n.stacked_gate_up = "block_sparse_moe.input_linear.weight";
  n.stacked_down = "block_sparse_moe.output_linear.weight";
  n.shared = {"", "", "shared_mlp.output_linear", "shared_mlp.input_linear"};
}

}  // namespace weir::model
