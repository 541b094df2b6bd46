// SPDX-License-Identifier: Apache-2.0
// Encoders after BERT: DistilBERT (half of it), NomicBERT and GTE ("new") with rope and gated feed-forward parts, ModernBERT with norms
// before each part and layers that see a window to both sides.
#include <algorithm>
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

// Norms stand where BERT has them, after each residual; no head, nothing causal.
void encoder_base(Plan& plan, Bias norm_bias, double epsilon) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, norm_bias, epsilon);
  plan.traits.encoder = true;
  plan.traits.attention.causal = false;
  plan.config.expect_flag({nullptr, "attention.causal"}, false, "an encoder used as a decoder is not supported");
  Names& n = plan.names;
  n.mixer_norm.clear();
  n.ffn_norm.clear();
  n.final_norm.clear();
  n.head.clear();
  if (plan.config.gguf()) {
    n.embedding_norm = "token_embd_norm";
    n.after_mixer = "attn_output_norm";
    n.after_ffn = "layer_output_norm";
    plan.ignored = {"cls."};
  } else {
    n.embedding_norm = "embeddings.LayerNorm";
    n.token_embedding = "embeddings.word_embeddings";
    plan.ignored = {"cls.", "lm_head.", "classifier.", "qa_outputs.", "pooler.", "vocab_", "decoder.", "head."};  // heads for other tasks
  }
}

void use_types(Plan& plan, const char* name) {
  const TensorView* table = plan.tensors.peek(plan.names.root + name + ".weight");
  if (!table || table->rows() < 1 || table->rows() > 4096) return;
  plan.names.type_embedding = name;
  plan.types = static_cast<std::int32_t>(table->rows());
}

}  // namespace

void plan_distilbert(Plan& plan) {
  encoder_base(plan, Bias::kRequired, 1e-12);
  Traits& t = plan.traits;
  t.ffn.activation = read_activation(plan, "activation", Activation::kGeluErf);
  for (LayerTraits& layer : t.layers) layer.ffn = FfnKind::kPlain;
  plan.qkv_bias = plan.o_bias = plan.ffn_bias = Bias::kRequired;
  plan.positions = t.max_context;
  Names& n = plan.names;
  n.position_embedding = "embeddings.position_embeddings";
  n.layer = "transformer.layer.";
  n.q = "attention.q_lin";
  n.k = "attention.k_lin";
  n.v = "attention.v_lin";
  n.o = "attention.out_lin";
  n.after_mixer = "sa_layer_norm";
  n.ffn = {"", "ffn.lin1", "ffn.lin2", ""};
  n.after_ffn = "output_layer_norm";
  find_root(plan, {"", "distilbert."});
  if (is_sequence_classifier(plan))
    use_classifier(plan, {.dense = "pre_classifier", .out = "classifier", .activation = HeadActivation::kRelu});
}

void plan_nomic_bert(Plan& plan) {
  encoder_base(plan, Bias::kRequired, 1e-12);
  Config& c = plan.config;
  use_rope(plan, {.theta = 1000, .partial = c.real_or({"rotary_emb_fraction"}, 1)});
  c.expect_flag({"prenorm"}, false, "NomicBERT with norms before its parts is not supported");
  c.expect_flag({"parallel_block"}, false, "NomicBERT with parallel parts is not supported");
  c.expect_flag({"use_rms_norm"}, false, "NomicBERT with RMS norms is not supported");
  c.expect_flag({"causal"}, false, "NomicBERT as a decoder is not supported");
  c.expect_flag({"rotary_emb_interleaved"}, false, "NomicBERT with interleaved rope is not supported");
  if (c.real_or({"rotary_scaling_factor"}, 0) != 0) c.fail(ErrorCode::kUnsupported, "rotary_scaling_factor is not supported");
  if (c.size_or({"moe_every_n_layers", "moe_every_n_layers"}, 0) > 0)
    c.fail(ErrorCode::kUnsupported, "NomicBERT with a mixture of experts is not supported");
  if (c.has({"activation_function"})) c.expect_text({"activation_function"}, "swiglu");
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kSilu);
  plan.qkv_bias = plan.o_bias = plan.ffn_bias = Bias::kOptional;
  if (c.gguf()) return use_types(plan, "token_types");
  Names& n = plan.names;
  n.embedding_norm = "emb_ln";
  n.layer = "encoder.layers.";
  n.qkv = "attn.Wqkv";
  n.o = "attn.out_proj";
  n.after_mixer = "norm1";
  n.ffn = {"mlp.fc12", "mlp.fc11", "mlp.fc2", ""};
  n.after_ffn = "norm2";
  find_root(plan, {"", "bert.", "nomic_bert."});
  use_types(plan, "embeddings.token_type_embeddings");
}

