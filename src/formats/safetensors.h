// SPDX-License-Identifier: Apache-2.0
// The safetensors format: eight bytes of header length, a JSON header, the tensors one after the other. The file is mapped and
// tensors are views. As its specification asks, the tensors must cover the data exactly: no hole, no overlap, nothing after.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/tensor_index.h"

namespace weir::formats {

class SafetensorsFile {
 public:
  // Tensors are aligned to their element size (those of `parse` need not be).
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  // Parses a file already in memory; `tensors()` point into it. For tests and fuzzing.
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes, std::string_view what);

  const TensorIndex& index() const { return index_; }
  const NamedTensor* tensor(std::string_view name) const { return index_.find(name); }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // "__metadata__"

 private:
  TensorIndex index_;
  std::map<std::string, std::string> metadata_;
  friend class SafetensorsParser;
};

// All tensors of a folder: model.safetensors, or the shards that model.safetensors.index.json names.
Result<TensorIndex> open_safetensors_folder(const std::filesystem::path& folder);

}  // namespace weir::formats
