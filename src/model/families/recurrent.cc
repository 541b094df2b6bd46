// SPDX-License-Identifier: Apache-2.0
// Mamba-2 (nothing but state space layers) and LFM2 (short convolutions with some attention layers between).
#include <algorithm>
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void mamba2_names(Plan& plan) {
  Names& n = plan.names;
  n.ffn_norm.clear();
  if (plan.config.gguf()) {
    n.recurrent_in = "ssm_in";
    n.recurrent_out = "ssm_out";
    n.recurrent_norm = "ssm_norm";
    n.conv = "ssm_conv1d";
    n.a = "ssm_a";
    n.d = "ssm_d";
    n.dt_bias = "ssm_dt.bias";
    return;
  }
  n.token_embedding = "embeddings";
  n.final_norm = "norm_f";
  n.mixer_norm = "norm";
  n.recurrent_in = "mixer.in_proj";
  n.recurrent_out = "mixer.out_proj";
  n.recurrent_norm = "mixer.norm";
  n.conv = "mixer.conv1d";
  n.a = "mixer.A_log";
  n.d = "mixer.D";
  n.dt_bias = "mixer.dt_bias";
  find_root(plan, {"backbone.", "model.", ""});
}

// The ffn of LFM2 may state a size that is still to be adjusted, as Llama's first code did.
void lfm2_ffn_size(Plan& plan) {
  Config& c = plan.config;
  std::int64_t size = c.size({"block_ff_dim|intermediate_size"});
  if (c.flag_or({"block_auto_adjust_ff_dim"}, true)) {
    size = 2 * size / 3;
    size = static_cast<std::int64_t>(c.real_or({"block_ffn_dim_multiplier"}, 1, 0, 1000) * static_cast<double>(size));
    const std::int64_t multiple = c.size_or({"block_multiple_of"}, 256, 1);
    size = (size + multiple - 1) / multiple * multiple;
  }
  if (size < 1 || size > kMaxSize) return c.fail(ErrorCode::kCorrupt, "an ffn of inner size {}", size);
  std::ranges::fill(plan.ffn_sizes, static_cast<std::int32_t>(size));
}

bool is_conv_layer(Plan& plan, std::size_t layer, const std::vector<std::string>& types, const std::vector<std::int64_t>& attention) {
  if (!types.empty()) return layer < types.size() && types[layer] == "conv";
  return std::ranges::find(attention, static_cast<std::int64_t>(layer)) == attention.end() && plan.config.has({"full_attn_idxs"});
}

void lfm2_layers(Plan& plan) {
  Config& c = plan.config;
  auto& layers = plan.traits.layers;
  const auto types = c.texts({"layer_types"});
  for (const std::string& type : types)
    if (type != "conv" && type != "full_attention")
      c.fail(ErrorCode::kUnsupported, "layer_types: \"{}\" is not supported in this family", type);
  const auto attention = c.integers({"full_attn_idxs"});
  const auto kv_heads = c.gguf() ? c.per_layer({nullptr, "attention.head_count_kv"}, layers.size(), 1) : std::vector<std::int64_t>{};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool conv = c.gguf() ? kv_heads[i] == 0 : is_conv_layer(plan, i, types, attention);
    if (!conv) continue;
    layers[i].mixer = MixerKind::kShortConv;
    layers[i].rope = -1;
  }
}

}  // namespace

