// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention: the weight that expands latents to keys and values is cut into views, one of each for every
// head, so that queries can be taken to the latent space instead (arXiv:2405.04434, section 2.1.2).
#include "model/weights_loader.h"

namespace weir::model {
namespace {

Status plain(const TensorView& view, const std::string& name) {
  if (!dtype_info(view.type).quantized) return {};
  return fail(ErrorCode::kUnsupported,
              "tensor {}: keys and values in one {} weight cannot be split; convert the model again with a converter that writes "
              "attn_k_b and attn_v_b",
              name, dtype_name(view.type));
}

}  // namespace

Status WeightReader::latent_queries(const std::string& prefix, LatentWeights& out) {
  const Names& names = plan_.names;
  const LatentTraits& t = plan_.traits.latent;
  const std::int64_t hidden = plan_.traits.hidden, queries = std::int64_t{plan_.traits.attention.heads} * (t.nope_dim + t.rope_dim);
  if (t.q_rank == 0) {
    WEIR_ASSIGN(out.q, linear(prefix + names.q, queries, hidden, Bias::kNone));
    return {};
  }
  WEIR_ASSIGN(out.q_down, linear(prefix + names.q_down, t.q_rank, hidden, plan_.latent_bias));
  WEIR_ASSIGN(out.q_norm, norm(prefix + names.q_down_norm, t.q_rank));
  WEIR_ASSIGN(out.q_up, linear(prefix + names.q_up, queries, t.q_rank, Bias::kNone));
  return {};
}

Status WeightReader::latent_up(const std::string& prefix, LatentWeights& out) {
  const Names& names = plan_.names;
  const LatentTraits& t = plan_.traits.latent;
  const std::int64_t heads = plan_.traits.attention.heads, each = t.nope_dim + t.value_dim;
  const std::string split_keys = prefix + names.key_up + ".weight";
  if (!names.key_up.empty() && source_.has(split_keys)) {
    WEIR_ASSIGN(TensorView keys, source_.matrix(split_keys, {heads, t.kv_rank, t.nope_dim}));
    WEIR_ASSIGN(TensorView values, source_.matrix(prefix + names.value_up + ".weight", {heads, t.value_dim, t.kv_rank}));
    for (std::int64_t h = 0; h < heads; ++h) {
      out.key_up.push_back({keys.slice(h)});
      out.value_up.push_back({values.slice(h)});
    }
    return {};
  }
  const std::string name = prefix + names.kv_up + ".weight";
  WEIR_ASSIGN(TensorView both, source_.matrix(name, {heads * each, t.kv_rank}));
  WEIR_TRY(plain(both, name));
  for (std::int64_t h = 0; h < heads; ++h) {  // rows [nope_dim of keys | value_dim of values] for each head
    out.key_up.push_back({both.row_slice(h * each, t.nope_dim), kernels::WeightLayout::kInOut});
    out.value_up.push_back({both.row_slice(h * each + t.nope_dim, t.value_dim)});
  }
  return {};
}

Status WeightReader::latent(const std::string& prefix, LatentWeights& out) {
  const Names& names = plan_.names;
  const LatentTraits& t = plan_.traits.latent;
  const std::int64_t hidden = plan_.traits.hidden;
  WEIR_TRY(latent_queries(prefix, out));
  WEIR_ASSIGN(out.kv_down, linear(prefix + names.kv_down, std::int64_t{t.kv_rank} + t.rope_dim, hidden, plan_.latent_bias));
  WEIR_ASSIGN(out.kv_norm, norm(prefix + names.kv_down_norm, t.kv_rank));
  WEIR_TRY(latent_up(prefix, out));
  WEIR_ASSIGN(out.o, linear(prefix + names.o, hidden, std::int64_t{plan_.traits.attention.heads} * t.value_dim, plan_.latent_bias));
  return {};
}

}  // namespace weir::model
