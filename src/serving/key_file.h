// SPDX-License-Identifier: Apache-2.0
// The text of a keys file: [[keys]] tables, read strictly.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "serving/keys.h"

namespace weir::serving {

struct KeyEntry {
  KeyRecord record;
  std::optional<KeyHash> hash = {};
  int line = 0;
};

Result<std::vector<KeyEntry>> parse_key_file(std::string_view toml, std::string_view what, const KeyLimits& defaults);

}  // namespace weir::serving
