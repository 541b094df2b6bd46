// SPDX-License-Identifier: Apache-2.0
// Floats → any weight type, by rounding to nearest after a small search for the scale with the least squared error. For
// tests and for offline conversion; speed is no goal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weir::kernels {

// `elements` is a multiple of the type's block size; `out` has row_bytes(type, elements) bytes. Values that are not finite
// count as 0 in quantised types. Types: F32, F16, BF16 and every quantised one.
void quantize_row(DType type, const float* x, std::int64_t elements, std::byte* out);

}  // namespace weir::kernels