// model_type "new" of Alibaba-NLP/new-impl.
void plan_gte(Plan& plan) {
  encoder_base(plan, Bias::kRequired, 1e-12);
  Config& c = plan.config;
  c.expect_text({"position_embedding_type"}, "rope");
  c.expect_text({"layer_norm_type"}, "layer_norm");
  c.expect_flag({"logn_attention_scale"}, false, "logn_attention_scale is not supported");
  RopeSpec spec;
  const json::Object* scaling = c.object("rope_scaling");
  const json::Value* type = scaling ? json::find(*scaling, "type") : nullptr;
  if (type && type->is_string() && type->get_string() == "ntk") {
    Config values(*scaling);
    const double factor = values.real({"factor"}, 1, 1e6), dim = plan.traits.attention.head_dim;
    if (values.has({"mixed_b"})) c.fail(ErrorCode::kUnsupported, "rope_scaling.mixed_b is not supported");
    c.keep(values.status());
    spec.theta = c.real_or({"rope_theta"}, 10000, 1e-9, 1e12) * factor;
    spec.rotary_dim = plan.traits.attention.head_dim;
    spec.divisors.assign(static_cast<std::size_t>(spec.rotary_dim / 2), std::pow(factor, 2 / dim));
  } else {
    spec = read_rope(c, plan.traits.attention.head_dim, plan.traits.max_context);
  }
  const std::int32_t rope = add_rope(c, plan.traits, spec);
  for (LayerTraits& layer : plan.traits.layers) layer.rope = rope;
  plan.traits.ffn.activation = read_activation(plan, "hidden_act", Activation::kGeluErf);
  plan.qkv_bias = plan.o_bias = plan.ffn_bias = Bias::kOptional;
  plan.up_first = true;
  Names& n = plan.names;
  n.layer = "encoder.layer.";
  n.qkv = "attention.qkv_proj";
  n.o = "attention.o_proj";
  n.after_mixer = "attn_ln";
  n.ffn = {"", "", "mlp.down_proj", "mlp.up_gate_proj"};
  n.after_ffn = "mlp_ln";
  find_root(plan, {"", "new."});
  use_types(plan, "embeddings.token_type_embeddings");
  if (is_sequence_classifier(plan)) {
    const std::string pooler = n.root + "pooler.dense";
    use_classifier(plan, {.dense = pooler.c_str(), .out = "classifier", .activation = HeadActivation::kTanh});
  }
}

namespace {

// Every third layer sees all, the others half of local_attention to each side; each kind has a rope of its own.
void modern_layers(Plan& plan) {
  Config& c = plan.config;
  Traits& t = plan.traits;
  const std::int32_t every = c.size_or({"global_attn_every_n_layers", "attention.sliding_window_pattern"}, 3, 1);
  const std::int32_t local = c.size_or({"local_attention", "attention.sliding_window"}, c.gguf() ? 0 : 128, 0);
  use_windows(plan, local > 0 ? local / 2 + 1 : 0, [&](std::int32_t i) { return i % every != 0; });
  const std::int32_t dim = t.attention.head_dim;
  RopeSpec full = read_rope(c, dim, t.max_context, {.theta = 160000, .layer_type = "full_attention"});
  full.theta = c.real_or({"global_rope_theta", "rope.freq_base"}, full.theta, 1e-9, 1e12);
  RopeSpec sliding = full;
  if (c.object("rope_parameters")) sliding = read_rope(c, dim, t.max_context, {.theta = 10000, .layer_type = "sliding_attention"});
  sliding.theta = c.real_or({"local_rope_theta", "rope.freq_base_swa"}, c.object("rope_parameters") ? sliding.theta : 10000, 1e-9, 1e12);
  const std::int32_t on_full = add_rope(c, t, full), on_sliding = add_rope(c, t, sliding);
  for (LayerTraits& layer : t.layers) layer.rope = layer.window > 0 ? on_sliding : on_full;
}

void modern_classifier(Plan& plan) {
  Config& c = plan.config;
  const std::string pooling = c.text_or({"classifier_pooling"}, "cls"), activation = c.text_or({"classifier_activation"}, "gelu");
  if (pooling != "cls" && pooling != "mean") c.fail(ErrorCode::kUnsupported, "classifier_pooling \"{}\" is not supported", pooling);
  if (activation != "gelu") c.fail(ErrorCode::kUnsupported, "classifier_activation \"{}\" is not supported", activation);
  use_classifier(plan, {.dense = "head.dense",
                        .norm = "head.norm",
                        .out = "classifier",
                        .activation = HeadActivation::kGelu,
                        .pooling = pooling == "mean" ? Pooling::kMean : Pooling::kCls});
}

}  // namespace

void plan_modernbert(Plan& plan) {
  encoder_base(plan, Bias::kNone, 1e-5);
  plan.norm_bias = bias_by_flag(plan, "norm_bias", false);
  plan.traits.ffn.activation = read_activation(plan, "hidden_activation", Activation::kGeluErf);
  const std::string act = plan.config.text_or({nullptr, "hidden_activation"}, "gelu");
  if (act == "silu" || act == "swiglu") plan.traits.ffn.activation = Activation::kSilu;
  plan.qkv_bias = plan.o_bias = bias_by_flag(plan, "attention_bias", false);
  plan.ffn_bias = bias_by_flag(plan, "mlp_bias", false);
  plan.first_mixer_norm_optional = true;
  modern_layers(plan);
  Names& n = plan.names;
  n.after_mixer.clear();
  n.after_ffn.clear();
  if (plan.config.gguf()) {
    n.mixer_norm = "attn_norm";
    n.ffn_norm = "ffn_norm";
    n.final_norm = "output_norm";
    n.ffn = {"", "", "ffn_down", "ffn_up"};
    return;
  }
  n.token_embedding = "embeddings.tok_embeddings";
  n.embedding_norm = "embeddings.norm";
  n.layer = "layers.";
  n.mixer_norm = "attn_norm";
  n.ffn_norm = "mlp_norm";
  n.final_norm = "final_norm";
  n.qkv = "attn.Wqkv";
  n.o = "attn.Wo";
  n.ffn = {"", "", "mlp.Wo", "mlp.Wi"};
  find_root(plan, {"", "model."});
  if (is_sequence_classifier(plan)) modern_classifier(plan);
}

}  // namespace weir::model
