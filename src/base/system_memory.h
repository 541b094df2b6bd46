// SPDX-License-Identifier: Apache-2.0
// Memory of the machine and of this process, as the kernel tells it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace weir {

// What could be taken now without swapping: MemAvailable, or less where a control group's limit is nearer. Nothing when unknown.
std::optional<std::uint64_t> available_memory();

struct ProcessMemory {
  std::uint64_t resident = 0;   // pages of files that are mapped included
  std::uint64_t anonymous = 0;  // of it, what no file backs
  std::uint64_t peak = 0;
};
ProcessMemory process_memory();

// "MemAvailable:   123 kB" → 125952, from a text with one such line per key.
std::optional<std::uint64_t> parse_kilobytes(std::string_view text, std::string_view key);

// The smallest (memory.max - memory.current) from the process's own group up to the root, under a cgroup v2 file system at `root`.
std::optional<std::uint64_t> cgroup_memory_left(const std::filesystem::path& root, std::string_view proc_self_cgroup);

}  // namespace weir
