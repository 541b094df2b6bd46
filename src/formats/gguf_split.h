// SPDX-License-Identifier: Apache-2.0
// Names of the parts of a split GGUF file: PREFIX-00001-of-00003.gguf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace weir::formats {

struct SplitName {
  std::filesystem::path prefix;  // with its folder
  std::int64_t part = 0;         // from 0
};

// kCorrupt when the name is not that of a part of `count`.
Result<SplitName> parse_split_name(const std::filesystem::path& path, std::int64_t count);

// `part` counts from 0, the name from 1.
std::filesystem::path split_path(const std::filesystem::path& prefix, std::int64_t part, std::int64_t count);

}  // namespace weir::formats
