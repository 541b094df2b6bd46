// SPDX-License-Identifier: Apache-2.0
// Small numbers and names from files of the kernel. A file that is there but may not be read is told apart from one that is not there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace weir::energy {

Result<std::string> read_line(const std::filesystem::path& file);  // its first line, at most 256 bytes
Result<double> read_number(const std::filesystem::path& file);     // an integer that is not negative

}  // namespace weir::energy
