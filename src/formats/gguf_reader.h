// SPDX-License-Identifier: Apache-2.0
// GGUF versions 2 and 3, little endian, one file or split (NAME-00001-of-00003.gguf). The file is mapped; strings of the
// metadata are copied, tensors are views. Every count, offset and length is checked before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "formats/tensor_index.h"

namespace weir::formats {

// Arrays keep their element kind; integers are widened to 64 bits, floats to double.
using GgufArray = std::variant<std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>, std::vector<bool>,
                               std::vector<std::string>>;
using GgufValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string, GgufArray>;

struct GgufEntry {
  std::string key;
  GgufValue value;
  std::string type_name;  // as in the file: "u32", "f32", "arr[str]", …
};

class GgufFile {
 public:
  // Opens PATH; when it is one part of a split file, all parts (found by name beside it).
  static Result<GgufFile> open(const std::filesystem::path& path);
  // Parses one file already in memory; `tensors()` point into it. For tests and fuzzing.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string_view what);

  std::uint32_t version() const { return version_; }
  const std::vector<GgufEntry>& metadata() const { return metadata_; }
  const TensorIndex& index() const { return index_; }
  const NamedTensor* tensor(std::string_view name) const { return index_.find(name); }

  const GgufValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Required values; kCorrupt naming the key when absent or of another kind.
  Result<std::int64_t> get_int(std::string_view key) const;
  Result<double> get_double(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  // Optional values; the fallback when absent, an error when of another kind.
  Result<std::int64_t> get_int_or(std::string_view key, std::int64_t fallback) const;
  Result<double> get_double_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string> get_string_or(std::string_view key, std::string fallback) const;
  // Arrays, nullptr when absent or of another kind.
  const std::vector<std::string>* get_strings(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const;     // also of unsigned and bool arrays
  std::optional<std::vector<double>> get_doubles(std::string_view key) const;        // also of integer arrays

 private:
  std::uint32_t version_ = 0;
  std::vector<GgufEntry> metadata_;
  TensorIndex index_;
  friend class GgufParser;
};

}  // namespace weir::formats
