// SPDX-License-Identifier: Apache-2.0
// Attention over the paged KV cache: project, normalise and rotate queries and keys, store keys and values, attend, project
// back. However the file fuses q, k and v, from here on they are three matrices of heads side by side.
#include <array>

#include "model/layers/layers.h"

namespace weir::model {

namespace {

struct Heads {
  Matrix q, k, v;
  Matrix gate;  // of the output; empty when there is none
};

Heads project_separately(const Pass& pass, const AttentionTraits& t, const AttentionWeights& w, Input x) {
  const std::int64_t query = std::int64_t{t.heads} * t.head_dim;
  Heads h;
  h.k = pass.matrix(std::int64_t{t.kv_heads} * t.head_dim);
  h.v = pass.matrix(std::int64_t{t.kv_heads} * t.value_dim);
  const Matrix q = pass.matrix(t.output_gate ? 2 * query : query);
  const std::array jobs = {job(x, w.q, q), job(x, w.k, h.k), job(x, w.v, h.v)};
  linear(pass, jobs);
  if (!t.output_gate) {
    h.q = q;
    return h;
  }
  h.q = pass.matrix(query);
  h.gate = pass.matrix(query);
  const std::int64_t d = t.head_dim;
  pass.backend.copy_columns(q, {.count = t.heads, .width = d, .x_first = 0, .x_step = 2 * d, .out_step = d}, h.q);
  pass.backend.copy_columns(q, {.count = t.heads, .width = d, .x_first = d, .x_step = 2 * d, .out_step = d}, h.gate);
  return h;
}

// One weight whose outputs are `groups` times [queries | keys | values].
Heads project_fused(const Pass& pass, const AttentionTraits& t, const AttentionWeights& w, Input x, std::int64_t groups) {
  const std::int64_t query = std::int64_t{t.heads} * t.head_dim / groups, key = std::int64_t{t.kv_heads} * t.head_dim / groups;
  const std::int64_t value = std::int64_t{t.kv_heads} * t.value_dim / groups, step = query + key + value;
  const Matrix fused = pass.matrix(groups * step);
  linear(pass, x, w.qkv, fused);
  if (groups == 1) return {fused.col_range(0, query), fused.col_range(query, key), fused.col_range(query + key, value), {}};
  const Heads h{pass.matrix(groups * query), pass.matrix(groups * key), pass.matrix(groups * value), {}};
  const auto pick = [&](std::int64_t first, std::int64_t width, Matrix out) {
    pass.backend.copy_columns(fused, {.count = groups, .width = width, .x_first = first, .x_step = step, .out_step = width}, out);
  };
  pick(0, query, h.q);
  pick(query, key, h.k);
  pick(query + key, value, h.v);
  return h;
}

Heads project(const Pass& pass, const AttentionTraits& t, const AttentionWeights& w, Input x) {
  switch (t.qkv) {
    case QkvLayout::kSeparate: return project_separately(pass, t, w, x);
    case QkvLayout::kFused: return project_fused(pass, t, w, x, 1);
    case QkvLayout::kPerHead: return project_fused(pass, t, w, x, t.heads);
    case QkvLayout::kPerGroup: return project_fused(pass, t, w, x, t.kv_heads);
  }
  return {};
}

void normalise(const Pass& pass, const AttentionTraits& t, const AttentionWeights& w, const Heads& h) {
  if (t.qk_norm == QkNorm::kNone) return;
  const std::int64_t group = t.qk_norm == QkNorm::kPerHead ? t.head_dim : 0;
  if (w.q_norm.present) norm(pass, w.q_norm, t.qk_norm_kind, group, h.q, h.q);
  if (w.k_norm.present) norm(pass, w.k_norm, t.qk_norm_kind, group, h.k, h.k);
}

void rotate(const Pass& pass, const Layer& layer, const AttentionTraits& t, const Heads& h) {
  if (layer.traits.rope < 0) return;
  const auto kind = static_cast<std::size_t>(layer.traits.rope);
  const bool pairs = pass.traits.ropes[kind].pairs;
  pass.backend.rope(h.q, t.heads, 0, pass.ropes[kind], pairs);
  pass.backend.rope(h.k, t.kv_heads, 0, pass.ropes[kind], pairs);
}

}  // namespace

void mix_attention(const Pass& pass, const Layer& layer, Input x, Target target) {
  const AttentionTraits& t = pass.traits.attention;
  const AttentionWeights& w = layer.weights.attention;
  const Heads h = project(pass, t, w, x);
  if (!t.qk_norm_after_rope) normalise(pass, t, w, h);
  rotate(pass, layer, t, h);
  if (t.qk_norm_after_rope) normalise(pass, t, w, h);

  const kernels::KvLayer& kv = pass.memory.kv(layer.index);
  const std::span<const kernels::SequenceSlice> slices = pass.kv_slices(layer.index);
  pass.backend.store_kv(h.k, h.v, slices, kv);
  const Matrix out = pass.matrix(std::int64_t{t.heads} * t.value_dim);
  const kernels::AttentionParams params{.heads = t.heads,
                                        .scale = t.scale,
                                        .softcap = t.softcap,
                                        .window = layer.traits.window,
                                        .sinks = data_or_null(w.sinks),
                                        .causal = t.causal};
  pass.backend.attention(h.q, slices, kv, params, out);
  if (t.output_gate) pass.backend.activate_mul(Activation::kSigmoid, h.gate, out, out);
  linear(pass, out, w.o, target.out, target.accumulate);
}

}  // namespace weir::model
