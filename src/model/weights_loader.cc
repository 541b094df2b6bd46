// SPDX-License-Identifier: Apache-2.0
#include "model/weights_loader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"

namespace weir::model {
namespace {

kernels::Weight weight_of(TensorView view, bool transposed) {
  return {std::move(view), transposed ? kernels::WeightLayout::kInOut : kernels::WeightLayout::kOutIn};
}

bool starts_with(std::string_view text, std::string_view start) { return !start.empty() && text.starts_with(start); }

// Buffers that older checkpoints carry beside their weights: tables and masks that are computed here.
bool is_buffer(std::string_view name) {
  for (const std::string_view end : {".masked_bias", ".attn.bias", ".attention.bias", "position_ids", "rope_freqs.weight",
                                     "attn_rot_embd.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
    if (name.ends_with(end)) return true;
  return name.find("rotary_emb.") != std::string_view::npos;
}

// The number of the layer that a tensor belongs to, or -1.
std::int64_t layer_of(std::string_view name, std::string_view layer_prefix) {
  if (!starts_with(name, layer_prefix)) return -1;
  name.remove_prefix(layer_prefix.size());
  std::int64_t index = -1;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), index);
  return parsed.ec == std::errc() && index >= 0 ? index : -1;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i) list.append(i ? ", " : "").append(names[i]);
  return names.size() > 3 ? list + ", …" : list;
}

// What nobody took. In a layer that runs it would change the result: an error. Layers beyond the last hold heads that predict
// further tokens, and what stands outside the layers are heads for other tasks or other modalities: they are named and left.
Status check_all_taken(const Plan& plan) {
  const std::string layers = plan.names.root + plan.names.layer;
  const auto in_running_layer = [&](std::string_view name) {
    const std::int64_t layer = layer_of(name, layers);
    return layer >= 0 && layer < plan.layer_count();
  };
  const auto wrong = plan.tensors.untaken([&](std::string_view name) { return is_buffer(name) || !in_running_layer(name); }, 4);
  if (!wrong.empty())
    return fail(ErrorCode::kUnsupported, "the file holds weights that family \"{}\" has no place for: {}", plan.traits.family,
                listed(wrong));
  const auto left = plan.tensors.untaken(
      [&](std::string_view name) {
        return is_buffer(name) || layer_of(name, layers) >= 0 ||
               std::ranges::any_of(plan.ignored, [&](const std::string& start) { return starts_with(name, start); });
      },
      4);
  if (!left.empty()) log::warn("weights without a part in the result are left aside: {}", listed(left));
  return {};
}

}  // namespace

Result<Vector> WeightReader::bias(const std::string& base, std::int64_t count, Bias policy) {
  const std::string name = base + ".bias";
  if (policy == Bias::kNone || (policy == Bias::kOptional && !source_.has(name))) return Vector{};
  return source_.vector(name, count);
}

Result<Linear> WeightReader::linear(const std::string& base, std::int64_t out, std::int64_t in, Bias policy) {
  Linear linear;
  const Shape shape = plan_.transposed ? Shape{in, out} : Shape{out, in};
  WEIR_ASSIGN(TensorView view, source_.matrix(base + ".weight", shape));
  if (plan_.transposed && dtype_info(view.type).quantized)
    return fail(ErrorCode::kUnsupported, "tensor {}.weight: transposed weights of type {}", base, dtype_name(view.type));
  linear.weight = weight_of(std::move(view), plan_.transposed);
  WEIR_ASSIGN(linear.bias, bias(base, out, policy));
  return linear;
}

Result<NormWeights> WeightReader::norm(const std::string& base, std::int64_t count, float offset) {
  NormWeights norm;
  if (base.empty() || base.back() == '.') return norm;  // the family has no such norm
  norm.present = true;
  const bool old_names = !source_.has(base + ".weight") && source_.has(base + ".gamma");  // BERT as TensorFlow called it
  WEIR_ASSIGN(norm.weight, source_.vector(base + (old_names ? ".gamma" : ".weight"), count));
  if (old_names) {
    WEIR_ASSIGN(norm.bias, source_.vector(base + ".beta", count));
  } else {
    WEIR_ASSIGN(norm.bias, bias(base, count, plan_.norm_bias));
  }
  for (float& w : norm.weight) w += offset;
  return norm;
}

