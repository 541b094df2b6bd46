// SPDX-License-Identifier: Apache-2.0
// The x86 part of multiply_add.h. Adds nothing on other architectures.
#pragma once

#include <vector>

#include "kernels/limits/multiply_add.h"

namespace weir::kernels {

void add_x86_loops(std::vector<MultiplyAddLoop>& loops);

}  // namespace weir::kernels
