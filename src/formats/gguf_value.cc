// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_value.h"

#include <array>

#include "base/check.h"

namespace weir::formats {
namespace {

struct TypeInfo {
  const char* name;
  std::size_t minimum_size;
};

// A string is at least its length; an array at least its element type and count.
constexpr std::array<TypeInfo, kGgufTypeCount> kTypes{{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"str", 8},
    {"arr", 12},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

const TypeInfo& info(GgufType type) {
  const auto index = static_cast<std::size_t>(type);
  WEIR_CHECK(index < kTypes.size(), "type {}", index);
  return kTypes[index];
}

}  // namespace

const char* gguf_type_name(GgufType type) { return info(type).name; }
std::size_t gguf_minimum_size(GgufType type) { return info(type).minimum_size; }

std::string gguf_entry_type_name(GgufType type, GgufType element_type) {
  if (type != GgufType::kArray) return gguf_type_name(type);
  return fmt::format("arr[{}]", gguf_type_name(element_type));
}

GgufEntry gguf_scalar(std::string key, GgufType type, GgufValue value) {
  return {std::move(key), std::move(value), gguf_entry_type_name(type, type), type, GgufType::kU8};
}

GgufEntry gguf_array(std::string key, GgufType element, GgufArray values) {
  return {std::move(key), GgufValue(std::move(values)), gguf_entry_type_name(GgufType::kArray, element), GgufType::kArray, element};
}

bool GgufNestedArray::operator==(const GgufNestedArray& other) const { return items == other.items; }

std::size_t gguf_array_size(const GgufArray& array) {
  return std::visit(
      [](const auto& values) {
        if constexpr (std::is_same_v<std::decay_t<decltype(values)>, GgufNestedArray>) {
          return values.items.size();
        } else {
          return values.size();
        }
      },
      array);
}

}  // namespace weir::formats
