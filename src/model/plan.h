// SPDX-License-Identifier: Apache-2.0
// What a family says about a file before its weights are read: the traits, under which names the roles lie, and the
// conventions of the container. Families fill a Plan (families/), load_weights() carries it out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/tensor_source.h"
#include "model/traits.h"

namespace weir::model {

enum class Bias { kNone, kRequired, kOptional };

// Names of tensors by role, empty where a family has no such tensor. Roles of linear layers and norms are without their
// ".weight" and ".bias"; those marked (full) are whole names. Everything after `layer` is inside a layer.
struct FfnNames {
  std::string gate, up, down;
  std::string gate_up;  // both in one weight, one above the other; used where `gate` is absent
};

struct Names {
  std::string root;  // put before all names but `head`
  std::string token_embedding, position_embedding, type_embedding, embedding_norm, final_norm, pooler;
  std::string head;   // whole name, without root
  std::string layer;  // "layers.": followed by the number and a dot

  std::string mixer_norm, post_mixer_norm, ffn_norm, post_ffn_norm, after_mixer, after_ffn;

  std::string q, k, v, qkv, o, q_norm, k_norm;
  std::string sinks;  // (full)

  std::string q_down, q_down_norm, q_up;  // MLA; `q` when there is no q_rank
  std::string kv_down, kv_down_norm;
  std::string kv_up;             // keys and values of each head in one weight, or
  std::string key_up, value_up;  // split, keys transposed

  FfnNames ffn;

  std::string router;
  std::string router_correction;  // (full)
  std::string experts;            // "mlp.experts.": followed by the number, a dot and these
  FfnNames expert;
  std::string stacked_gate, stacked_up, stacked_gate_up, stacked_down;  // (full) one tensor for all experts
  FfnNames shared;                                                      // shared experts as one ffn
  std::string shared_gate;                                              // → 1

  std::string recurrent_in, recurrent_out, recurrent_norm, conv;
  std::string delta_qkv, delta_z, delta_alpha, delta_beta;
  std::string delta_qkvz, delta_ba;  // the same four, interleaved by key head
  std::string a, d, dt_bias;         // (full)

  std::string classifier_dense, classifier_norm, classifier_out;  // without root
};

// What a model's tensors are called, kept for adapters, which come with names of either container.
struct Naming {
  Names names;
  bool gguf = false;            // the container of the model
  bool paired_rows = false;     // converters to GGUF permute the rows of q and k: pairs are neighbours there
  bool regrouped_rows = false;  // converters to GGUF put a fused qkv into another order
};

// How experts are stored.
enum class ExpertStorage {
  kTensors,      // a tensor for each expert and role
  kStacked,      // [experts, out, in] for each role (gate and up apart, or one above the other)
  kInterleaved,  // gpt-oss: [experts, in, out], gate and up alternating; or the same as MXFP4 blocks
};

struct Plan {
  Plan(Config& c, TensorSource& t) : config(c), tensors(t) {}

  Config& config;
  TensorSource& tensors;
  Traits traits;
  Names names;

  std::vector<std::int32_t> ffn_sizes;            // inner size of each layer's dense ffn
  std::int32_t expert_size = 0, shared_size = 0;  // inner sizes; 0 shared = none
  std::int32_t positions = 0, types = 0;          // rows of the position and type embeddings

  Bias qkv_bias = Bias::kNone, o_bias = Bias::kNone;
  Bias ffn_bias = Bias::kNone, expert_bias = Bias::kNone, router_bias = Bias::kNone;
  Bias classifier_bias = Bias::kOptional;
  Bias norm_bias = Bias::kNone, head_bias = Bias::kNone, latent_bias = Bias::kNone, recurrent_bias = Bias::kNone, conv_bias = Bias::kNone;
  ExpertStorage expert_storage = ExpertStorage::kTensors;
  bool paired_rows = false, regrouped_rows = false;  // see Naming
  bool transposed = false;                           // matrices stand as [in, out] (GPT-2's Conv1D)
  float norm_offset = 0;                             // 1 where the file stores weight - 1 (Gemma)
  bool up_first = false;                             // a fused gate_up is [up | gate]
  bool first_mixer_norm_optional = false;            // the first layer may do without (ModernBERT)
  bool a_is_log = true;                              // the file stores log(-A)
  std::vector<std::string> ignored;                  // beginnings of tensor names (root included) that belong to other parts

  std::int32_t layer_count() const { return static_cast<std::int32_t>(traits.layers.size()); }
};

}  // namespace weir::model
