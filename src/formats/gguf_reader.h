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
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "formats/gguf_value.h"
#include "formats/tensor_index.h"

namespace weir::formats {

class GgufFile {
 public:
  // Opens PATH; when it is one part of a split file, all parts (found by name beside it).
  static Result<GgufFile> open(const std::filesystem::path& path);
  // Parses one file already in memory; `tensors()` point into it. For tests and fuzzing.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string_view what);

  std::uint32_t version() const { return version_; }
  std::uint64_t alignment() const { return alignment_; }
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
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const;  // also of unsigned and bool arrays
  std::optional<std::vector<double>> get_doubles(std::string_view key) const;     // also of integer arrays

 private:
  const GgufArray* find_array(std::string_view key) const;
  const GgufEntry* entry(std::string_view key) const;
  Result<const GgufEntry*> required(std::string_view key) const;
  static Result<GgufFile> open_parts(GgufFile given, const std::filesystem::path& path, std::int64_t count);
  static Result<GgufFile> join(std::vector<GgufFile> parts);

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
  };
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32;
  std::string what_;  // the source, for errors
  std::vector<GgufEntry> metadata_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_key_;
  TensorIndex index_;
  friend class GgufParser;
};

}  // namespace weir::formats
