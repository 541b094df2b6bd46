// SPDX-License-Identifier: Apache-2.0
// What a Model keeps between calls, so that a steady state allocates nothing.
#pragma once

#include <vector>

#include "model/arena.h"
#include "model/model.h"

namespace weir::model {

struct Model::Scratch {
  Arena arena;
  std::vector<kernels::ConstMatrix> ropes;
  std::vector<bool> state_used;
};

}  // namespace weir::model
