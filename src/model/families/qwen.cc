// SPDX-License-Identifier: Apache-2.0
// Qwen2 (biases on q, k and v), Qwen3 (q and k normalised per head) and their mixtures of experts.
#include <algorithm>

#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen.h"

namespace weir::model {
namespace {

// Windows count only when asked for, and then from layer max_window_layers on.
void qwen_windows(Plan& plan) {
  Config& c = plan.config;
  if (!c.flag_or({"use_sliding_window"}, false)) return;
  const std::int32_t window = c.size_or({"sliding_window"}, 0), first = c.size_or({"max_window_layers"}, 28);
  use_windows(plan, window, [&](std::int32_t i) { return i >= first; });
}

void qwen_base(Plan& plan) {
  read_decoder(plan);
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  qwen_windows(plan);
}

void qwen3_attention(Plan& plan) {
  plan.traits.attention.qk_norm = QkNorm::kPerHead;
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
}

}  // namespace

void qwen_sparse_layers(Plan& plan) {
  const std::int32_t step = plan.config.size_or({"decoder_sparse_step"}, 1, 1);
  const auto dense = plan.config.integers({"mlp_only_layers"});
  for (std::int32_t i = 0; i < plan.layer_count(); ++i)
    if ((i + 1) % step == 0 && std::ranges::find(dense, i) == dense.end())
      plan.traits.layers[static_cast<std::size_t>(i)].ffn = FfnKind::kExperts;
}

void qwen_shared_expert(Plan& plan) {
  plan.shared_size = plan.config.size_or({"shared_expert_intermediate_size", "expert_shared_feed_forward_length"}, 0);
  plan.names.shared_gate = plan.config.gguf() ? "ffn_gate_inp_shexp" : "mlp.shared_expert_gate";
}

void plan_qwen2(Plan& plan) {
  qwen_base(plan);
  if (!plan.config.gguf()) plan.qkv_bias = Bias::kRequired;
}

void plan_qwen3(Plan& plan) {
  qwen_base(plan);
  qwen3_attention(plan);
}

void plan_qwen2_moe(Plan& plan) {
  qwen_base(plan);
  plan.qkv_bias = bias_by_flag(plan, "qkv_bias", true);
  read_experts(plan, {});
  qwen_shared_expert(plan);
  qwen_sparse_layers(plan);
}

void plan_qwen3_moe(Plan& plan) {
  qwen_base(plan);
  qwen3_attention(plan);
  read_experts(plan, {.renormalize = plan.config.gguf()});  // GGUF files do not say; all models of the family renormalise
  qwen_sparse_layers(plan);
}

}  // namespace weir::model
