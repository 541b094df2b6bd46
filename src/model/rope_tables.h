// SPDX-License-Identifier: Apache-2.0
// Cosines and sines of a batch's positions, once per forward pass and kind of rope.
#pragma once

#include <span>

#include "kernels/backend.h"
#include "model/traits.h"

namespace weir::model {

// table = [rows, rotary_dim]: cosines, then sines, in double until they are stored. A slice that is longer than long_above
// (by its rope_length, else its own end) gets the long frequencies.
void fill_rope_table(const RopeTraits& rope, std::span<const kernels::SequenceSlice> slices, kernels::Matrix table);

}  // namespace weir::model
