// SPDX-License-Identifier: Apache-2.0
// How many processors the process may use: the parsing behind usable_processors() (thread_pool.h), apart for tests.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// Processors granted by cpu.max of cgroup v2: "150000 100000" → 1.5; "max 100000" or nonsense → nullopt (no limit).
std::optional<double> parse_cpu_max(std::string_view text);

// The same from cgroup v1's cpu.cfs_quota_us and cpu.cfs_period_us; a quota of -1 is no limit.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);

// The path of the process in a hierarchy, from /proc/self/cgroup. `controller` "" is the unified one (v2): the line
// "0::/path"; else the line whose controller list holds it: "4:cpu,cpuacct:/path".
std::optional<std::string> parse_cgroup_path(std::string_view proc_self_cgroup, std::string_view controller);

// The folder of a group and those of its parents up to `root`, which is always the last. Depth is bounded.
std::vector<std::filesystem::path> cgroup_folders(const std::filesystem::path& root, std::string_view path);

// The smallest quota on the way from the process's own group up to the root, under a cgroup file system at `root`.
std::optional<double> cgroup_processors(const std::filesystem::path& root, std::string_view proc_self_cgroup);

}  // namespace weir
