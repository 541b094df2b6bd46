// SPDX-License-Identifier: Apache-2.0
// Figures for people: sizes in powers of 1000 (as disks and networks are sold), rates and durations.
#pragma once

#include <cstdint>
#include <string>

namespace weir {

std::string format_bytes(std::uint64_t bytes);  // "98.4 MB", "512 B"
std::string format_duration(double seconds);    // "12.3 ms", "4.56 s", "3 min 20 s"
std::string format_count(std::uint64_t count);  // "135 M", "1.24 B", "999"

}  // namespace weir
