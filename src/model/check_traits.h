// SPDX-License-Identifier: Apache-2.0
// The last look at a plan before its weights are read: whatever the forward pass takes for granted about the traits.
#pragma once

#include "base/result.h"
#include "model/plan.h"

namespace weir::model {

Status check_traits(const Plan& plan);

}  // namespace weir::model
