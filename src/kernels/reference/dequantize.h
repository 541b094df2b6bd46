// SPDX-License-Identifier: Apache-2.0
// Any weight type → floats, the plain way. What the other kernels are compared with, and good enough where speed does
// not matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weir::kernels {

// `elements` is a multiple of the type's block size. Types: F32, F16, BF16 and every quantised one.
void dequantize_row(DType type, const std::byte* row, std::int64_t elements, float* out);

}  // namespace weir::kernels
