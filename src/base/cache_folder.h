// SPDX-License-Identifier: Apache-2.0
// Where derived data is kept between starts.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace weir {

// $WEIR_CACHE/name, else ~/.cache/weir/name; empty when neither is known.
inline std::filesystem::path cache_folder(std::string_view name) {
  if (const char* cache = std::getenv("WEIR_CACHE"); cache && *cache) return std::filesystem::path(cache) / name;
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache/weir" / name : std::filesystem::path();
}

}  // namespace weir
