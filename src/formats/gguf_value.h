// SPDX-License-Identifier: Apache-2.0
// The values that GGUF metadata can hold, for reading and writing. Integers are widened to 64 bits and floats to double; the
// type in the file is kept beside the value, so that writing what was read gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace weir::formats {

// Numbers as in the file.
enum class GgufType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
inline constexpr std::uint32_t kGgufTypeCount = 13;

const char* gguf_type_name(GgufType type);     // "u32", "f32", "str", "arr", …
std::size_t gguf_minimum_size(GgufType type);  // bytes of a scalar, or the least that a string or an array takes

// Arrays of arrays: the format allows them, no known model uses them.
struct GgufInnerArray;
struct GgufNestedArray {
  std::vector<GgufInnerArray> items;
  bool operator==(const GgufNestedArray& other) const;
};

using GgufArray = std::variant<std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>, std::vector<bool>,
                               std::vector<std::string>, GgufNestedArray>;
using GgufValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string, GgufArray>;

struct GgufInnerArray {
  GgufType element = GgufType::kU8;
  GgufArray values;
  bool operator==(const GgufInnerArray&) const = default;
};

std::size_t gguf_array_size(const GgufArray& array);

struct GgufEntry {
  std::string key;
  GgufValue value;
  std::string type_name;  // as in the file: "u32", "f32", "arr[str]", …
  GgufType type = GgufType::kU8;
  GgufType element_type = GgufType::kU8;  // of arrays
};

std::string gguf_entry_type_name(GgufType type, GgufType element_type);

// Entries for writing. That the value fits the type is checked by GgufWriter::add.
GgufEntry gguf_scalar(std::string key, GgufType type, GgufValue value);
GgufEntry gguf_array(std::string key, GgufType element, GgufArray values);
inline GgufEntry gguf_u32(std::string key, std::uint32_t value) {
  return gguf_scalar(std::move(key), GgufType::kU32, std::uint64_t{value});
}
inline GgufEntry gguf_f32(std::string key, float value) { return gguf_scalar(std::move(key), GgufType::kF32, double{value}); }
inline GgufEntry gguf_bool(std::string key, bool value) { return gguf_scalar(std::move(key), GgufType::kBool, value); }
inline GgufEntry gguf_string(std::string key, std::string value) {
  return gguf_scalar(std::move(key), GgufType::kString, std::move(value));
}

}  // namespace weir::formats
