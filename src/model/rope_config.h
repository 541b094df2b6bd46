// SPDX-License-Identifier: Apache-2.0
// Where rope's parameters stand: transformers 4 (`rope_theta`, `rope_scaling` with `type` or `rope_type`), transformers 5
// (`rope_parameters`, flat or one set for each layer type), and GGUF (`rope.*` keys and factor tensors).
#pragma once

#include "model/config.h"
#include "model/rope_scaling.h"

namespace weir::model {

struct RopeDefaults {
  double theta = 10000;
  double partial = 1;                // share of the head that is rotated, when the file does not say
  const char* layer_type = nullptr;  // which set of a nested rope_parameters: "full_attention", "sliding_attention"
};

// Errors go to the config's status. `head_dim` is what a full rotation covers; `context` stands in for an absent original context.
RopeSpec read_rope(Config& config, std::int32_t head_dim, std::int32_t context, const RopeDefaults& defaults = {});

// The rope of `spec` added to traits; its index. Errors go to the config's status.
std::int32_t add_rope(Config& config, Traits& traits, const RopeSpec& spec);

}  // namespace weir::model
