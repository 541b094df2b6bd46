// SPDX-License-Identifier: Apache-2.0
// Plain types are converted one by one; quantised ones go through unpack_block().
#include "kernels/reference/dequantize.h"

#include <cstring>

#include "base/check.h"
#include "kernels/reference/half.h"
#include "kernels/reference/unpack.h"

namespace weir::kernels {
namespace {

template <class Convert>
void convert_halves(const std::byte* row, std::int64_t elements, float* out, Convert convert) {
  for (std::int64_t i = 0; i < elements; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, row + 2 * i, sizeof bits);
    out[i] = convert(bits);
  }
}

}  // namespace

void dequantize_row(DType type, const std::byte* row, std::int64_t elements, float* out) {
  const DTypeInfo& info = dtype_info(type);
  WEIR_CHECK(elements % info.block_size == 0, "{} elements of {}", elements, info.name);
  if (type == DType::kF32) {
    if (elements > 0) std::memcpy(out, row, static_cast<std::size_t>(elements) * sizeof(float));
    return;
  }
  if (type == DType::kF16) return convert_halves(row, elements, out, f16_to_float);
  if (type == DType::kBF16) return convert_halves(row, elements, out, bf16_to_float);
  const QuantTraits traits = quant_traits(type);
  UnpackedBlock block;
  for (std::int64_t i = 0; i < elements; i += info.block_size, row += info.block_bytes) {
    unpack_block(type, row, block);
    for (int j = 0; j < info.block_size; ++j) {
      const int g = j / traits.group;
      const float product = block.scale[g] * static_cast<float>(block.q[j] - traits.zero);
      out[i + j] = traits.has_offset ? product + block.offset[g] : product;
    }
  }
}

}  // namespace weir::kernels
