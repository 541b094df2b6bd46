// SPDX-License-Identifier: Apache-2.0
// What the Qwen families share beyond the common parts.
#pragma once

#include "model/plan.h"

namespace weir::model {

void qwen_sparse_layers(Plan& plan);  // decoder_sparse_step and mlp_only_layers: which layers are mixtures of experts
void qwen_shared_expert(Plan& plan);  // the shared expert and its sigmoid gate

}  // namespace weir::model
