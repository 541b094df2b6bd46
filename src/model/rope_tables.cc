// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): the angle of dimension i at position p is p · frequency[i].
#include "model/rope_tables.h"

#include <cmath>

namespace weir::model {

void fill_rope_table(const RopeTraits& rope, std::span<const kernels::SequenceSlice> slices, kernels::Matrix table) {
  const std::int32_t half = rope.rotary_dim / 2;
  for (const kernels::SequenceSlice& slice : slices) {
    const std::int32_t length = slice.rope_length > 0 ? slice.rope_length : slice.first_position + slice.row_count;
    const bool use_long = !rope.long_frequencies.empty() && length > rope.long_above;
    const std::vector<double>& frequencies = use_long ? rope.long_frequencies : rope.inverse_frequencies;
    const double magnitude = use_long ? rope.long_magnitude : rope.magnitude;
    for (std::int32_t i = 0; i < slice.row_count; ++i) {
      float* row = table.row(slice.first_row + i);
      const double position = slice.first_position + i;
      for (std::int32_t d = 0; d < half; ++d) {
        const double angle = position * frequencies[static_cast<std::size_t>(d)];
        row[d] = static_cast<float>(magnitude * std::cos(angle));
        row[half + d] = static_cast<float>(magnitude * std::sin(angle));
      }
    }
  }
}

}  // namespace weir::model
