// SPDX-License-Identifier: Apache-2.0
// Layers with a recurrent state: Mamba-2, the gated delta rule (Qwen3-Next) and gated short convolutions (LFM2).
#include <cmath>
#include <cstring>
#include <numeric>

#include "model/weights_loader.h"

namespace weir::model {
namespace {

std::vector<std::int64_t> run(std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

void append(std::vector<std::int64_t>& rows, std::int64_t begin, std::int64_t count) {
  const auto more = run(begin, count);
  rows.insert(rows.end(), more.begin(), more.end());
}

}  // namespace

// A = -exp(A_log), whichever of the two the file stores.
Result<Vector> WeightReader::decay(const std::string& name, std::int64_t count) {
  WEIR_ASSIGN(Vector a, source_.vector(name, count));
  if (plan_.a_is_log)
    for (float& v : a) v = -std::exp(v);
  return a;
}

Status WeightReader::mamba2(const std::string& prefix, RecurrentWeights& out) {
  const Names& names = plan_.names;
  const RecurrentTraits& t = plan_.traits.recurrent;
  const std::int64_t hidden = plan_.traits.hidden, inner = std::int64_t{t.value_heads} * t.value_dim;
  const std::int64_t channels = inner + 2 * std::int64_t{t.key_heads} * t.key_dim;
  WEIR_ASSIGN(out.in, linear(prefix + names.recurrent_in, inner + channels + t.value_heads, hidden, plan_.recurrent_bias));
  WEIR_ASSIGN(out.out, linear(prefix + names.recurrent_out, hidden, inner, plan_.recurrent_bias));
  WEIR_ASSIGN(out.conv_weight, source_.vector(prefix + names.conv + ".weight", channels * t.conv_taps));
  WEIR_ASSIGN(out.conv_bias, bias(prefix + names.conv, channels, plan_.conv_bias));
  WEIR_ASSIGN(out.a, decay(prefix + names.a, t.value_heads));
  WEIR_ASSIGN(out.d, source_.vector(prefix + names.d, t.value_heads));
  WEIR_ASSIGN(out.dt_bias, source_.vector(prefix + names.dt_bias, t.value_heads));
  WEIR_ASSIGN(out.norm, norm(prefix + names.recurrent_norm, inner, 0));
  return {};
}

// Rows of a weight in another order, copied: they are few beside the rest of the model, and its pages are given back.
Result<Linear> WeightReader::picked_rows(const std::string& base, std::int64_t rows, std::int64_t cols,
                                         const std::vector<std::int64_t>& order) {
  const std::string name = base + ".weight";
  WEIR_ASSIGN(const TensorView view, source_.matrix(name, {rows, cols}));
  const auto row_size = static_cast<std::size_t>(view.bytes_per_row());
  const std::size_t size = row_size * order.size();
  std::byte* data = own(size);
  for (std::size_t i = 0; i < order.size(); ++i)
    std::memcpy(data + i * row_size, view.bytes.data() + static_cast<std::size_t>(order[i]) * row_size, row_size);
  return Linear{kernels::Weight{TensorView{view.type, {static_cast<std::int64_t>(order.size()), cols}, {data, size}}}, {}};
}

// Qwen3-Next keeps [q k v z] and [beta alpha] of each key head together.
Status WeightReader::interleaved_delta(const std::string& prefix, RecurrentWeights& out) {
  const Names& names = plan_.names;
  const RecurrentTraits& t = plan_.traits.recurrent;
  const std::int64_t hidden = plan_.traits.hidden, ratio = t.value_heads / t.key_heads;
  const std::int64_t values = ratio * t.value_dim, each = 2 * std::int64_t{t.key_dim} + 2 * values;
  const std::string qkvz = prefix + names.delta_qkvz, ba = prefix + names.delta_ba;
  if (!names.delta_qkvz.empty() && source_.has(qkvz + ".weight")) {
    std::vector<std::int64_t> qkv, z;
    for (std::int64_t h = 0; h < t.key_heads; ++h) append(qkv, h * each, t.key_dim);
    for (std::int64_t h = 0; h < t.key_heads; ++h) append(qkv, h * each + t.key_dim, t.key_dim);
    for (std::int64_t h = 0; h < t.key_heads; ++h) append(qkv, h * each + 2 * t.key_dim, values);
    for (std::int64_t h = 0; h < t.key_heads; ++h) append(z, h * each + 2 * t.key_dim + values, values);
    WEIR_ASSIGN(out.qkv, picked_rows(qkvz, each * t.key_heads, hidden, qkv));
    WEIR_ASSIGN(out.z, picked_rows(qkvz, each * t.key_heads, hidden, z));
    source_.release(qkvz + ".weight");
  }
  if (!names.delta_ba.empty() && source_.has(ba + ".weight")) {
    std::vector<std::int64_t> alpha, beta;
    for (std::int64_t h = 0; h < t.key_heads; ++h) append(beta, h * 2 * ratio, ratio);
    for (std::int64_t h = 0; h < t.key_heads; ++h) append(alpha, h * 2 * ratio + ratio, ratio);
    WEIR_ASSIGN(out.beta, picked_rows(ba, 2 * std::int64_t{t.value_heads}, hidden, beta));
    WEIR_ASSIGN(out.alpha, picked_rows(ba, 2 * std::int64_t{t.value_heads}, hidden, alpha));
    source_.release(ba + ".weight");
  }
  return {};
}

Status WeightReader::gated_delta(const std::string& prefix, RecurrentWeights& out) {
  const Names& names = plan_.names;
  const RecurrentTraits& t = plan_.traits.recurrent;
  const std::int64_t hidden = plan_.traits.hidden, values = std::int64_t{t.value_heads} * t.value_dim;
  const std::int64_t channels = 2 * std::int64_t{t.key_heads} * t.key_dim + values;
  WEIR_TRY(interleaved_delta(prefix, out));
  if (!out.qkv) {
    WEIR_ASSIGN(out.qkv, linear(prefix + names.delta_qkv, channels, hidden, Bias::kNone));
  }
  if (!out.z) {
    WEIR_ASSIGN(out.z, linear(prefix + names.delta_z, values, hidden, Bias::kNone));
  }
  if (!out.alpha) {
    WEIR_ASSIGN(out.alpha, linear(prefix + names.delta_alpha, t.value_heads, hidden, Bias::kNone));
  }
  if (!out.beta) {
    WEIR_ASSIGN(out.beta, linear(prefix + names.delta_beta, t.value_heads, hidden, Bias::kNone));
  }
  WEIR_ASSIGN(out.conv_weight, source_.vector(prefix + names.conv + ".weight", channels * t.conv_taps));
  WEIR_ASSIGN(out.a, decay(prefix + names.a, t.value_heads));
  WEIR_ASSIGN(out.dt_bias, source_.vector(prefix + names.dt_bias, t.value_heads));
  WEIR_ASSIGN(out.norm, norm(prefix + names.recurrent_norm, t.value_dim, 0));
  WEIR_ASSIGN(out.out, linear(prefix + names.recurrent_out, hidden, values, Bias::kNone));
  return {};
}

Status WeightReader::short_conv(const std::string& prefix, RecurrentWeights& out) {
  const Names& names = plan_.names;
  const std::int64_t hidden = plan_.traits.hidden;
  WEIR_ASSIGN(out.in, linear(prefix + names.recurrent_in, 3 * hidden, hidden, plan_.recurrent_bias));
  WEIR_ASSIGN(out.conv_weight, source_.vector(prefix + names.conv + ".weight", hidden * plan_.traits.recurrent.conv_taps));
  WEIR_ASSIGN(out.conv_bias, bias(prefix + names.conv, hidden, plan_.conv_bias));
  WEIR_ASSIGN(out.out, linear(prefix + names.recurrent_out, hidden, hidden, plan_.recurrent_bias));
  return {};
}

Status WeightReader::recurrent(MixerKind kind, const std::string& prefix, RecurrentWeights& out) {
  switch (kind) {
    case MixerKind::kMamba2: return mamba2(prefix, out);
    case MixerKind::kGatedDelta: return gated_delta(prefix, out);
    case MixerKind::kShortConv: return short_conv(prefix, out);
    default: return fail(ErrorCode::kInternal, "not a recurrent layer");
  }
}

}  // namespace weir::model
