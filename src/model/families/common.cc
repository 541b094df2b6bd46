// SPDX-License-Identifier: Apache-2.0
#include "model/families/common.h"

#include <algorithm>
#include <cmath>

namespace weir::model {
namespace {

constexpr std::int32_t kMaxLayers = 1024, kMaxHeads = 4096, kMaxHeadDim = 65536, kMaxExperts = 4096;

Names gguf_names() {
  Names n;
  n.token_embedding = "token_embd";
  n.final_norm = "output_norm";
  n.head = "output";
  n.layer = "blk.";
  n.mixer_norm = "attn_norm";
  n.ffn_norm = "ffn_norm";
  n.q = "attn_q";
  n.k = "attn_k";
  n.v = "attn_v";
  n.qkv = "attn_qkv";
  n.o = "attn_output";
  n.q_norm = "attn_q_norm";
  n.k_norm = "attn_k_norm";
  n.ffn = {"ffn_gate", "ffn_up", "ffn_down", "ffn_up"};
  n.router = "ffn_gate_inp";
  n.stacked_gate = "ffn_gate_exps.weight";
  n.stacked_up = "ffn_up_exps.weight";
  n.stacked_gate_up = "ffn_gate_up_exps.weight";
  n.stacked_down = "ffn_down_exps.weight";
  n.shared = {"ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", ""};
  return n;
}

Names hf_names() {
  Names n;
  n.token_embedding = "embed_tokens";
  n.final_norm = "norm";
  n.head = "lm_head";
  n.layer = "layers.";
  n.mixer_norm = "input_layernorm";
  n.ffn_norm = "post_attention_layernorm";
  n.q = "self_attn.q_proj";
  n.k = "self_attn.k_proj";
  n.v = "self_attn.v_proj";
  n.o = "self_attn.o_proj";
  n.q_norm = "self_attn.q_norm";
  n.k_norm = "self_attn.k_norm";
  n.ffn = {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", ""};
  n.router = "mlp.gate";
  n.experts = "mlp.experts.";
  n.expert = {"gate_proj", "up_proj", "down_proj", ""};
  n.stacked_gate_up = "mlp.experts.gate_up_proj";  // transformers 5 may save experts together
  n.stacked_down = "mlp.experts.down_proj";
  n.shared = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj", "mlp.shared_expert.down_proj", ""};
  return n;
}

std::int32_t bounded(Plan& plan, std::int64_t value, std::int32_t low, std::int32_t high, const char* what) {
  if (value >= low && value <= high) return static_cast<std::int32_t>(value);
  plan.config.fail(ErrorCode::kCorrupt, "{} is {}, expected {} to {}", what, value, low, high);
  return low;
}

// The head stands beside the model: without its root, or under a part of it ("language_model.lm_head").
void find_head(Plan& plan) {
  Names& names = plan.names;
  std::string_view root = names.root;
  while (!plan.tensors.has(names.head + ".weight") && !root.empty()) {
    root.remove_suffix(1);
    root = root.substr(0, root.rfind('.') + 1);
    const std::string inner = std::string(root) + names.head;
    if (!plan.tensors.has(inner + ".weight")) continue;
    names.head = inner;
  }
}

// One value for all attention layers; files that list a 0 for layers without attention are read past it.
std::int32_t same_in_all_layers(Plan& plan, Key key, std::int32_t fallback, const char* what) {
  std::int64_t found = 0;
  for (const std::int64_t v : plan.config.per_layer(key, plan.traits.layers.size(), fallback)) {
    if (v == 0 || v == found) continue;
    if (found) plan.config.fail(ErrorCode::kUnsupported, "{} differs between layers ({} and {})", what, found, v);
    found = v;
  }
  return bounded(plan, found, 1, kMaxHeads, what);
}

}  // namespace

void find_root(Plan& plan, std::initializer_list<const char*> roots) {
  Names& names = plan.names;
  const std::string embedding = names.token_embedding + ".weight";
  names.root = *roots.begin();
  for (const char* root : roots)
    if (plan.tensors.has(root + embedding)) {
      names.root = root;
      return find_head(plan);
    }
  // A model inside another: whatever stands before the one embedding of the file.
  const formats::NamedTensor* only = nullptr;
  for (const formats::NamedTensor& tensor : plan.tensors.index().tensors()) {
    if (!tensor.name.ends_with("." + embedding)) continue;
    if (only) return;
    only = &tensor;
  }
  if (!only) return;
  names.root = only->name.substr(0, only->name.size() - embedding.size());
  find_head(plan);
}

void read_sizes(Plan& plan) {
  Config& c = plan.config;
  Traits& t = plan.traits;
  std::int32_t layers = c.size({"num_hidden_layers|n_layer|n_layers", "block_count"}, 1, kMaxLayers);
  layers -= c.size_or({nullptr, "nextn_predict_layers"}, 0, 0, layers - 1);  // prediction heads counted as blocks
  t.layers.assign(static_cast<std::size_t>(layers), LayerTraits{});
  t.hidden = c.size({"hidden_size|n_embd|d_model|dim", "embedding_length"});
  t.vocab_size = c.size_or({"vocab_size", nullptr}, 0, 1);
  t.max_context = c.size_or({"max_position_embeddings|n_positions|n_ctx|max_sequence_length", "context_length"}, 0, 0, 1 << 30);
  for (const std::int64_t size :
       c.per_layer({"intermediate_size|n_inner|ffn_hidden_size|hidden_dim", "feed_forward_length"}, t.layers.size(), 0))
    plan.ffn_sizes.push_back(bounded(plan, size, 0, kMaxSize, "the inner size of the ffn"));

  plan.names = c.gguf() ? gguf_names() : hf_names();
  if (c.gguf()) {
    plan.qkv_bias = plan.o_bias = plan.ffn_bias = plan.expert_bias = plan.router_bias = plan.head_bias = plan.latent_bias = Bias::kOptional;
    plan.recurrent_bias = plan.conv_bias = Bias::kOptional;
    plan.a_is_log = false;
    return;
  }
  find_root(plan, {"model.", "", "model.language_model.", "language_model.model."});
  if (plan.names.root == "language_model.model.") plan.names.head = "language_model.lm_head";
  if (plan.names.root.find("language_model") != std::string::npos)
    plan.ignored = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector.", "model.visual.",
                    "mtp."};
}

void read_attention(Plan& plan) {
  Config& c = plan.config;
  AttentionTraits& a = plan.traits.attention;
  a.heads = same_in_all_layers(plan, {"num_attention_heads|n_head|n_heads", "attention.head_count"}, 0, "the number of attention heads");
  a.kv_heads = same_in_all_layers(plan, {"num_key_value_heads|num_kv_heads|n_head_kv", "attention.head_count_kv"}, a.heads,
                                  "the number of KV heads");
  if (a.heads % a.kv_heads) c.fail(ErrorCode::kCorrupt, "{} attention heads for {} KV heads", a.heads, a.kv_heads);
  if (!c.has({"head_dim", "attention.key_length"}) && plan.traits.hidden % a.heads)
    c.fail(ErrorCode::kCorrupt, "hidden size {} is not a multiple of {} attention heads", plan.traits.hidden, a.heads);
  a.head_dim = c.size_or({"head_dim", "attention.key_length"}, std::max(1, plan.traits.hidden / a.heads), 1, kMaxHeadDim);
  a.value_dim = c.size_or({nullptr, "attention.value_length"}, a.head_dim, 1, kMaxHeadDim);
  a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(a.head_dim)));
}

