// SPDX-License-Identifier: Apache-2.0
// The inner loop of packing: one block of the file becomes one output's bytes in the lines of a packed panel. Works on words of
// eight values at a time, since packing a model is part of its first start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weir::kernels {

// Writes the values of a block (32 or 256 inputs) as output `out` of 16 of a panel, from `lines` on: per 32 inputs the lines of the
// low bits, then those of the high bits (packed_panels.h), `step` bytes from one 32 to the next. Every byte that belongs to the
// output is written.
void pack_block_lines(DType type, const std::byte* block, int out, std::byte* lines, std::int64_t step);

}  // namespace weir::kernels