void plan_mamba2(Plan& plan) {
  read_sizes(plan);
  use_rms_norm(plan, 1e-5);
  mamba2_names(plan);
  Config& c = plan.config;
  Traits& t = plan.traits;
  RecurrentTraits& r = t.recurrent;
  for (LayerTraits& layer : t.layers) {
    layer.mixer = MixerKind::kMamba2;
    layer.ffn = FfnKind::kNone;
  }
  r.conv_taps = c.size({"conv_kernel", "ssm.conv_kernel"}, 1, 64);
  r.key_heads = c.size({"n_groups", "ssm.group_count"}, 1, 4096);
  r.key_dim = c.size({"state_size", "ssm.state_size"}, 1, 65536);
  r.value_heads = c.size({"num_heads", "ssm.time_step_rank"}, 1, 65536);
  const std::int32_t inner =
      c.gguf() ? c.size({nullptr, "ssm.inner_size"}) : r.value_heads * std::min(kMaxSize / r.value_heads, c.size({"head_dim"}, 1, 65536));
  if (inner % r.value_heads || inner % r.key_heads)
    c.fail(ErrorCode::kCorrupt, "an inner size of {} for {} heads and {} groups", inner, r.value_heads, r.key_heads);
  const double expected = c.real_or({"expand"}, static_cast<double>(inner) / t.hidden, 0, 1e6) * t.hidden;
  if (std::floor(expected + 0.5) != inner)
    c.fail(ErrorCode::kCorrupt, "{} heads give an inner size of {}, but expand says {}", r.value_heads, inner, expected);
  r.value_dim = std::max(1, inner / r.value_heads);
  r.norm_group = std::max(1, inner / r.key_heads);
  r.norm_before_gate = false;  // whatever config.json says: the reference multiplies by the gate first
  c.expect_text({"hidden_act"}, "silu");
  if (const auto limit = c.reals({"time_step_limit"}, 2); limit.size() == 2) {
    r.dt_min = static_cast<float>(std::max(limit[0], 0.0));
    r.dt_max = static_cast<float>(std::min(limit[1], 1e30));
    if (r.dt_min > r.dt_max) c.fail(ErrorCode::kCorrupt, "time_step_limit {} to {}", limit[0], limit[1]);
  }
  if (c.gguf()) return;
  plan.recurrent_bias = bias_by_flag(plan, "use_bias", false);
  plan.conv_bias = bias_by_flag(plan, "use_conv_bias", true);
}

namespace {

void lfm2_base(Plan& plan) {
  read_decoder(plan);
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.attention.qk_norm = QkNorm::kPerHead;
  t.recurrent.conv_taps = c.size({"conv_L_cache", "shortconv.l_cache"}, 1, 64);
  lfm2_layers(plan);
  Names& n = plan.names;
  if (c.gguf()) {
    n.final_norm = "token_embd_norm";
    n.recurrent_in = "shortconv.in_proj";
    n.recurrent_out = "shortconv.out_proj";
    n.conv = "shortconv.conv";
    return;
  }
  plan.recurrent_bias = plan.conv_bias = bias_by_flag(plan, "conv_bias", false);
  n.final_norm = "embedding_norm";
  n.mixer_norm = "operator_norm";
  n.ffn_norm = "ffn_norm";
  n.o = "self_attn.out_proj";
  n.q_norm = "self_attn.q_layernorm";
  n.k_norm = "self_attn.k_layernorm";
  n.ffn = {"feed_forward.w1", "feed_forward.w3", "feed_forward.w2", ""};
  n.recurrent_in = "conv.in_proj";
  n.recurrent_out = "conv.out_proj";
  n.conv = "conv.conv";
}

}  // namespace

void plan_lfm2(Plan& plan) {
  lfm2_base(plan);
  if (!plan.config.gguf()) lfm2_ffn_size(plan);
}

void plan_lfm2_moe(Plan& plan) {
  lfm2_base(plan);
  Config& c = plan.config;
  Names& n = plan.names;
  read_experts(plan, {.score = kernels::RouterScore::kSigmoid, .renormalize = true});
  if (c.gguf() || c.flag_or({"use_expert_bias"}, true)) n.router_correction = c.gguf() ? "exp_probs_b.bias" : "feed_forward.expert_bias";
  const auto dense = static_cast<std::size_t>(c.size_or({"num_dense_layers", "leading_dense_block_count"}, 2));
  for (std::size_t i = dense; i < plan.traits.layers.size(); ++i) plan.traits.layers[i].ffn = FfnKind::kExperts;
  if (c.gguf()) return;
  n.router = "feed_forward.gate";
  n.experts = "feed_forward.experts.";
  n.expert = {"w1", "w3", "w2", ""};
  n.stacked_gate_up = "feed_forward.experts.gate_up_proj";
  n.stacked_down = "feed_forward.experts.down_proj";
}

}  // namespace weir::model
