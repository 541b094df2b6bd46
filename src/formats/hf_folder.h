// SPDX-License-Identifier: Apache-2.0
// A model folder as the Hugging Face hub lays it out: config.json, weights in safetensors (one file, or shards with an
// index), and the optional generation and tokenizer files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "formats/tensor_index.h"

namespace weir::formats {

struct HfFolder {
  std::filesystem::path path;
  json::Object config;                            // config.json
  std::optional<json::Object> generation_config;  // generation_config.json
  std::optional<json::Object> tokenizer_config;   // tokenizer_config.json
  std::optional<std::string> tokenizer_json;      // the text of tokenizer.json
  std::optional<std::string> chat_template;       // chat_template.jinja, else tokenizer_config's chat_template (its "default" one)
  TensorIndex index;

  const NamedTensor* tensor(std::string_view name) const { return index.find(name); }

  // True when PATH is a folder that holds a config.json.
  static bool looks_like(const std::filesystem::path& path);
  // Everything. kNotFound, kCorrupt or kUnsupported naming the file, and the tensor or the key in it.
  static Result<HfFolder> open(const std::filesystem::path& path);
  // All but the weights, for those who need the tokenizer only.
  static Result<HfFolder> open_without_weights(const std::filesystem::path& path);
};

}  // namespace weir::formats
