// SPDX-License-Identifier: Apache-2.0
// Quantised weights as the int8 kernels stream them: stripes of 32 outputs (two panels of kPanelOuts), inputs four by four, the
// values still at their 2 to 8 bits, scales beside them. The same information as the file's, moved once and kept in a cache file;
// expanding a piece gives bit for bit what unpacking it from the file gives, so results do not depend on which is used.
//
// A stripe is read from its first byte to its last, as hardware prefetchers want it: keeping the scales of a panel behind its
// values halved the speed of decoding. It is a sequence of units, each of one block of the type (MXFP4: two):
//   halves   f16 scales of the 32 outputs, then their f16 offsets or minima, as the type has them
//   groups   per group, a byte of each of the 32 outputs: the integer scales, then the integer minima, of 32 inputs
//   values   of 32 inputs, for each panel: 64 · low_bits bytes (2, 4 or 8) of low bits, 64 · high_bits bytes (0, 1 or 2)
// Groups and values alternate where the groups of 32 inputs fill lines; else (MXFP4, IQ4_XS) all groups of a unit come first.
// Four consecutive inputs of 16 outputs are a quad: 64 values. n bits of 8 quads take n lines of 64 bytes; value v of quad q is in
// byte v of line q % n, from bit n · (q / n) on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "tensor/view.h"

namespace weir::kernels {

inline constexpr std::uint32_t kPackedLayoutVersion = 3;  // part of a cache file's key
inline constexpr std::int64_t kStripeOuts = std::int64_t{kPanelOuts} * kPanelsTogether;

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

// Inputs of a unit, and where things lie in it.
struct PackedShape {
  int unit_inputs = 32;
  std::int64_t groups = 0, values = 0;          // from the unit's start to those of its first 32 inputs
  std::int64_t group_step = 0, block_step = 0;  // from groups and from values to those of the next 32 inputs
  std::int64_t panel_step = 0;                  // from a panel's values to the other panel's
  std::int64_t unit_bytes = 0;
  std::int64_t bytes = 0;  // of the stripe
};
PackedShape packed_shape(DType type, std::int64_t k);  // `k`: a multiple of the type's block size

// Bytes of a whole weight [out, in] of a quantised type.
std::int64_t packed_bytes(const TensorView& view);

// Packs the stripe whose first output is `first_out`; outputs beyond the last repeat it.
void pack_stripe(const TensorView& view, std::int64_t first_out, std::byte* out);

}  // namespace weir::kernels
