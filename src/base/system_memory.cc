// SPDX-License-Identifier: Apache-2.0
#include "base/system_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "base/processors.h"

namespace weir {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// Page cache of the group counts as current, but is given back when memory is short.
std::optional<std::uint64_t> left_in(const std::filesystem::path& folder) {
  const auto limit = parse_number(read_text(folder / "memory.max")), current = parse_number(read_text(folder / "memory.current"));
  if (!limit || !current) return std::nullopt;
  std::uint64_t cache = 0;
  const std::string stat = read_text(folder / "memory.stat");
  if (const auto at = stat.find("\ninactive_file "); at != std::string::npos)
    cache = parse_number(std::string_view(stat).substr(at + 15)).value_or(0);
  const std::uint64_t used = *current - std::min(*current, cache);
  return *limit - std::min(*limit, used);
}

}  // namespace

std::optional<std::uint64_t> parse_kilobytes(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const auto kilobytes = parse_number(line);
    if (!kilobytes || *kilobytes > UINT64_MAX / 1024) return std::nullopt;
    return *kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> cgroup_memory_left(const std::filesystem::path& root, std::string_view proc_self_cgroup) {
  const auto path = parse_cgroup_path(proc_self_cgroup, "");
  if (!path) return std::nullopt;
  std::optional<std::uint64_t> least;
  for (std::filesystem::path group = std::filesystem::path(*path).relative_path();; group = group.parent_path()) {
    if (const auto left = left_in(root / group); left && (!least || *left < *least)) least = left;
    if (group.empty()) return least;
  }
}

std::optional<std::uint64_t> available_memory() {
  const auto machine = parse_kilobytes(read_text("/proc/meminfo"), "MemAvailable");
  const auto group = cgroup_memory_left("/sys/fs/cgroup", read_text("/proc/self/cgroup"));
  if (machine && group) return std::min(*machine, *group);
  return machine ? machine : group;
}

ProcessMemory process_memory() {
  const std::string status = read_text("/proc/self/status");
  return {.resident = parse_kilobytes(status, "VmRSS").value_or(0),
          .anonymous = parse_kilobytes(status, "RssAnon").value_or(0),
          .peak = parse_kilobytes(status, "VmHWM").value_or(0)};
}

}  // namespace weir
