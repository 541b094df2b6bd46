// SPDX-License-Identifier: Apache-2.0
// Gemma 1 to 3: embeddings scaled by sqrt(hidden), norm weights stored minus one, tanh gelu; Gemma 2 adds norms after each
// part and soft caps, Gemma 3 windows in a pattern with a rope of their own.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void gemma_base(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_rms_norm(plan);
  Traits& t = plan.traits;
  t.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(t.hidden)));
  if (plan.config.gguf()) return;
  plan.norm_offset = 1;
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
}

void causal_only(Plan& plan) {
  plan.config.expect_flag({"use_bidirectional_attention"}, false, "models that attend in both directions are not supported in this family");
}

void norms_after_each_part(Plan& plan) {
  Names& n = plan.names;
  const bool gguf = plan.config.gguf();
  n.post_mixer_norm = gguf ? "post_attention_norm" : "post_attention_layernorm";
  n.ffn_norm = gguf ? "ffn_norm" : "pre_feedforward_layernorm";
  n.post_ffn_norm = gguf ? "post_ffw_norm" : "post_feedforward_layernorm";
}

// The scale of queries is 1/sqrt(query_pre_attn_scalar). GGUF has no key for it: of all published models only the largest of
// each generation, known by its number of layers, differs from the head's dimension.
void query_scale(Plan& plan, std::size_t layers_of_largest) {
  AttentionTraits& a = plan.traits.attention;
  double scalar = a.head_dim;
  if (plan.config.gguf()) {
    if (plan.traits.layers.size() == layers_of_largest) scalar = static_cast<double>(plan.traits.hidden) / a.heads;
  } else {
    scalar = plan.config.real_or({"query_pre_attn_scalar"}, 256, 1e-6, 1e12);
  }
  a.scale = static_cast<float>(1 / std::sqrt(scalar));
}

void soft_caps(Plan& plan) {
  Config& c = plan.config;
  plan.traits.attention.softcap = static_cast<float>(c.real_or({"attn_logit_softcapping", "attn_logit_softcapping"}, 0, 0, 1e9));
  plan.traits.logit_softcap = static_cast<float>(c.real_or({"final_logit_softcapping", "final_logit_softcapping"}, 0, 0, 1e9));
}

// EmbeddingGemma: an encoder, whose windows lie half on each side.
void sees_both_sides(Plan& plan) {
  plan.traits.encoder = true;
  plan.traits.attention.causal = false;
  for (LayerTraits& layer : plan.traits.layers)
    if (layer.window > 0) layer.window = layer.window / 2 + 1;
}

}  // namespace

void plan_gemma(Plan& plan) {
  gemma_base(plan);
  causal_only(plan);
  use_rope(plan);
  // "gelu" in early configs means the tanh form, which the models were trained with.
  const std::string act = plan.config.text_or({"hidden_activation|hidden_act"}, "gelu");
  plan.traits.ffn.activation =
      act == "gelu" ? Activation::kGeluTanh : read_activation(plan, "hidden_activation|hidden_act", Activation::kGeluTanh);
}

void plan_gemma2(Plan& plan) {
  gemma_base(plan);
  causal_only(plan);
  use_rope(plan);
  norms_after_each_part(plan);
  plan.traits.ffn.activation = read_activation(plan, "hidden_activation", Activation::kGeluTanh);
  query_scale(plan, 46);
  soft_caps(plan);
  use_windows(plan, plan.config.size_or({"sliding_window", "attention.sliding_window"}, 4096), [](std::int32_t i) { return i % 2 == 0; });
}

void plan_gemma3(Plan& plan) {
  gemma_base(plan);
  norms_after_each_part(plan);
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "hidden_activation", Activation::kGeluTanh);
  t.attention.qk_norm = QkNorm::kPerHead;
  query_scale(plan, 62);
  soft_caps(plan);
  const std::int32_t pattern = c.size_or({"sliding_window_pattern|_sliding_window_pattern", "attention.sliding_window_pattern"}, 6, 1);
  use_windows(plan, c.size_or({"sliding_window", "attention.sliding_window"}, 4096),
              [&](std::int32_t i) { return (i + 1) % pattern != 0; });

  if (c.flag_or({"use_bidirectional_attention"}, false)) sees_both_sides(plan);
  const std::int32_t dim = t.attention.head_dim;
  const std::int32_t full = add_rope(c, t, read_rope(c, dim, t.max_context, {.theta = 1e6, .layer_type = "full_attention"}));
  RopeSpec local;  // never stretched, unless transformers 5 says so for this kind of layer
  if (c.object("rope_parameters") && c.object("rope_parameters")->contains("sliding_attention"))
    local = read_rope(c, dim, t.max_context, {.theta = 1e4, .layer_type = "sliding_attention"});
  local.rotary_dim = dim;
  if (local.scaling == RopeScaling::kNone) local.theta = c.real_or({"rope_local_base_freq", "rope.freq_base_swa"}, local.theta, 1e-9, 1e12);
  const std::int32_t sliding = add_rope(c, t, local);
  for (LayerTraits& layer : t.layers) layer.rope = layer.window ? sliding : full;
}

}  // namespace weir::model
