// SPDX-License-Identifier: Apache-2.0
// Mixers whose memory of a sequence has a fixed size: a short convolution over the last inputs, then (Mamba-2, gated delta
// rule) a scan that updates a matrix per head. The state slot of a sequence holds both.
#include "model/layers/layers.h"

namespace weir::model {

namespace {

kernels::ConvParams conv_params(const Pass& pass, const RecurrentWeights& w, bool silu) {
  return {.weight = w.conv_weight.data(), .bias = data_or_null(w.conv_bias), .taps = pass.traits.recurrent.conv_taps, .silu = silu};
}

// y becomes norm(y)·silu(z) or norm(y·silu(z)), normalised in groups.
void gated_norm(const Pass& pass, const RecurrentWeights& w, ConstMatrix z, Matrix y) {
  const auto normalise = [&] {
    if (w.norm.present) norm(pass, w.norm, NormKind::kRms, pass.traits.recurrent.norm_group, y, y);
  };
  const bool norm_first = pass.traits.recurrent.norm_before_gate;
  if (norm_first) normalise();
  pass.backend.activate_mul(Activation::kSilu, z, y, y);
  if (!norm_first) normalise();
}

}  // namespace

void mix_mamba2(const Pass& pass, const Layer& layer, ConstMatrix x, Target target) {
  const RecurrentTraits& t = pass.traits.recurrent;
  const RecurrentWeights& w = layer.weights.recurrent;
  const std::int64_t inner = std::int64_t{t.value_heads} * t.value_dim, shared = std::int64_t{t.key_heads} * t.key_dim;
  const std::int64_t channels = inner + 2 * shared;

  const Matrix projected = pass.matrix(inner + channels + t.value_heads);  // [z | x | B | C | dt]
  linear(pass, x, w.in, projected);
  const kernels::StateLayer& state = pass.memory.state(layer.index);
  const Matrix xbc = pass.matrix(channels), y = pass.matrix(inner);
  pass.backend.causal_conv(projected.col_range(inner, channels), conv_params(pass, w, true), pass.slices, state, xbc);
  const kernels::SsdParams params{.heads = t.value_heads,
                                  .head_dim = t.value_dim,
                                  .groups = t.key_heads,
                                  .state = t.key_dim,
                                  .a = w.a.data(),
                                  .d = w.d.data(),
                                  .dt_bias = w.dt_bias.data(),
                                  .dt_min = t.dt_min,
                                  .dt_max = t.dt_max};
  pass.backend.ssd_scan(xbc.col_range(0, inner), xbc.col_range(inner, shared), xbc.col_range(inner + shared, shared),
                        projected.col_range(inner + channels, t.value_heads), params, pass.slices, state,
                        pass.traits.conv_state_floats(MixerKind::kMamba2), y);
  gated_norm(pass, w, projected.col_range(0, inner), y);
  linear(pass, y, w.out, target.out, target.accumulate);
}

void mix_gated_delta(const Pass& pass, const Layer& layer, ConstMatrix x, Target target) {
  const RecurrentTraits& t = pass.traits.recurrent;
  const RecurrentWeights& w = layer.weights.recurrent;
  const std::int64_t keys = std::int64_t{t.key_heads} * t.key_dim, values = std::int64_t{t.value_heads} * t.value_dim;

  const Matrix projected = pass.matrix(2 * keys + values), z = pass.matrix(values);
  const Matrix alpha = pass.matrix(t.value_heads), beta = pass.matrix(t.value_heads);
  const LinearJob jobs[] = {job(x, w.qkv, projected), job(x, w.z, z), job(x, w.alpha, alpha), job(x, w.beta, beta)};
  linear(pass, jobs);
  const kernels::StateLayer& state = pass.memory.state(layer.index);
  const Matrix qkv = pass.matrix(projected.cols), y = pass.matrix(values);
  pass.backend.causal_conv(projected, conv_params(pass, w, true), pass.slices, state, qkv);
  const kernels::DeltaParams params{.key_heads = t.key_heads,
                                    .value_heads = t.value_heads,
                                    .key_dim = t.key_dim,
                                    .value_dim = t.value_dim,
                                    .a = w.a.data(),
                                    .dt_bias = w.dt_bias.data(),
                                    .tiled = t.tiled_value_heads};
  pass.backend.delta_scan(qkv.col_range(0, keys), qkv.col_range(keys, keys), qkv.col_range(2 * keys, values), alpha, beta, params,
                          pass.slices, state, pass.traits.conv_state_floats(MixerKind::kGatedDelta), y);
  gated_norm(pass, w, z, y);
  linear(pass, y, w.out, target.out, target.accumulate);
}

void mix_short_conv(const Pass& pass, const Layer& layer, ConstMatrix x, Target target) {
  const RecurrentWeights& w = layer.weights.recurrent;
  const std::int64_t width = pass.traits.hidden;
  const Matrix projected = pass.matrix(3 * width), y = pass.matrix(width);  // [B | C | x]
  linear(pass, x, w.in, projected);
  const Matrix gated = projected.col_range(2 * width, width);
  pass.backend.multiply(projected.col_range(0, width), gated);
  pass.backend.causal_conv(gated, conv_params(pass, w, false), pass.slices, pass.memory.state(layer.index), y);
  pass.backend.multiply(projected.col_range(width, width), y);
  linear(pass, y, w.out, target.out, target.accumulate);
}

}  // namespace weir::model
