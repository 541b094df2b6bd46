// SPDX-License-Identifier: Apache-2.0
// The table of element types. Sizes and GGUF numbers are those of the GGUF specification (ggml's type ids).
#include "tensor/dtype.h"

#include <array>
#include <cctype>

#include "base/check.h"

namespace weir {
namespace {

// clang-format off
constexpr std::array<DTypeInfo, kDTypeCount> kTypes{{
    {DType::kF32, "F32", 1, 4, 0, "F32", false},
    {DType::kF16, "F16", 1, 2, 1, "F16", false},
    {DType::kBF16, "BF16", 1, 2, 30, "BF16", false},
    {DType::kQ4_0, "Q4_0", 32, 18, 2, "", true},
    {DType::kQ4_1, "Q4_1", 32, 20, 3, "", true},
    {DType::kQ5_0, "Q5_0", 32, 22, 6, "", true},
    {DType::kQ5_1, "Q5_1", 32, 24, 7, "", true},
    {DType::kQ8_0, "Q8_0", 32, 34, 8, "", true},
    {DType::kQ2_K, "Q2_K", 256, 84, 10, "", true},
    {DType::kQ3_K, "Q3_K", 256, 110, 11, "", true},
    {DType::kQ4_K, "Q4_K", 256, 144, 12, "", true},
    {DType::kQ5_K, "Q5_K", 256, 176, 13, "", true},
    {DType::kQ6_K, "Q6_K", 256, 210, 14, "", true},
    {DType::kIQ4_NL, "IQ4_NL", 32, 18, 20, "", true},
    {DType::kIQ4_XS, "IQ4_XS", 256, 136, 23, "", true},
    {DType::kMXFP4, "MXFP4", 32, 17, 39, "", true},
    {DType::kI8, "I8", 1, 1, 24, "I8", false},
    {DType::kI16, "I16", 1, 2, 25, "I16", false},
    {DType::kI32, "I32", 1, 4, 26, "I32", false},
    {DType::kI64, "I64", 1, 8, 27, "I64", false},
    {DType::kF64, "F64", 1, 8, 28, "F64", false},
    {DType::kU8, "U8", 1, 1, -1, "U8", false},
    {DType::kBool, "BOOL", 1, 1, -1, "BOOL", false},
}};
// clang-format on

consteval bool table_in_order() {
  for (int i = 0; i < kDTypeCount; ++i)
    if (static_cast<int>(kTypes[static_cast<std::size_t>(i)].type) != i) return false;
  return true;
}
static_assert(table_in_order());

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  return true;
}

template <class Predicate>
std::optional<DType> find_type(Predicate matches) {
  for (const DTypeInfo& info : kTypes)
    if (matches(info)) return info.type;
  return std::nullopt;
}

}  // namespace

const DTypeInfo& dtype_info(DType type) {
  const auto index = static_cast<std::size_t>(type);
  WEIR_CHECK(index < kTypes.size(), "type {}", index);
  return kTypes[index];
}

std::optional<DType> dtype_from_gguf(std::uint32_t gguf_id) {
  return find_type([&](const DTypeInfo& i) { return i.gguf_id >= 0 && static_cast<std::uint32_t>(i.gguf_id) == gguf_id; });
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  return find_type([&](const DTypeInfo& i) { return name == i.safetensors && *i.safetensors; });
}

std::optional<DType> dtype_from_name(std::string_view name) {
  return find_type([&](const DTypeInfo& i) { return equal_ignoring_case(name, i.name); });
}

}  // namespace weir
