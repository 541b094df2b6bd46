// SPDX-License-Identifier: Apache-2.0
// gpt-oss: attention sinks, every other layer slides, clamped swiglu in experts with biases, yarn whose ramp is not rounded.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {

void plan_gpt_oss(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_rms_norm(plan, 1e-5);
  use_rope(plan, {.theta = 150000});  // GGUF cannot say that the ramp is not rounded: there it is, as llama.cpp has it
  Config& c = plan.config;
  Traits& t = plan.traits;
  c.expect_text({"hidden_act"}, "silu");
  use_windows(plan, c.size_or({"sliding_window", "attention.sliding_window"}, 128), [](std::int32_t i) { return i % 2 == 0; });
  read_experts(plan, {.score = kernels::RouterScore::kSoftmaxOfTop});
  t.experts.router.renormalize = false;
  for (LayerTraits& layer : t.layers) layer.ffn = FfnKind::kExperts;
  t.ffn.clamped = true;
  t.ffn.clamp_alpha = static_cast<float>(c.real_or({"swiglu_alpha"}, 1.702));
  t.ffn.clamp_limit = static_cast<float>(c.real_or({"swiglu_limit"}, 7, 1e-6, 1e9));

  Names& n = plan.names;
  plan.router_bias = plan.expert_bias = Bias::kRequired;
  if (c.gguf()) {
    n.ffn_norm = "post_attention_norm";
    n.sinks = "attn_sinks.weight";
    return;
  }
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", true);
  n.sinks = "self_attn.sinks";
  n.router = "mlp.router";
  plan.expert_storage = ExpertStorage::kInterleaved;
}

}  // namespace weir::model
