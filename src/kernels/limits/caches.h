// SPDX-License-Identifier: Apache-2.0
// Sizes of the data caches, as the system tells them; kernels cut their work by them, probes choose what they read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace weir::kernels {

struct CacheSizes {
  std::uint64_t l1 = 32u << 10, l2 = 1u << 20;  // per core
  std::uint64_t l3 = 0;                         // 0 = none, or unknown
  int l3_processors = 1;                        // that share it
  bool known = false;                           // else these are guesses
};

// From /sys/devices/system/cpu/cpu0/cache (or another such folder), else from sysconf.
CacheSizes read_cache_sizes(const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

std::optional<std::uint64_t> parse_cache_size(std::string_view text);  // "32768K", "1M", "512"

}  // namespace weir::kernels
