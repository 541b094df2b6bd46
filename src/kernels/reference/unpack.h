// SPDX-License-Identifier: Apache-2.0
// What every quantised type means, in one form: weight i of a block = scale[g] · (q[i] - zero) + offset[g], where q is a
// small unsigned integer and g = i / group. All other kernels (dequantise, int8 products, panels) derive from it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weir::kernels {

struct QuantTraits {
  int group = 32;  // elements that share a scale: 16 or 32
  int zero = 0;    // a power of two, or 0
  int max = 15;    // largest q
  bool has_offset = false;
};

struct UnpackedBlock {
  std::uint8_t q[256];
  float scale[16];
  float offset[16];  // zeros when the type has none
};

QuantTraits quant_traits(DType type);

// 2^(e - 128), which scales MXFP4's doubled values.
float mxfp4_scale(std::uint8_t e);
void unpack_block(DType type, const std::byte* block, UnpackedBlock& out);

}  // namespace weir::kernels