void use_rms_norm(Plan& plan, double default_epsilon) {
  plan.traits.norm = NormKind::kRms;
  plan.traits.norm_epsilon = static_cast<float>(
      plan.config.real_or({"rms_norm_eps|layer_norm_epsilon|norm_eps", "attention.layer_norm_rms_epsilon"}, default_epsilon, 0, 1));
}

void use_layer_norm(Plan& plan, Bias bias, double default_epsilon) {
  plan.traits.norm = NormKind::kLayer;
  plan.norm_bias = bias;
  plan.traits.norm_epsilon = static_cast<float>(plan.config.real_or(
      {"layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps", "attention.layer_norm_epsilon"}, default_epsilon, 0, 1));
}

bool rows_are_paired(const Plan& plan) { return plan.config.gguf(); }

void use_rope(Plan& plan, const RopeDefaults& defaults, bool pairs) {
  RopeSpec spec = read_rope(plan.config, plan.traits.attention.head_dim, plan.traits.max_context, defaults);
  spec.pairs = pairs;
  const std::int32_t index = add_rope(plan.config, plan.traits, spec);
  for (LayerTraits& layer : plan.traits.layers) layer.rope = index;
}

void read_decoder(Plan& plan, const RopeDefaults& rope) {
  read_sizes(plan);
  read_attention(plan);
  use_rms_norm(plan);
  use_rope(plan, rope);
}

