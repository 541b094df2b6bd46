// SPDX-License-Identifier: Apache-2.0
// Writing blocks: the inverse of unpack.h. Headers hold scales and offsets as the format rounds them, levels are the small
// integers (codebook indices where a type has a codebook).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/reference/fit_scale.h"
#include "tensor/dtype.h"

namespace weir::kernels {

// The block's other bytes are zero before.
void pack_header(DType type, const std::array<GroupFit, 16>& groups, std::byte* block);
void pack_levels(DType type, const std::uint8_t* q, std::byte* block);

}  // namespace weir::kernels
