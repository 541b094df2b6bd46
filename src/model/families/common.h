// SPDX-License-Identifier: Apache-2.0
// What most families share: sizes, names of tensors, norms, rope, windows, experts. Families call these and then set what
// differs.
#pragma once

#include <initializer_list>
#include <string_view>

#include "model/plan.h"
#include "model/rope_config.h"

namespace weir::model {

// Layers, hidden size, vocabulary, context and inner sizes of the ffn, and the names of a llama-like file: those of GGUF, or
// Hugging Face's with the root that the file uses. Layers start as attention with a gated ffn and no rope.
void read_sizes(Plan& plan);
// Heads and their dimensions, the scale 1/sqrt(head_dim).
void read_attention(Plan& plan);
// Root-mean-square or layer norms with the epsilon that the file states; layer norms have a bias when `bias` says so.
void use_rms_norm(Plan& plan, double default_epsilon = 1e-6);
void use_layer_norm(Plan& plan, Bias bias, double default_epsilon = 1e-5);
// All of these for a pre-norm decoder, and one rope for all layers.
void read_decoder(Plan& plan, const RopeDefaults& rope = {});

// One rope for all layers. `pairs` is set here for files whose rows stand in pairs.
void use_rope(Plan& plan, const RopeDefaults& defaults = {}, bool pairs = false);
// GGUF of the llama class: converters permute the rows of q and k so that pairs are neighbours.
bool rows_are_paired(const Plan& plan);

// The activation named by config.json under `key`; GGUF files imply the family's own.
kernels::Activation read_activation(Plan& plan, const char* key, kernels::Activation fallback);

// Which layers slide: from config.json's layer_types when there, else by index.
template <class ByIndex>
void use_windows(Plan& plan, std::int32_t window, ByIndex slides);
void apply_layer_types(Plan& plan, std::int32_t window);
bool has_layer_types(const Plan& plan);

// Inner sizes of the ffn from the tensors, for families whose converters write four times the hidden size whatever it is; and
// four times the hidden size where config.json is silent.
void ffn_sizes_by_tensor(Plan& plan);

// Biases from a flag of config.json; in GGUF they are where the file has them.
Bias bias_by_flag(Plan& plan, const char* key, bool fallback);

// The first root under which the token embedding lies, else the one that the file has; and where the head is.
void find_root(Plan& plan, std::initializer_list<const char*> roots);

struct ExpertDefaults {
  kernels::RouterScore score = kernels::RouterScore::kSoftmax;
  bool renormalize = false;
};
// Counts, sizes and routing of experts. Which layers have them is the family's to say.
void read_experts(Plan& plan, const ExpertDefaults& defaults);

template <class ByIndex>
void use_windows(Plan& plan, std::int32_t window, ByIndex slides) {
  if (has_layer_types(plan)) return apply_layer_types(plan, window);
  for (std::int32_t i = 0; i < plan.layer_count(); ++i) plan.traits.layers[static_cast<std::size_t>(i)].window = slides(i) ? window : 0;
}

}  // namespace weir::model
