// SPDX-License-Identifier: Apache-2.0
// Falcon: attention and ffn in parallel; one KV head (7B), several in groups (40B, "new decoder"), or one for each head.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void falcon_heads(Plan& plan, bool grouped) {
  AttentionTraits& a = plan.traits.attention;
  if (grouped) {
    a.qkv = QkvLayout::kPerGroup;
    return;
  }
  const bool multi_query = plan.config.flag_or({"multi_query"}, true);
  a.kv_heads = multi_query ? 1 : a.heads;
  a.qkv = multi_query ? QkvLayout::kFused : QkvLayout::kPerHead;
}

void falcon_norms(Plan& plan, bool grouped) {
  Names& n = plan.names;
  plan.traits.parallel = grouped || plan.config.flag_or({"parallel_attn"}, true);
  const std::int32_t norms = plan.config.size_or({"num_ln_in_parallel_attn"}, grouped ? 2 : 1, 1, 2);
  if (plan.traits.parallel) n.ffn_norm.clear();
  if (grouped && norms == 2) {
    n.mixer_norm = "ln_attn";
    n.ffn_norm = "ln_mlp";
  }
}

}  // namespace

void plan_falcon(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired);
  use_rope(plan);
  plan.regrouped_rows = true;
  Config& c = plan.config;
  Traits& t = plan.traits;
  for (LayerTraits& layer : t.layers) layer.ffn = FfnKind::kPlain;
  ffn_sizes_by_tensor(plan);
  t.ffn.activation = read_activation(plan, "activation", Activation::kGeluErf);
  c.expect_flag({"alibi"}, false, "attention with linear biases (alibi) is not supported");
  Names& n = plan.names;
  if (c.gguf()) {
    t.parallel = true;
    t.attention.qkv = QkvLayout::kFused;
    n.ffn_norm.clear();
    if (plan.tensors.has("blk.0.attn_norm_2.weight")) {  // the converter's names: attn_norm feeds the ffn here
      n.mixer_norm = "attn_norm_2";
      n.ffn_norm = "attn_norm";
    }
    return;
  }
  const bool grouped = c.flag_or({"new_decoder_architecture"}, false);
  plan.qkv_bias = plan.o_bias = plan.ffn_bias = bias_by_flag(plan, "bias", false);
  n.token_embedding = "word_embeddings";
  n.final_norm = "ln_f";
  n.layer = "h.";
  n.qkv = "self_attention.query_key_value";
  n.o = "self_attention.dense";
  n.ffn = {"", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", ""};
  find_root(plan, {"transformer.", ""});
  falcon_heads(plan, grouped);
  falcon_norms(plan, grouped);
}

}  // namespace weir::model
