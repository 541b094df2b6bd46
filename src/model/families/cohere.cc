// SPDX-License-Identifier: Apache-2.0
// Command R and Command R7B: layer norms without bias, one norm for attention and ffn in parallel, rope in pairs.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void cohere_base(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kNone);
  use_rope(plan, {}, true);  // pairs in both containers: converters leave the rows as they are
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.parallel = true;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  t.logit_scale = static_cast<float>(c.real_or({"logit_scale", "logit_scale"}, 0.0625, -1e6, 1e6));
  plan.names.ffn_norm.clear();
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
}

}  // namespace

void plan_cohere(Plan& plan) {
  cohere_base(plan);
  AttentionTraits& a = plan.traits.attention;
  a.qk_norm_kind = NormKind::kLayer;
  if (plan.config.gguf() ? plan.tensors.has("blk.0.attn_q_norm.weight") : plan.config.flag_or({"use_qk_norm"}, false))
    a.qk_norm = QkNorm::kPerHead;
}

void plan_cohere2(Plan& plan) {
  cohere_base(plan);
  Config& c = plan.config;
  c.expect_flag({"use_qk_norm"}, false, "normalised queries and keys are not supported in this family");
  c.expect_flag({"use_gated_activation"}, true, "an ffn without gate is not supported in this family");
  c.expect_flag({"use_parallel_block"}, true, "attention and ffn one after the other are not supported in this family");
  c.expect_text({"order_of_interleaved_layers"}, "local_attn_first");
  const std::int32_t pattern = c.size_or({"sliding_window_pattern|_sliding_window_pattern", "attention.sliding_window_pattern"}, 4, 1);
  use_windows(plan, c.size_or({"sliding_window", "attention.sliding_window"}, 4096),
              [&](std::int32_t i) { return (i + 1) % pattern != 0; });
  for (LayerTraits& layer : plan.traits.layers)
    if (layer.window == 0) layer.rope = -1;
}

}  // namespace weir::model
