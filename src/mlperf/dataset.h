// SPDX-License-Identifier: Apache-2.0
// The samples of a run, from JSONL: {"prompt": …} or {"messages": […]} or {"tokens": […]}, perhaps with the reference "answer".
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::mlperf {

struct Sample {
  std::string prompt;
  json::Array messages;         // instead of the prompt
  std::vector<TokenId> tokens;  // instead of both
  std::optional<std::string> answer;
};

struct Dataset {
  std::string name;
  std::string sha256;  // of the file's bytes
  std::vector<Sample> samples;
  bool has_answers() const;  // all of them
};

Result<Dataset> parse_dataset(std::string_view text, std::string_view name);
Result<Dataset> read_dataset(const std::filesystem::path& path);

}  // namespace weir::mlperf
