// SPDX-License-Identifier: Apache-2.0
// What a model file says about itself, for people: metadata in short form, the tensors, and what they add up to. Works for
// GGUF files and Hugging Face folders alike.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "formats/summary.h"
#include "formats/tensor_index.h"

namespace weir::store {

struct MetadataItem {
  std::string key;
  std::string type;   // as the file names it
  std::string text;   // one line, printable, long values cut
  json::Value value;  // whole, but of long arrays only {"count", "first"}
};

struct ModelDescription {
  std::filesystem::path path;
  std::string format;        // "GGUF v3", "safetensors"
  std::string architecture;  // as the file names it
  std::uint64_t file_bytes = 0;
  std::vector<MetadataItem> metadata;
  formats::TensorIndex index;
  formats::TensorSummary summary;
};

Result<ModelDescription> inspect_model(const std::filesystem::path& path);

}  // namespace weir::store
