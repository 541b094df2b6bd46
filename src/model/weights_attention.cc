// SPDX-License-Identifier: Apache-2.0
// Softmax attention: q, k and v as three weights or one. A fused weight whose rows are [q | k | v] becomes three views of it;
// other orders stay fused and the traits say which.
#include "model/weights_loader.h"

namespace weir::model {
namespace {

Vector part(const Vector& whole, std::int64_t begin, std::int64_t count) {
  if (whole.empty()) return {};
  return {whole.begin() + begin, whole.begin() + begin + count};
}

}  // namespace

Status WeightReader::fused_qkv(const std::string& base, AttentionWeights& out) {
  AttentionTraits& t = plan_.traits.attention;
  const std::int64_t q = std::int64_t{t.heads} * t.head_dim, k = std::int64_t{t.kv_heads} * t.head_dim;
  const std::int64_t v = std::int64_t{t.kv_heads} * t.value_dim, hidden = plan_.traits.hidden;
  WEIR_ASSIGN(Linear fused, linear(base, q + k + v, hidden, plan_.qkv_bias));
  const bool in_order = t.qkv == QkvLayout::kFused || t.qkv == QkvLayout::kSeparate;
  if (!in_order || plan_.transposed) {
    if (in_order) t.qkv = QkvLayout::kFused;
    out.qkv = std::move(fused);
    return {};
  }
  t.qkv = QkvLayout::kSeparate;
  const TensorView& view = fused.weight->view;
  out.q = {kernels::Weight{view.row_slice(0, q)}, part(fused.bias, 0, q)};
  out.k = {kernels::Weight{view.row_slice(q, k)}, part(fused.bias, q, k)};
  out.v = {kernels::Weight{view.row_slice(q + k, v)}, part(fused.bias, q + k, v)};
  return {};
}

// Normalisation of q or k: one weight for all heads, one for each head (in one tensor, or in a tensor each as StableLM has
// them), or one over all heads together.
Result<NormWeights> WeightReader::head_norm(const std::string& base, std::int64_t heads) {
  const AttentionTraits& t = plan_.traits.attention;
  if (source_.has(base + ".norms.0.weight")) {
    NormWeights all;
    all.present = true;
    for (std::int64_t h = 0; h < heads; ++h) {
      WEIR_ASSIGN(const NormWeights one, norm(fmt::format("{}.norms.{}", base, h), t.head_dim));
      all.weight.insert(all.weight.end(), one.weight.begin(), one.weight.end());
      all.bias.insert(all.bias.end(), one.bias.begin(), one.bias.end());
    }
    return all;
  }
  const TensorView* view = source_.peek(base + ".weight");
  const bool each = view && view->elements() == heads * t.head_dim;
  return norm(base, t.qk_norm == QkNorm::kWhole || each ? heads * t.head_dim : t.head_dim);
}

Status WeightReader::qk_norms(const std::string& prefix, AttentionWeights& out) {
  const AttentionTraits& t = plan_.traits.attention;
  if (t.qk_norm == QkNorm::kNone) return {};
  const Bias before = plan_.norm_bias;
  if (t.qk_norm_kind == NormKind::kLayer) plan_.norm_bias = Bias::kOptional;
  auto q = head_norm(prefix + plan_.names.q_norm, t.heads), k = head_norm(prefix + plan_.names.k_norm, t.kv_heads);
  plan_.norm_bias = before;
  WEIR_ASSIGN(out.q_norm, std::move(q));
  WEIR_ASSIGN(out.k_norm, std::move(k));
  return {};
}

Status WeightReader::attention(const std::string& prefix, AttentionWeights& out) {
  const Names& names = plan_.names;
  const AttentionTraits& t = plan_.traits.attention;
  const std::int64_t hidden = plan_.traits.hidden, gate = t.output_gate ? 2 : 1;
  if (!names.qkv.empty() && source_.has(prefix + names.qkv + ".weight")) {
    WEIR_TRY(fused_qkv(prefix + names.qkv, out));
  } else {
    WEIR_ASSIGN(out.q, linear(prefix + names.q, gate * t.heads * t.head_dim, hidden, plan_.qkv_bias));
    WEIR_ASSIGN(out.k, linear(prefix + names.k, std::int64_t{t.kv_heads} * t.head_dim, hidden, plan_.qkv_bias));
    WEIR_ASSIGN(out.v, linear(prefix + names.v, std::int64_t{t.kv_heads} * t.value_dim, hidden, plan_.qkv_bias));
    if (t.qkv == QkvLayout::kFused) plan_.traits.attention.qkv = QkvLayout::kSeparate;
  }
  WEIR_ASSIGN(out.o, linear(prefix + names.o, hidden, std::int64_t{t.heads} * t.value_dim, plan_.o_bias));
  WEIR_TRY(qk_norms(prefix, out));
  if (!names.sinks.empty()) {
    WEIR_ASSIGN(out.sinks, source_.vector(prefix + names.sinks, t.heads));
  }
  return {};
}

}  // namespace weir::model