kernels::Activation read_activation(Plan& plan, const char* key, kernels::Activation fallback) {
  using kernels::Activation;
  if (plan.config.gguf() || !plan.config.has({key})) return fallback;
  const std::string name = plan.config.text({key});
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu" || name == "gelu_python") return Activation::kGeluErf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  if (name == "relu2") return Activation::kReluSquared;
  plan.config.fail(ErrorCode::kUnsupported, "activation \"{}\" is not supported", name);
  return fallback;
}

bool has_layer_types(const Plan& plan) { return plan.config.has({"layer_types"}); }

void apply_layer_types(Plan& plan, std::int32_t window) {
  const auto types = plan.config.texts({"layer_types"});
  if (types.size() < plan.traits.layers.size())
    return plan.config.fail(ErrorCode::kCorrupt, "layer_types has {} entries for {} layers", types.size(), plan.traits.layers.size());
  for (std::size_t i = 0; i < plan.traits.layers.size(); ++i) {
    if (types[i] != "sliding_attention" && types[i] != "full_attention")
      return plan.config.fail(ErrorCode::kUnsupported, "layer_types: \"{}\" is not supported in this family", types[i]);
    const bool slides = types[i] == "sliding_attention";
    if (slides && window <= 0)
      return plan.config.fail(ErrorCode::kCorrupt, "layer_types has sliding layers, but sliding_window is not given");
    plan.traits.layers[i].window = slides ? window : 0;
  }
}

void ffn_sizes_by_tensor(Plan& plan) {
  for (std::size_t i = 0; i < plan.ffn_sizes.size(); ++i) {
    std::int32_t& size = plan.ffn_sizes[i];
    const TensorView* up = plan.tensors.peek(fmt::format("{}{}{}.{}.weight", plan.names.root, plan.names.layer, i, plan.names.ffn.up));
    if (plan.config.gguf() && up && up->rank() == 2) size = bounded(plan, up->dim(0), 1, kMaxSize, "the inner size of the ffn");
    if (size == 0) size = 4 * std::min(plan.traits.hidden, kMaxSize / 4);
  }
}

Bias bias_by_flag(Plan& plan, const char* key, bool fallback) {
  if (plan.config.gguf()) return Bias::kOptional;
  return plan.config.flag_or({key}, fallback) ? Bias::kRequired : Bias::kNone;
}

void read_experts(Plan& plan, const ExpertDefaults& defaults) {
  Config& c = plan.config;
  ExpertTraits& e = plan.traits.experts;
  e.experts = c.size({"num_local_experts|num_experts|n_routed_experts", "expert_count"}, 1, kMaxExperts);
  e.router.top_k = c.size({"num_experts_per_tok|experts_per_token|num_experts_per_token", "expert_used_count"}, 1, e.experts);
  e.router.score = defaults.score;
  switch (c.size_or({nullptr, "expert_gating_func"}, 0, 0, 3)) {
    case 1: e.router.score = kernels::RouterScore::kSoftmax; break;
    case 2: e.router.score = kernels::RouterScore::kSigmoid; break;
    case 3: e.router.score = kernels::RouterScore::kSoftmaxOfTop; break;
    default: break;
  }
  e.router.renormalize = c.flag_or({"norm_topk_prob", "expert_weights_norm"}, defaults.renormalize);
  const double scale = c.real_or({"routed_scaling_factor", "expert_weights_scale"}, 1);
  e.router.scale = c.gguf() && scale == 0 ? 1 : static_cast<float>(scale);  // converters write 0 for "none"
  plan.expert_size = c.size_or({"moe_intermediate_size", "expert_feed_forward_length"}, plan.ffn_sizes.front(), 1);
}

}  // namespace weir::model
