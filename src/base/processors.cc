// SPDX-License-Identifier: Apache-2.0
// A container is often held by a CPU quota rather than by a mask: both count, and a quota of any parent group counts.
// Files that are absent or odd mean "no limit": a wrong guess costs speed only.
#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/thread_pool.h"

namespace weir {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::optional<double> ratio(std::string_view quota, std::string_view period) {
  auto parse = [](std::string_view text) {
    long long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? value : 0;
  };
  const long long q = parse(quota), p = parse(period);
  if (q <= 0 || p <= 0) return std::nullopt;
  return static_cast<double>(q) / static_cast<double>(p);
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  text = trim(text);
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return ratio(text.substr(0, space), trim(text.substr(space)));
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) { return ratio(trim(quota), trim(period)); }

std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view list = line.substr(first + 1, second - first - 1);
    bool matches = list.empty() && controller.empty();
    while (!list.empty() && !matches && !controller.empty()) {
      const auto comma = list.find(',');
      matches = list.substr(0, comma) == controller;
      list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    }
    if (matches) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

std::vector<std::filesystem::path> cgroup_folders(const std::filesystem::path& root, std::string_view path) {
  std::vector<std::filesystem::path> folders;
  std::filesystem::path folder = root / std::filesystem::path(path).relative_path();
  for (int depth = 0; depth < 64 && folder.native().size() > root.native().size(); ++depth) {
    folders.push_back(folder);
    folder = folder.parent_path();
  }
  folders.push_back(root);
  return folders;
}

std::optional<double> cgroup_processors(const std::filesystem::path& root, std::string_view proc_self_cgroup) {
  std::optional<double> limit;
  if (const auto path = parse_cgroup_path(proc_self_cgroup, "")) {
    for (const auto& folder : cgroup_folders(root, *path)) limit = smaller(limit, parse_cpu_max(read_text(folder / "cpu.max")));
  }
  if (const auto path = parse_cgroup_path(proc_self_cgroup, "cpu")) {
    for (const char* mount : {"cpu", "cpu,cpuacct"})
      for (const auto& folder : cgroup_folders(root / mount, *path))
        limit = smaller(limit, parse_cfs_quota(read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us")));
  }
  return limit;
}

int usable_processors() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) count = CPU_COUNT(&mask);
  if (const auto quota = cgroup_processors("/sys/fs/cgroup", read_text("/proc/self/cgroup"))) {
    count = std::min(count, static_cast<int>(std::ceil(std::min(*quota, 1e6))));
  }
  return std::max(count, 1);
}

}  // namespace weir
