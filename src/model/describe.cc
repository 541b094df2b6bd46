// SPDX-License-Identifier: Apache-2.0
#include "model/describe.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::model {
namespace {

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu: return "silu";
    case Activation::kGeluTanh: return "gelu (tanh)";
    case Activation::kGeluErf: return "gelu";
    case Activation::kRelu: return "relu";
    case Activation::kReluSquared: return "relu squared";
    case Activation::kSigmoid: return "sigmoid";
  }
  return "?";
}

const char* mixer_name(MixerKind mixer) {
  switch (mixer) {
    case MixerKind::kAttention: return "attention";
    case MixerKind::kLatentAttention: return "latent attention";
    case MixerKind::kMamba2: return "Mamba-2";
    case MixerKind::kGatedDelta: return "gated delta rule";
    case MixerKind::kShortConv: return "short convolution";
  }
  return "?";
}

template <class Predicate>
std::ptrdiff_t count(const Traits& t, Predicate predicate) {
  return std::ranges::count_if(t.layers, predicate);
}

std::string layers(const Traits& t) {
  std::string text;
  for (const MixerKind mixer :
       {MixerKind::kAttention, MixerKind::kLatentAttention, MixerKind::kMamba2, MixerKind::kGatedDelta, MixerKind::kShortConv}) {
    const auto n = count(t, [&](const LayerTraits& l) { return l.mixer == mixer; });
    if (n) text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", n, mixer_name(mixer));
  }
  return text + (t.parallel ? ", mixer and ffn in parallel" : "");
}

std::string attention(const Traits& t) {
  const AttentionTraits& a = t.attention;
  if (count(t, [](const LayerTraits& l) { return l.mixer == MixerKind::kLatentAttention; }))
    return fmt::format("{} heads of {} + {} (rope), latent of {}", a.heads, t.latent.nope_dim, t.latent.rope_dim, t.latent.kv_rank);
  std::string text = fmt::format("{} heads, {} KV heads of {}", a.heads, a.kv_heads, a.head_dim);
  if (a.qk_norm != QkNorm::kNone) text += ", q and k normalised";
  if (a.output_gate) text += ", gated";
  if (a.softcap > 0) text += fmt::format(", scores capped at {}", a.softcap);
  if (!a.causal) text += ", in both directions";
  return text;
}

std::string windows(const Traits& t) {
  const auto sliding = count(t, [](const LayerTraits& l) { return l.window > 0; });
  if (!sliding) return "";
  const auto widest = std::ranges::max_element(t.layers, {}, &LayerTraits::window)->window;
  return fmt::format("{} of {} layers see {} positions", sliding, t.layers.size(), widest);
}

std::string rope(const Traits& t) {
  const auto rotated = count(t, [](const LayerTraits& l) { return l.rope >= 0; });
  if (!rotated) return "";
  const RopeTraits& r = t.ropes.front();
  std::string text = fmt::format("{} dimensions, {} in {} layers", r.rotary_dim, r.pairs ? "in pairs" : "in halves", rotated);
  if (t.ropes.size() > 1) text += fmt::format(", {} sets of frequencies", t.ropes.size());
  if (r.long_above > 0) text += fmt::format(", other frequencies above {} positions", r.long_above);
  if (r.magnitude != 1) text += fmt::format(", magnitude {:.4g}", r.magnitude);
  return text;
}

std::string ffn(const Traits& t) {
  const auto experts = count(t, [](const LayerTraits& l) { return l.ffn == FfnKind::kExperts; });
  const auto plain = count(t, [](const LayerTraits& l) { return l.ffn == FfnKind::kPlain; });
  std::string text = t.ffn.clamped ? "clamped swiglu" : activation_name(t.ffn.activation);
  if (plain) text += ", without gate";
  if (experts) text += fmt::format(", {} layers with {} experts, {} for each token", experts, t.experts.experts, t.experts.router.top_k);
  return text;
}

std::string pooling(const Traits& t) {
  if (!t.encoder && t.pooling == Pooling::kNone) return "";
  return fmt::format("{}{}", t.pooling == Pooling::kNone ? "the file does not say" : pooling_name(t.pooling),
                     t.normalize_pooled ? ", normalised" : "");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe(const Traits& t) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&](const char* topic, std::string text) {
    if (!text.empty()) lines.emplace_back(topic, std::move(text));
  };
  add("family", t.family + (t.encoder ? " (encoder)" : ""));
  add("size", fmt::format("{} layers of width {}, vocabulary of {}", t.layers.size(), t.hidden, t.vocab_size));
  add("context", t.max_context > 0 ? fmt::format("{} tokens", t.max_context) : "");
  add("layers", layers(t));
  add("attention", t.has_attention() ? attention(t) : "");
  add("windows", windows(t));
  add("rope", rope(t));
  add("norm", t.norm == NormKind::kRms ? "root mean square" : "layer norm");
  if (count(t, [](const LayerTraits& l) { return l.ffn != FfnKind::kNone; })) add("ffn", ffn(t));
  add("pooling", pooling(t));
  add("classes", t.classifier.labels > 0
                     ? fmt::format("{}, from the pooled state ({})", t.classifier.labels, pooling_name(t.classifier.pooling))
                     : "");
  return lines;
}

}  // namespace weir::model
