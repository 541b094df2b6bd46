// SPDX-License-Identifier: Apache-2.0
#include "model/check_traits.h"

#include <cmath>

namespace weir::model {
namespace {

Status check_rope(const Traits& t, const LayerTraits& layer) {
  if (layer.rope < -1 || layer.rope >= static_cast<std::int32_t>(t.ropes.size()))
    return fail(ErrorCode::kInternal, "a layer's rope does not exist");
  if (layer.rope < 0) return {};
  const std::int32_t rotated = t.ropes[static_cast<std::size_t>(layer.rope)].rotary_dim;
  const std::int32_t limit = layer.mixer == MixerKind::kLatentAttention ? t.latent.rope_dim : t.attention.head_dim;
  if (rotated > limit) return fail(ErrorCode::kCorrupt, "rope rotates {} dimensions of heads of {}", rotated, limit);
  if (layer.mixer == MixerKind::kLatentAttention && rotated != limit)
    return fail(ErrorCode::kUnsupported, "rope rotates {} of {} dimensions in latent attention", rotated, limit);
  return {};
}

Status check_mixer(const Traits& t, const LayerTraits& layer) {
  const AttentionTraits& a = t.attention;
  const LatentTraits& l = t.latent;
  const RecurrentTraits& r = t.recurrent;
  switch (layer.mixer) {
    case MixerKind::kAttention:
      if (a.heads < 1 || a.kv_heads < 1 || a.heads % a.kv_heads)
        return fail(ErrorCode::kCorrupt, "{} attention heads for {} KV heads", a.heads, a.kv_heads);
      if (a.head_dim < 1 || a.value_dim < 1)
        return fail(ErrorCode::kCorrupt, "heads of {} and values of {} dimensions", a.head_dim, a.value_dim);
      return {};
    case MixerKind::kLatentAttention:
      if (a.heads < 1 || l.q_rank < 0 || l.kv_rank < 1 || l.nope_dim < 1 || l.rope_dim < 1 || l.value_dim < 1)
        return fail(ErrorCode::kCorrupt, "latent attention with ranks {} and {}, dimensions {}, {} and {}", l.q_rank, l.kv_rank, l.nope_dim,
                    l.rope_dim, l.value_dim);
      return {};
    case MixerKind::kShortConv: return r.conv_taps >= 1 ? Status{} : fail(ErrorCode::kCorrupt, "a convolution of {} taps", r.conv_taps);
    default:
      if (r.conv_taps < 1 || r.key_heads < 1 || r.value_heads < 1 || r.value_heads % r.key_heads || r.key_dim < 1 || r.value_dim < 1)
        return fail(ErrorCode::kCorrupt, "recurrent layer with {} taps, {} key heads of {} and {} value heads of {}", r.conv_taps,
                    r.key_heads, r.key_dim, r.value_heads, r.value_dim);
      if (r.norm_group < 1 || (std::int64_t{r.value_heads} * r.value_dim) % r.norm_group)
        return fail(ErrorCode::kCorrupt, "recurrent layer: {} values normalised in groups of {}", std::int64_t{r.value_heads} * r.value_dim,
                    r.norm_group);
      return {};
  }
}

Status check_ffn(const Plan& plan, std::size_t index) {
  const Traits& t = plan.traits;
  const FfnKind kind = t.layers[index].ffn;
  if (kind == FfnKind::kNone) return {};
  if (kind != FfnKind::kExperts) {
    const std::int32_t size = index < plan.ffn_sizes.size() ? plan.ffn_sizes[index] : 0;
    return size > 0 ? Status{} : fail(ErrorCode::kCorrupt, "the inner size of the ffn of layer {} is {}", index, size);
  }
  const kernels::RouterParams& r = t.experts.router;
  if (t.experts.experts < 1 || r.top_k < 1 || r.top_k > t.experts.experts)
    return fail(ErrorCode::kCorrupt, "{} of {} experts", r.top_k, t.experts.experts);
  if (r.groups < 1 || t.experts.experts % r.groups || r.top_groups < 1 || r.top_groups > r.groups)
    return fail(ErrorCode::kCorrupt, "{} experts in {} groups, {} of them chosen", t.experts.experts, r.groups, r.top_groups);
  if (r.top_k > t.experts.experts / r.groups * r.top_groups)
    return fail(ErrorCode::kCorrupt, "{} experts from {} groups of {}", r.top_k, r.top_groups, t.experts.experts / r.groups);
  if (r.groups > 1 && r.group_score == kernels::GroupScore::kTopTwoSum && t.experts.experts / r.groups < 2)
    return fail(ErrorCode::kCorrupt, "groups of one expert, but their best two are summed");
  return plan.expert_size > 0 ? Status{} : fail(ErrorCode::kCorrupt, "experts of size {}", plan.expert_size);
}

}  // namespace

Status check_traits(const Plan& plan) {
  const Traits& t = plan.traits;
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    WEIR_TRY(check_mixer(t, t.layers[i]));
    WEIR_TRY(check_rope(t, t.layers[i]));
    WEIR_TRY(check_ffn(plan, i));
    if (t.layers[i].window < 0) return fail(ErrorCode::kCorrupt, "layer {}: a window of {}", i, t.layers[i].window);
  }
  for (const float value : {t.embedding_scale, t.residual_scale, t.logit_scale, t.logit_softcap, t.attention.scale, t.attention.softcap})
    if (!std::isfinite(value)) return fail(ErrorCode::kCorrupt, "a multiplier is not a finite number");
  return {};
}

}  // namespace weir::model
