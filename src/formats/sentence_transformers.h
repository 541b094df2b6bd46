// SPDX-License-Identifier: Apache-2.0
// What the sentence-transformers library keeps beside a model: the steps from hidden states to a vector (modules.json and a folder
// for each), the prompts that the model was trained with, and how long a text may be. Read as plain data; what is not
// understood is kept by its name, so that whoever needs it can refuse it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::formats {

struct SentenceModule {
  std::string type;              // the class without its package: "Transformer", "Pooling", "Dense", "Normalize", …
  std::filesystem::path folder;  // inside the model's
};

struct SentenceTransformers {
  std::vector<SentenceModule> modules;     // in the order in which they run
  std::vector<std::string> pooling_modes;  // "mean", "cls", "lasttoken", "max", "mean_sqrt_len_tokens", "weightedmean"
  bool include_prompt = true;              // false: the prompt's tokens are left out of the pooling
  std::optional<std::int64_t> max_tokens;  // of a text with its special tokens
  std::map<std::string, std::string> prompts;
  std::string default_prompt;                 // a key of `prompts`, or ""
  std::vector<std::int64_t> dimensions;       // "matryoshka_dims": lengths to which a vector may be cut
  std::optional<std::int64_t> cut_dimension;  // "truncate_dim": the length to which it is always cut

  bool has(std::string_view type) const;

  // Nothing when the folder has no modules.json and no 1_Pooling. kCorrupt or kUnsupported naming the file and the key.
  static Result<std::optional<SentenceTransformers>> read(const std::filesystem::path& folder);
};

}  // namespace weir::formats
