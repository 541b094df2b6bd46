// SPDX-License-Identifier: Apache-2.0
// Element and block types: one table. A block type stores `block_size` consecutive elements of a row in `block_bytes`
// bytes; plain types have blocks of one element. Layouts of the blocks are in block_formats.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

enum class DType : std::uint8_t {  // clang-format off
  kF32, kF16, kBF16,
  kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0,
  kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K,
  kIQ4_NL, kIQ4_XS, kMXFP4,
  // Integers occur in files (token ids, indices) but never as weights of a linear layer.
  kI8, kI16, kI32, kI64, kF64, kU8, kBool,
};  // clang-format on
inline constexpr int kDTypeCount = static_cast<int>(DType::kBool) + 1;

struct DTypeInfo {
  DType type;
  const char* name;         // as GGUF tools print it: "F32", "Q4_K", …
  int block_size;           // elements of one block
  int block_bytes;          // bytes of one block
  int gguf_id;              // number in a GGUF file, -1 when GGUF has none
  const char* safetensors;  // name in a safetensors header, "" when it has none
  bool quantized;
};

const DTypeInfo& dtype_info(DType type);
inline const char* dtype_name(DType type) { return dtype_info(type).name; }
std::optional<DType> dtype_from_gguf(std::uint32_t gguf_id);
std::optional<DType> dtype_from_safetensors(std::string_view name);
std::optional<DType> dtype_from_name(std::string_view name);  // case does not matter

// Bytes of a row of `elements`; the count must be a multiple of the block size.
inline std::int64_t row_bytes(DType type, std::int64_t elements) {
  const DTypeInfo& info = dtype_info(type);
  return elements / info.block_size * info.block_bytes;
}

}  // namespace weir
