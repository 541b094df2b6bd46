// SPDX-License-Identifier: Apache-2.0
// Quantised weights as the int8 kernels stream them: panels of kPanelOuts outputs, inputs four by four, the values still at
// their 2 to 8 bits, scales beside them. The same information as the file's, moved once and kept in a cache file; expanding
// a piece of a panel gives bit for bit what unpacking it from the file gives, so results do not depend on which is used.
//
// A panel of K inputs is four runs of bytes, each padded to a cache line:
//   low bits    per 32 inputs 64 · low_bits bytes (2, 4 or 8)
//   high bits   per 32 inputs 64 · high_bits bytes (0, 1 or 2)
//   scales      per block of the type, 16 outputs side by side: f16 scale, then f16 offset or minimum
//   groups      per block and group, 16 outputs side by side: the integer scales, then the integer minima
// Four consecutive inputs of 16 outputs are a quad: 64 values. A run holds, for each 32 inputs, n lines of 64 bytes; value v of
// quad q is in byte v of line q % n, from bit n · (q / n) on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "tensor/view.h"

namespace weir::kernels {

inline constexpr std::uint32_t kPackedLayoutVersion = 1;  // part of a cache file's key

enum class PackedScales {
  kHalf,           // f16 scale per block of 32
  kHalfAndOffset,  // f16 scale, f16 offset per block of 32
  kExponent,       // one byte e per block of 32: MXFP4
  kSuper,          // f16 d per block of 256, signed byte per group
  kSuperAndMin,    // f16 d, f16 dmin per block of 256, unsigned bytes for scale and minimum per group
  kSuperNibbles,   // the same with scale and minimum in one byte: Q2_K
};

struct PackedTraits {
  int low_bits = 4, high_bits = 0;
  PackedScales scales = PackedScales::kHalf;
};

PackedTraits packed_traits(DType type);

// Where the runs of a panel start, and its size. `k` is a multiple of the type's block size.
struct PackedPanelShape {
  std::int64_t high = 0, scales = 0, groups = 0, bytes = 0;  // scales: f16; groups: the integer scales
  std::int64_t half_bytes = 0, group_bytes = 0;              // of one block of the type
};
PackedPanelShape packed_panel_shape(DType type, std::int64_t k);

// Bytes of a whole weight [out, in] of a quantised type.
std::int64_t packed_bytes(const TensorView& view);

// Packs the panel whose first output is `first_out`; outputs beyond the last repeat it.
void pack_panel(const TensorView& view, std::int64_t first_out, std::byte* out);

}  // namespace weir::kernels
