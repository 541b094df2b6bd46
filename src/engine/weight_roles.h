// SPDX-License-Identifier: Apache-2.0
// Which part of a layer a weight belongs to, by its place in the model.
#pragma once

#include <unordered_map>

#include "engine/step_cost.h"
#include "model/weights.h"

namespace weir::engine {

std::unordered_map<const kernels::Weight*, OpKind> weight_roles(const model::Weights& weights);

}  // namespace weir::engine
