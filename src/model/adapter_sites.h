// SPDX-License-Identifier: Apache-2.0
// Where an adapter can change a model: every weight of a linear layer under the names that files of either container have for it, with
// the matrices in which the model holds it (a fused weight is held in parts, experts one by one).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"
#include "model/plan.h"

namespace weir::model {

// A matrix that holds outputs of the named weight, from `first` on.
struct AdapterPart {
  const kernels::Weight* weight = nullptr;
  std::int64_t first = 0;
  std::int64_t heads = 0;  // > 0: its rows stand in pairs in one of the containers, head by head
  bool backwards = false;  // it maps these outputs to the named weight's inputs: [in, count] (keys of latent attention)
};

struct AdapterSite {
  std::int32_t layer = -1;
  std::int32_t input = -1;  // weights of a layer that share it read the same rows in the same call; -1: none does
  std::int64_t out = 0, in = 0;
  std::int64_t experts = 0;             // > 0: one tensor holds the matrices of all of them
  std::vector<AdapterPart> parts = {};  // of each expert in turn
  bool embedding = false;               // of tokens: out is the hidden size, in the vocabulary's
  bool other_order = false;             // rows in another order in the other container, which is not known here
};

enum class Role {
  kNone,
  kQ,
  kK,
  kV,
  kQkv,
  kO,
  kGate,
  kUp,
  kGateUp,
  kDown,
  kRouter,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kStackedGate,
  kStackedUp,
  kStackedGateUp,
  kStackedDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedWeight,
  kQDown,
  kQUp,
  kKvDown,
  kKvUp,
  kHead,
  kEmbedding,
};

class AdapterSites {
 public:
  // For adapters of one container, whatever the model's is.
  AdapterSites(const Traits& traits, const Weights& weights, bool gguf_adapter);

  // All that have this name, which more than one has when files differ in what they fuse; the sizes decide.
  std::vector<const AdapterSite*> find(std::string_view module) const;
  bool same_container() const { return naming_.gguf == gguf_; }

 private:
  void add(const std::string& own_name, Role role, AdapterSite site, std::int32_t expert = -1);
  void add(const std::string& own_name, Role role, const Linear& linear, std::int32_t input = -1, std::int64_t heads = 0,
           std::int32_t expert = -1);
  void layer(std::int32_t index, const Traits& traits, const LayerWeights& weights);
  void attention(const Traits& traits, const AttentionWeights& w);
  void latent(const LatentTraits& t, const LatentWeights& w);
  void recurrent(const RecurrentWeights& w);
  void feed_forward(const FfnNames& names, const FfnWeights& w, bool shared);
  void experts(const ExpertWeights& w);
  void stacked(const std::string& own_name, Role role, const std::vector<FfnWeights>& experts, std::vector<Linear FfnWeights::*> members);
  void globals(const Weights& weights);

  const Naming& naming_;
  bool gguf_;
  std::int32_t layer_ = -1;  // whose sites are being added
  std::vector<AdapterSite> sites_;
  std::unordered_multimap<std::string, std::size_t> by_name_;  // "layer/name in it"
};

}  // namespace weir::model
