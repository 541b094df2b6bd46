// SPDX-License-Identifier: Apache-2.0
// The weights of a model by role. Matrices are views into the mapped files; vectors (norms, biases) are small and held
// as f32, with the family's conventions already applied (1 + w, -exp(A_log)). An empty vector or an absent optional
// means that the model has none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mapped_file.h"
#include "kernels/backend.h"

namespace weir::model {

using Vector = std::vector<float>;

struct Naming;

struct NormWeights {
  Vector weight, bias;
  bool present = false;  // a norm without weights is still a norm
};

struct Linear {
  std::optional<kernels::Weight> weight;
  Vector bias;
  explicit operator bool() const { return weight.has_value(); }
};

struct AttentionWeights {
  Linear q, k, v, qkv, o;  // qkv when Traits says fused
  NormWeights q_norm, k_norm;
  Vector sinks;
};

struct LatentWeights {
  Linear q, q_down, q_up;  // q alone, or down → norm → up
  NormWeights q_norm, kv_norm;
  Linear kv_down;                         // → [latent | rope key]
  std::vector<kernels::Weight> key_up;    // per head, out = kv_rank, in = nope_dim: q_nope → latent query
  std::vector<kernels::Weight> value_up;  // per head, out = value_dim, in = kv_rank
  Linear o;
};

struct RecurrentWeights {
  Linear in;                      // Mamba-2: [z | x | B | C | dt]; short conv: [B | C | x]; delta rule: see the next two
  Linear qkv, z, alpha, beta;     // delta rule: outputs [q | k | v], z [value_heads·value_dim], alpha, beta [value_heads]
  Vector conv_weight, conv_bias;  // [channels, taps]
  Vector a, d, dt_bias;
  NormWeights norm;  // gated norm
  Linear out;
};

struct FfnWeights {
  Linear gate, up, gate_up, down;
};

struct ExpertWeights {
  Linear router;
  Vector router_correction;
  std::vector<FfnWeights> experts;
  FfnWeights shared;   // shared experts as one FFN, absent = empty
  Linear shared_gate;  // → 1: σ multiplies the shared output
};

struct LayerWeights {
  NormWeights mixer_norm;       // before the mixer
  NormWeights post_mixer_norm;  // on the mixer's output, before it is added
  NormWeights ffn_norm;         // before the ffn; parallel layers without one share mixer_norm's output
  NormWeights post_ffn_norm;    // on the ffn's output, before it is added
  NormWeights after_mixer;      // on the residual stream after the mixer was added (BERT)
  NormWeights after_ffn;        // on the residual stream after the ffn was added (BERT)
  AttentionWeights attention;
  LatentWeights latent;
  RecurrentWeights recurrent;
  FfnWeights ffn;
  ExpertWeights experts;
};

// ClassifierTraits says what happens between the parts; all but `out` may be absent.
struct ClassifierWeights {
  Linear dense;
  NormWeights norm;
  Linear out;
};

// Bytes of a weight in another order than the file's, which nobody has made yet: a packed weight that is found in the cache never needs
// them. `rows` of equal size; make(first, count, out) writes some of them, from any thread.
struct DeferredBytes {
  std::span<std::byte> bytes;
  std::int64_t rows = 0;
  std::function<void(std::int64_t first, std::int64_t count, std::byte* out)> make;
};

struct Weights {
  kernels::Weight token_embedding;
  std::optional<kernels::Weight> position_embedding, type_embedding;
  NormWeights embedding_norm;
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  Linear head;    // tied: the same view as token_embedding; absent when the file has none
  Linear pooler;  // BERT: tanh(W · first position)
  ClassifierWeights classifier;
  std::vector<std::shared_ptr<const MappedFile>> files;  // what the model was loaded from
  std::vector<std::shared_ptr<const void>> owners;       // files and converted buffers that the views point into
  std::shared_ptr<const Naming> naming;                  // plan.h; a model's own
  std::vector<DeferredBytes> deferred;                   // parts of those buffers
};

// Makes the deferred bytes of weights that are not packed, and forgets the others.
void make_deferred(Weights& weights);

}  // namespace weir::model