std::byte* WeightReader::own(std::size_t bytes) {
  auto buffer = std::make_shared<std::vector<std::byte>>(bytes);
  std::byte* data = buffer->data();
  weights_.owners.push_back(std::shared_ptr<const void>(std::move(buffer)));
  return data;
}

Status WeightReader::globals() {
  const Names& names = plan_.names;
  Traits& traits = plan_.traits;
  const std::int64_t hidden = traits.hidden;
  const std::string embedding = names.root + names.token_embedding + ".weight";
  const TensorView* table = source_.peek(embedding);
  if (!table) return fail(ErrorCode::kCorrupt, "tensor {}: missing", embedding);
  const std::int64_t rows = table->rows();
  if (rows < 1 || rows > kMaxSize) return fail(ErrorCode::kCorrupt, "tensor {}: shape {}", embedding, shape_string(table->shape));
  if (traits.vocab_size == 0) traits.vocab_size = static_cast<std::int32_t>(rows);
  WEIR_ASSIGN(TensorView view, source_.matrix(embedding, {traits.vocab_size, hidden}));
  weights_.token_embedding = weight_of(std::move(view), false);

  if (!names.position_embedding.empty()) {
    WEIR_ASSIGN(TensorView positions, source_.matrix(names.root + names.position_embedding + ".weight", {plan_.positions, hidden}));
    weights_.position_embedding = weight_of(std::move(positions), false);
  }
  if (!names.type_embedding.empty()) {
    WEIR_ASSIGN(TensorView types, source_.matrix(names.root + names.type_embedding + ".weight", {plan_.types, hidden}));
    weights_.type_embedding = weight_of(std::move(types), false);
  }
  WEIR_ASSIGN(weights_.embedding_norm, norm(names.embedding_norm.empty() ? "" : names.root + names.embedding_norm, hidden));
  WEIR_ASSIGN(weights_.final_norm, norm(names.final_norm.empty() ? "" : names.root + names.final_norm, hidden));
  WEIR_TRY(classifier());
  return head();
}

// By a class that has none for tokens: "MistralModel" of an embedding model, "Qwen3ForSequenceClassification".
bool WeightReader::saved_without_head() const {
  const auto without = [](const std::string& name) {
    return name.ends_with("ForSequenceClassification") || (name.ends_with("Model") && !name.ends_with("LMHeadModel"));
  };
  const auto classes = plan_.config.texts({"architectures"});
  return !classes.empty() && std::ranges::all_of(classes, without) && !source_.has(plan_.names.head + ".weight");
}

Status WeightReader::head() {
  const Names& names = plan_.names;
  const Traits& traits = plan_.traits;
  if (traits.encoder) {
    if (names.pooler.empty() || !source_.has(names.root + names.pooler + ".weight")) return {};
    WEIR_ASSIGN(weights_.pooler, linear(names.root + names.pooler, traits.hidden, traits.hidden, Bias::kRequired));
    return {};
  }
  if (saved_without_head()) return {};
  // A head of the file counts even where config.json speaks of a tied one, as transformers has it; a copy of the embedding is
  // the usual case, then both are the same.
  if (source_.has(names.head + ".weight") || !plan_.config.flag_or({"tie_word_embeddings|tie_embedding", nullptr}, true)) {
    const bool transposed = std::exchange(plan_.transposed, false);
    auto own_head = linear(names.head, traits.vocab_size, traits.hidden, plan_.head_bias);
    plan_.transposed = transposed;
    WEIR_ASSIGN(weights_.head, std::move(own_head));
    return {};
  }
  weights_.head.weight = weights_.token_embedding;
  WEIR_ASSIGN(weights_.head.bias, bias(names.head, traits.vocab_size, plan_.head_bias));
  return {};
}

