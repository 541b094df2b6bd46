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

Status WeightReader::qk_norms(const std::string& prefix, AttentionWeights& out) {
  const AttentionTraits& t = plan_.traits.attention;
  if (t.qk_norm == QkNorm::kNone) return {};
  // One weight for all heads, one for each head, or one over all heads together.
  const auto count = [&](const std::string& base, std::int64_t heads) -> std::int64_t {
    if (t.qk_norm == QkNorm::kWhole) return heads * t.head_dim;
    const TensorView* view = source_.peek(base + ".weight");
    return view && view->elements() == heads * t.head_dim ? heads * t.head_dim : t.head_dim;
  };
  const std::string q = prefix + plan_.names.q_norm, k = prefix + plan_.names.k_norm;
  const Bias before = plan_.norm_bias;
  if (t.qk_norm_kind == NormKind::kLayer) plan_.norm_bias = Bias::kOptional;
  auto q_norm = norm(q, count(q, t.heads)), k_norm = norm(k, count(k, t.kv_heads));
  plan_.norm_bias = before;
  WEIR_ASSIGN(out.q_norm, std::move(q_norm));
  WEIR_ASSIGN(out.k_norm, std::move(k_norm));
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
