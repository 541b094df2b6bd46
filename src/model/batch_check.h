// SPDX-License-Identifier: Apache-2.0
// A batch comes from outside the model: it is checked whole before anything is computed or stored.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace weir::model {

// kInvalidArgument naming the row or slice that breaks Batch's contract. `state_used` is scratch that is kept between calls.
Status check_batch(const Traits& traits, const Weights& weights, const SequenceMemory& memory, const Batch& batch,
                   std::vector<bool>& state_used);
// The same for Batch::adapters: one for each slice, made for this model.
Status check_adapters(const Model& model, const Batch& batch);

}  // namespace weir::model
