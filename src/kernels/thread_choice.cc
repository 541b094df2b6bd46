// SPDX-License-Identifier: Apache-2.0
#include "kernels/thread_choice.h"

#include <algorithm>
#include <sstream>

#include "base/cache_folder.h"
#include "base/file_io.h"
#include "base/processors.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "kernels/limits/caches.h"
#include "kernels/limits/core_sharing.h"
#include "kernels/limits/multiply_add.h"
#include "kernels/limits/read_speed.h"

namespace weir::kernels {
namespace {

constexpr double kSeconds = 0.03;  // of each of the two measurements, per candidate
constexpr int kRuns = 3;
constexpr double kAsGood = 0.95;
constexpr std::size_t kMostLines = 100;

// The loop that a quantised model's prefill is made of, or the nearest that there is.
const MultiplyAddLoop& fastest_loop() {
  const MultiplyAddLoop* best = &multiply_add_loops().front();
  for (const MultiplyAddLoop& loop : multiply_add_loops())
    if (loop.usable && loop.ops_per_step > best->ops_per_step) best = &loop;
  return *best;
}

// 0 when memory to measure with cannot be had.
int measure_thread_count(int usable) {
  const std::uint64_t bytes = std::clamp<std::uint64_t>(2 * read_cache_sizes().l3, 64u << 20, 256u << 20);
  std::vector<ThreadSpeed> speeds;
  for (const int threads : thread_candidates(usable)) {
    const auto read = measure_read({.threads = threads,
                                    .bytes_per_thread = bytes / static_cast<std::uint64_t>(threads),
                                    .pages = Pages::kHuge,
                                    .seconds = kSeconds,
                                    .runs = kRuns});
    if (!read) return 0;
    speeds.push_back({threads, measure_multiply_add(fastest_loop(), threads, kSeconds, kRuns).ops_per_s.max, read->max});
  }
  return best_thread_count(speeds);
}

// What the answer depends on.
std::string machine_key(int usable) {
  std::string key = fmt::format("threads 1\n{} usable\n", usable);
  const std::string info = read_file("/proc/cpuinfo", 64 << 20).value_or("");
  const auto at = info.find("model name");
  if (at != std::string::npos) key += info.substr(at, info.find('\n', at) - at);
  for (const int processor : allowed_processors()) key += fmt::format(" {}", processor);
  const auto quota = cgroup_processors("/sys/fs/cgroup", read_file("/proc/self/cgroup", 1 << 20).value_or(""));
  return key + fmt::format("\n{}", quota.value_or(0));
}

}  // namespace

std::vector<int> thread_candidates(int usable) {
  std::vector<int> candidates;
  for (const int eighths : {2, 4, 6, 8})
    if (const int threads = usable * eighths / 8; threads >= 1 && (candidates.empty() || candidates.back() != threads))
      candidates.push_back(threads);
  return candidates;
}

int best_thread_count(std::span<const ThreadSpeed> speeds) {
  const auto score = [](const ThreadSpeed& s) { return s.multiply_adds * s.bytes; };
  double best = 0;
  for (const ThreadSpeed& speed : speeds) best = std::max(best, score(speed));
  for (const ThreadSpeed& speed : speeds)
    if (score(speed) >= kAsGood * best) return speed.threads;
  return 1;
}

int remembered_thread_count(const std::filesystem::path& file, const std::string& key, int usable, const std::function<int()>& measure) {
  const std::string name = sha256_of(key);
  std::vector<std::string> lines;
  std::istringstream text(file.empty() ? "" : read_file(file, 1 << 16).value_or(""));
  for (std::string line; std::getline(text, line) && lines.size() < kMostLines;) {
    if (!line.starts_with(name + " ")) {
      lines.push_back(line);
      continue;
    }
    const int known = std::atoi(line.c_str() + name.size());
    if (known >= 1 && known <= usable) return known;
  }
  const int found = measure();
  if (found < 1 || file.empty()) return found < 1 ? usable : found;
  if (lines.size() >= kMostLines) lines.erase(lines.begin());
  lines.push_back(fmt::format("{} {}", name, found));
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  static_cast<void>(write_file_atomically(file, all));  // else it is measured again
  return found;
}

ThreadChoice choose_threads(int requested) {
  const int usable = usable_processors();
  if (requested > usable) {
    return {usable, fmt::format("{} threads were asked for; this process may use {} processor{}, and so many threads are used", requested,
                                usable, usable == 1 ? "" : "s")};
  }
  if (requested > 0 || usable == 1) return {std::max(requested, 1)};
  return {remembered_thread_count(cache_folder("threads"), machine_key(usable), usable, [&] { return measure_thread_count(usable); })};
}

}  // namespace weir::kernels