Status WeightReader::norms(const std::string& prefix, LayerWeights& out) {
  const Names& names = plan_.names;
  const std::int64_t hidden = plan_.traits.hidden;
  const bool none = plan_.first_mixer_norm_optional && prefix.ends_with(".0.") && !source_.has(prefix + names.mixer_norm + ".weight");
  WEIR_ASSIGN(out.mixer_norm, norm(none ? "" : prefix + names.mixer_norm, hidden));
  WEIR_ASSIGN(out.post_mixer_norm, norm(prefix + names.post_mixer_norm, hidden));
  WEIR_ASSIGN(out.ffn_norm, norm(prefix + names.ffn_norm, hidden));
  WEIR_ASSIGN(out.post_ffn_norm, norm(prefix + names.post_ffn_norm, hidden));
  WEIR_ASSIGN(out.after_mixer, norm(prefix + names.after_mixer, hidden));
  WEIR_ASSIGN(out.after_ffn, norm(prefix + names.after_ffn, hidden));
  return {};
}

// [gate | up] one above the other: two views of its rows.
Status WeightReader::split_gate_up(const TensorView& view, std::int64_t inner, Vector bias, FfnWeights& out) {
  out.gate.weight = weight_of(view.row_slice(0, inner), false);
  out.up.weight = weight_of(view.row_slice(inner, inner), false);
  if (bias.empty()) return {};
  out.gate.bias.assign(bias.begin(), bias.begin() + inner);
  out.up.bias.assign(bias.begin() + inner, bias.end());
  return {};
}

Status WeightReader::ffn(const std::string& prefix, const FfnNames& names, std::int64_t inner, bool gated, FfnWeights& out) {
  const std::int64_t hidden = plan_.traits.hidden;
  WEIR_ASSIGN(out.down, linear(prefix + names.down, hidden, inner, plan_.ffn_bias));
  if (!gated) {
    WEIR_ASSIGN(out.up, linear(prefix + names.up, inner, hidden, plan_.ffn_bias));
    return {};
  }
  const bool apart = !names.gate.empty() && source_.has(prefix + names.gate + ".weight");
  if (!apart && !names.gate_up.empty()) {
    WEIR_ASSIGN(TensorView view, source_.matrix(prefix + names.gate_up + ".weight", {2 * inner, hidden}));
    WEIR_ASSIGN(Vector both, bias(prefix + names.gate_up, 2 * inner, plan_.ffn_bias));
    WEIR_TRY(split_gate_up(view, inner, std::move(both), out));
    if (plan_.up_first) std::swap(out.gate, out.up);
    return {};
  }
  WEIR_ASSIGN(out.gate, linear(prefix + names.gate, inner, hidden, plan_.ffn_bias));
  WEIR_ASSIGN(out.up, linear(prefix + names.up, inner, hidden, plan_.ffn_bias));
  return {};
}

Status WeightReader::layer(std::int32_t index, LayerWeights& out) {
  const Names& names = plan_.names;
  const LayerTraits& traits = plan_.traits.layers[static_cast<std::size_t>(index)];
  const std::string prefix = fmt::format("{}{}{}.", names.root, names.layer, index);
  WEIR_TRY(norms(prefix, out));
  switch (traits.mixer) {
    case MixerKind::kAttention: WEIR_TRY(attention(prefix, out.attention)); break;
    case MixerKind::kLatentAttention: WEIR_TRY(latent(prefix, out.latent)); break;
    default: WEIR_TRY(recurrent(traits.mixer, prefix, out.recurrent));
  }
  switch (traits.ffn) {
    case FfnKind::kNone: return {};
    case FfnKind::kExperts: return experts(prefix, out.experts);
    default: return ffn(prefix, names.ffn, plan_.ffn_sizes[static_cast<std::size_t>(index)], traits.ffn == FfnKind::kGated, out.ffn);
  }
}

Status load_weights(Plan& plan, Weights& weights) {
  WeightReader reader(plan, weights);
  WEIR_TRY(reader.globals());
  weights.layers.resize(plan.traits.layers.size());
  for (std::int32_t i = 0; i < plan.layer_count(); ++i) WEIR_TRY(reader.layer(i, weights.layers[static_cast<std::size_t>(i)]));
  WEIR_TRY(plan.config.status());
  WEIR_TRY(check_all_taken(plan));
  weights.files = plan.tensors.index().files();
  weights.naming = std::make_shared<const Naming>(plan.names, plan.config.gguf(), plan.paired_rows, plan.regrouped_rows);
  return {};
}

}  // namespace weir::model
