// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1) in its absorbed form: all heads attend to one
// cached vector a token, [latent | rotated key]. A query is brought into the latent's space by its head's key_up (transposed
// there), and value_up turns the attended latent into the head's value, so that neither keys nor values are ever expanded.
#include "model/layers/layers.h"

namespace weir::model {

namespace {

struct QueryAndLatent {
  Matrix q;       // [rows, heads · (nope_dim + rope_dim)]
  Matrix latent;  // [rows, kv_rank + rope_dim]
};

QueryAndLatent project(const Pass& pass, const LatentTraits& t, const LatentWeights& w, ConstMatrix x) {
  const std::int64_t heads = pass.traits.attention.heads;
  const QueryAndLatent r{pass.matrix(heads * (t.nope_dim + t.rope_dim)), pass.matrix(t.kv_rank + t.rope_dim)};
  if (t.q_rank == 0) {
    const LinearJob jobs[] = {job(x, w.q, r.q), job(x, w.kv_down, r.latent)};
    linear(pass, jobs);
  } else {
    const Matrix down = pass.matrix(t.q_rank);
    const LinearJob jobs[] = {job(x, w.q_down, down), job(x, w.kv_down, r.latent)};
    linear(pass, jobs);
    if (w.q_norm.present) norm(pass, w.q_norm, pass.traits.norm, 0, down, down);
    linear(pass, down, w.q_up, r.q);
  }
  const Matrix latent = r.latent.col_range(0, t.kv_rank);
  if (w.kv_norm.present) norm(pass, w.kv_norm, pass.traits.norm, 0, latent, latent);
  return r;
}

void rotate(const Pass& pass, const Layer& layer, const LatentTraits& t, const QueryAndLatent& m) {
  if (layer.traits.rope < 0) return;
  const auto kind = static_cast<std::size_t>(layer.traits.rope);
  const bool pairs = pass.traits.ropes[kind].pairs;
  pass.backend.rope(m.q, pass.traits.attention.heads, t.nope_dim, pass.ropes[kind], pairs);
  pass.backend.rope(m.latent.col_range(t.kv_rank, t.rope_dim), 1, 0, pass.ropes[kind], pairs);
}

// out(head h) = x(head h) · up[h], where heads lie `x_step` and `out_step` columns apart.
void map_heads(const Pass& pass, const std::vector<kernels::Weight>& up, ConstMatrix x, std::int64_t x_step, Matrix out,
               std::int64_t out_step) {
  const std::span<LinearJob> jobs = pass.arena.array<LinearJob>(up.size());
  for (std::size_t h = 0; h < up.size(); ++h) {
    const auto head = static_cast<std::int64_t>(h);
    jobs[h] = {x.col_range(head * x_step, up[h].in()), &up[h], nullptr, out.col_range(head * out_step, up[h].out()), false};
  }
  linear(pass, jobs);
}

}  // namespace

void mix_latent_attention(const Pass& pass, const Layer& layer, ConstMatrix x, Target target) {
  const LatentTraits& t = pass.traits.latent;
  const AttentionTraits& a = pass.traits.attention;
  const LatentWeights& w = layer.weights.latent;
  const std::int64_t heads = a.heads, query = t.nope_dim + t.rope_dim, cached = t.kv_rank + t.rope_dim;
  const QueryAndLatent m = project(pass, t, w, x);
  rotate(pass, layer, t, m);

  const Matrix absorbed = pass.matrix(heads * cached);
  map_heads(pass, w.key_up, m.q, query, absorbed, cached);
  pass.backend.copy_columns(
      m.q, {.count = heads, .width = t.rope_dim, .x_first = t.nope_dim, .x_step = query, .out_first = t.kv_rank, .out_step = cached},
      absorbed);

  const kernels::KvLayer& kv = pass.memory.kv(layer.index);
  const std::span<const kernels::SequenceSlice> slices = pass.kv_slices(layer.index);
  pass.backend.store_kv(m.latent, {}, slices, kv);
  const Matrix attended = pass.matrix(heads * t.kv_rank), values = pass.matrix(heads * t.value_dim);
  const kernels::AttentionParams params{
      .heads = a.heads, .scale = a.scale, .softcap = a.softcap, .window = layer.traits.window, .sinks = nullptr, .causal = a.causal};
  pass.backend.attention(absorbed, slices, kv, params, attended);
  map_heads(pass, w.value_up, attended, t.kv_rank, values, t.value_dim);
  linear(pass, values, w.o, target.out, target.accumulate);
}

}  // namespace weir::model
