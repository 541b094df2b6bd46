// SPDX-License-Identifier: Apache-2.0
// RAPL (Intel and AMD processors' own energy counters) through the powercap file system. A package counts, and memory beside it; cores and
// the like lie within the package and are shown only. The platform's domain (psys) is shown only: what it holds depends on the maker.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "energy/meter.h"

namespace weir::energy {

// Null when there are no such counters. Why some, or all, could not be used is added to `notes`.
std::unique_ptr<Meter> open_rapl(const std::filesystem::path& powercap, std::vector<std::string>& notes);

}  // namespace weir::energy
