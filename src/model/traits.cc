// SPDX-License-Identifier: Apache-2.0
// What follows from the traits: which memory a model's layers need.
#include "model/traits.h"

#include <algorithm>

namespace weir::model {

namespace {
bool is_attention(MixerKind mixer) { return mixer == MixerKind::kAttention || mixer == MixerKind::kLatentAttention; }
}  // namespace

bool Traits::has_attention() const {
  return std::ranges::any_of(layers, [](const LayerTraits& l) { return is_attention(l.mixer); });
}
bool Traits::has_state() const {
  return std::ranges::any_of(layers, [](const LayerTraits& l) { return !is_attention(l.mixer); });
}

namespace {

struct PoolingName {
  const char* name;
  Pooling pooling;
};
constexpr PoolingName kPoolingNames[] = {{"mean", Pooling::kMean},
                                         {"cls", Pooling::kCls},
                                         {"lasttoken", Pooling::kLast},
                                         {"max", Pooling::kMax},
                                         {"mean_sqrt", Pooling::kMeanSqrt},
                                         {"weightedmean", Pooling::kWeightedMean},
                                         {"mean_sqrt_len_tokens", Pooling::kMeanSqrt},
                                         {"last", Pooling::kLast},
                                         {"none", Pooling::kNone}};

}  // namespace

std::optional<Pooling> pooling_by_name(std::string_view name) {
  const auto* found = std::ranges::find_if(kPoolingNames, [&](const PoolingName& n) { return name == n.name; });
  return found == std::end(kPoolingNames) ? std::nullopt : std::optional(found->pooling);
}

const char* pooling_name(Pooling pooling) {
  return std::ranges::find_if(kPoolingNames, [&](const PoolingName& n) { return n.pooling == pooling; })->name;
}

std::int64_t Traits::conv_channels(MixerKind mixer) const {
  const RecurrentTraits& r = recurrent;
  const std::int64_t keys = std::int64_t{r.key_heads} * r.key_dim, values = std::int64_t{r.value_heads} * r.value_dim;
  switch (mixer) {
    case MixerKind::kMamba2:
    case MixerKind::kGatedDelta: return 2 * keys + values;
    case MixerKind::kShortConv: return hidden;
    case MixerKind::kAttention:
    case MixerKind::kLatentAttention: break;
  }
  return 0;
}

std::int64_t Traits::conv_state_floats(MixerKind mixer) const { return std::max(0, recurrent.conv_taps - 1) * conv_channels(mixer); }

std::int64_t Traits::state_floats(MixerKind mixer) const {
  const RecurrentTraits& r = recurrent;
  const bool scans = mixer == MixerKind::kMamba2 || mixer == MixerKind::kGatedDelta;
  return conv_state_floats(mixer) + (scans ? std::int64_t{r.value_heads} * r.value_dim * r.key_dim : 0);
}

}  // namespace weir::model
