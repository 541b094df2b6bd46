// SPDX-License-Identifier: Apache-2.0
// BERT and RoBERTa encoders: learned positions, norms after each residual, attention in both directions.
#include "model/families/common.h"
#include "model/families/families.h"

namespace weir::model {
namespace {

void bert_names(Plan& plan) {
  Names& n = plan.names;
  n.mixer_norm.clear();
  n.ffn_norm.clear();
  n.final_norm.clear();
  n.head.clear();
  if (plan.config.gguf()) {
    n.position_embedding = "position_embd";
    n.type_embedding = "token_types";
    n.embedding_norm = "token_embd_norm";
    n.after_mixer = "attn_output_norm";
    n.after_ffn = "layer_output_norm";
    plan.ignored = {"cls."};
    return;
  }
  n.token_embedding = "embeddings.word_embeddings";
  n.position_embedding = "embeddings.position_embeddings";
  n.type_embedding = "embeddings.token_type_embeddings";
  n.embedding_norm = "embeddings.LayerNorm";
  n.pooler = "pooler.dense";
  n.layer = "encoder.layer.";
  n.q = "attention.self.query";
  n.k = "attention.self.key";
  n.v = "attention.self.value";
  n.o = "attention.output.dense";
  n.after_mixer = "attention.output.LayerNorm";
  n.ffn = {"", "intermediate.dense", "output.dense", ""};
  n.after_ffn = "output.LayerNorm";
  find_root(plan, {"", "bert.", "roberta."});
  plan.ignored = {"cls.", "lm_head.", "classifier.", "qa_outputs."};  // heads for other tasks
}

std::int32_t rows_of(const Plan& plan, const std::string& name) {
  const TensorView* view = plan.tensors.peek(plan.names.root + name + ".weight");
  return view && view->rows() > 0 && view->rows() <= kMaxSize ? static_cast<std::int32_t>(view->rows()) : 1;
}

void plan_encoder(Plan& plan) {
  read_sizes(plan);
  read_attention(plan);
  use_layer_norm(plan, Bias::kRequired, 1e-12);
  Config& c = plan.config;
  Traits& t = plan.traits;
  t.encoder = true;
  t.attention.causal = false;
  t.ffn.activation = read_activation(plan, "hidden_act", Activation::kGeluErf);
  for (LayerTraits& layer : t.layers) layer.ffn = FfnKind::kPlain;
  plan.qkv_bias = plan.o_bias = plan.ffn_bias = Bias::kRequired;
  c.expect_text({"position_embedding_type"}, "absolute");
  c.expect_flag({"is_decoder"}, false, "BERT as a decoder is not supported");
  c.expect_flag({"add_cross_attention"}, false, "cross attention is not supported");
  c.expect_flag({nullptr, "attention.causal"}, false, "BERT as a decoder is not supported");
  bert_names(plan);
  plan.positions = c.gguf() ? rows_of(plan, plan.names.position_embedding) : t.max_context;
  plan.types = c.gguf() ? rows_of(plan, plan.names.type_embedding) : c.size_or({"type_vocab_size"}, 2, 1, 4096);
}

}  // namespace

void plan_bert(Plan& plan) {
  plan_encoder(plan);
  if (!is_sequence_classifier(plan)) return;
  const std::string pooler = plan.names.root + "pooler.dense";
  use_classifier(plan, {.dense = pooler.c_str(), .out = "classifier", .activation = HeadActivation::kTanh});
}

// Positions start behind that of the padding token.
void plan_roberta(Plan& plan) {
  plan_encoder(plan);
  if (is_sequence_classifier(plan))
    use_classifier(plan, {.dense = "classifier.dense", .out = "classifier.out_proj", .activation = HeadActivation::kTanh});
  Traits& t = plan.traits;
  t.position_offset = plan.config.size_or({"pad_token_id"}, 1, 0, 1024) + 1;
  t.max_context = std::max(0, t.max_context - t.position_offset);
}

}  // namespace weir::model
