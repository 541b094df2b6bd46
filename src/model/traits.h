// SPDX-License-Identifier: Apache-2.0
// What differs between model families, as data. families.cc fills it from a Hugging Face config or from GGUF keys; the
// forward pass reads it and knows no family by name. Scalings of rope are resolved here to plain frequencies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kernels/backend.h"

namespace weir::model {

using kernels::Activation;
using kernels::NormKind;

struct RopeTraits {
  bool pairs = false;                       // (2i, 2i+1) instead of (i, i + rotary_dim/2)
  std::int32_t rotary_dim = 0;              // even
  std::vector<double> inverse_frequencies;  // rotary_dim / 2, scaling applied
  double magnitude = 1;                     // multiplies cosines and sines (yarn, longrope)
  std::vector<double> long_frequencies;     // longrope: for sequences longer than `long_above`; empty = none
  double long_magnitude = 1;
  std::int32_t long_above = 0;
};

enum class MixerKind { kAttention, kLatentAttention, kMamba2, kGatedDelta, kShortConv };
enum class QkvLayout {
  kSeparate,  // q, k, v (or views of rows of a fused weight)
  kFused,     // one weight, outputs [q of all heads | k | v]
  kPerHead,   // one weight, outputs [q k v] for each head (GPT-NeoX, Bloom)
  kPerGroup,  // one weight, outputs [q…q k v] for each KV head (Falcon's new decoder)
};
enum class QkNorm { kNone, kPerHead, kWhole };  // one norm per head (weight shared, or one per head), or over all heads together

struct AttentionTraits {
  std::int32_t heads = 0, kv_heads = 0;
  std::int32_t head_dim = 0;   // of queries and keys
  std::int32_t value_dim = 0;  // of values
  float scale = 1;             // of q·k
  float softcap = 0;
  QkvLayout qkv = QkvLayout::kSeparate;
  QkNorm qk_norm = QkNorm::kNone;
  NormKind qk_norm_kind = NormKind::kRms;
  bool qk_norm_after_rope = false;
  bool output_gate = false;  // q's weight yields [q | gate] per head; σ(gate) multiplies the output (Qwen3-Next)
  bool causal = true;
};

struct LatentTraits {       // MLA (DeepSeek-V2, arXiv:2405.04434): the cache holds [latent | roped key]
  std::int32_t q_rank = 0;  // 0 = q in one step
  std::int32_t kv_rank = 0;
  std::int32_t nope_dim = 0, rope_dim = 0, value_dim = 0;
};

struct RecurrentTraits {  // sizes of Mamba-2, gated delta rule and short convolution layers
  std::int32_t conv_taps = 0;
  std::int32_t key_heads = 0, value_heads = 0;  // Mamba-2: groups and heads
  std::int32_t key_dim = 0, value_dim = 0;      // Mamba-2: state size and head size
  float dt_min = 0, dt_max = 1e30f;
  std::int32_t norm_group = 0;     // gated norm: values normalised together, always set (delta rule: value_dim)
  bool tiled_value_heads = false;  // delta rule: kernels::DeltaParams::tiled
  bool norm_before_gate = true;    // norm(y)·silu(z) if true (delta rule), norm(y·silu(z)) if false (Mamba-2)
};

enum class FfnKind { kNone, kGated, kPlain, kExperts };
enum class GateUpLayout { kSeparate, kFused, kInterleaved };  // two weights; one giving [gate | up]; one giving gate, up, gate, up …

struct FfnTraits {
  Activation activation = Activation::kSilu;
  GateUpLayout gate_up = GateUpLayout::kSeparate;
  bool clamped = false;  // gpt-oss: clamped_swiglu with these two
  float clamp_alpha = 1.702f, clamp_limit = 7.0f;
};

struct ExpertTraits {
  std::int32_t experts = 0;
  kernels::RouterParams router;  // `correction` is filled per layer from the weights
  GateUpLayout gate_up = GateUpLayout::kSeparate;
  bool weigh_input = false;  // the router weight multiplies the expert's input instead of its output (Llama 4)
};

// How a sequence's rows become one vector; kNone = the file does not say.
enum class Pooling { kNone, kMean, kCls, kLast, kMax, kMeanSqrt, kWeightedMean };

std::optional<Pooling> pooling_by_name(std::string_view name);  // as sentence-transformers calls them: "mean", "cls", "lasttoken", …
const char* pooling_name(Pooling pooling);

// A head that sorts sequences into classes: a pooled state → dense → activation → norm → labels.
enum class HeadActivation { kNone, kTanh, kRelu, kGelu };
struct ClassifierTraits {
  std::int32_t labels = 0;  // 0 = the model has no such head
  Pooling pooling = Pooling::kCls;
  HeadActivation activation = HeadActivation::kNone;
  std::vector<std::string> names;  // of the labels; empty = the file does not say
};

// What one layer is made of. Norms exist where the weights have them (weights.h).
struct LayerTraits {
  MixerKind mixer = MixerKind::kAttention;
  std::int32_t window = 0;  // sliding window of attention, 0 = none
  std::int32_t rope = -1;   // index into Traits::ropes, -1 = no rope
  FfnKind ffn = FfnKind::kGated;
};

struct Traits {
  std::string family;  // "llama", "gemma2", …: for messages only
  std::int32_t vocab_size = 0;
  std::int32_t hidden = 0;
  std::int32_t max_context = 0;    // what the file says it was made for, 0 = unknown
  std::int32_t max_positions = 0;  // positions from here on are refused, since the scaling of rope ends there; 0 = no end
  bool encoder = false;            // hidden states are the result, no logits (BERT)

  NormKind norm = NormKind::kRms;
  float norm_epsilon = 1e-5f;
  bool parallel = false;  // mixer and ffn both read the layer's input, both are added (GPT-NeoX, Phi, Cohere)

  float embedding_scale = 1, residual_scale = 1, logit_scale = 1, logit_softcap = 0;
  std::int32_t position_offset = 0;  // added to positions for learned position embeddings (RoBERTa: 2)

  Pooling pooling = Pooling::kNone;
  bool normalize_pooled = false;  // the pooled vector is divided by its Euclidean norm

  std::vector<LayerTraits> layers;
  std::vector<RopeTraits> ropes;
  AttentionTraits attention;
  LatentTraits latent;
  RecurrentTraits recurrent;
  FfnTraits ffn;
  ExpertTraits experts;
  ClassifierTraits classifier;

  bool has_attention() const;                             // any layer that needs KV blocks
  bool has_state() const;                                 // any layer that needs a state slot
  std::int64_t conv_channels(MixerKind mixer) const;      // of a recurrent layer's convolution; 0 for attention
  std::int64_t conv_state_floats(MixerKind mixer) const;  // its last inputs, at the start of the layer's state
  std::int64_t state_floats(MixerKind mixer) const;       // the whole state of a layer for one sequence
};

}  // namespace weir::model
