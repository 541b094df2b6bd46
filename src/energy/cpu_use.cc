// SPDX-License-Identifier: Apache-2.0
#include "energy/cpu_use.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>

#include "base/file_io.h"

namespace weir::energy {
namespace {

constexpr std::size_t kMostProcesses = 1u << 16, kMostDescriptors = 1u << 16;

double ticks_per_s() {
  static const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks;
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int> pid_of(const std::filesystem::path& folder) { return number<int>(folder.filename().string()); }

bool holds_socket(const std::filesystem::path& descriptors, const std::vector<std::string>& names) {
  std::error_code error;
  std::size_t seen = 0;
  for (std::filesystem::directory_iterator entry(descriptors, error), end; !error && entry != end && seen < kMostDescriptors;
       entry.increment(error), ++seen) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(entry->path(), unreadable).string();
    if (!unreadable && std::find(names.begin(), names.end(), target) != names.end()) return true;
  }
  return false;
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat) {
  std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  if (take_word(line) != "cpu") return std::nullopt;
  // user nice system idle iowait irq softirq steal; guests are in user already.
  CpuTimes times;
  for (int field = 0; field < 8; ++field) {
    const std::string_view word = take_word(line);
    if (word.empty() && field >= 4) break;  // old kernels
    const auto ticks = number<std::uint64_t>(word);
    if (!ticks) return std::nullopt;
    const double seconds = static_cast<double>(*ticks) / ticks_per_s();
    times.total_s += seconds;
    if (field != 3 && field != 4 && field != 7) times.busy_s += seconds;
  }
  return times;
}

std::optional<CpuTimes> read_cpu_times(const std::filesystem::path& proc) {
  const auto text = read_file(proc / "stat", 16u << 20);
  return text ? parse_cpu_times(*text) : std::nullopt;
}

double busy_share(const CpuTimes& before, const CpuTimes& after) {
  const double total = after.total_s - before.total_s;
  return total > 0 ? std::clamp((after.busy_s - before.busy_s) / total, 0.0, 1.0) : 0;
}

std::optional<ProcessUse> parse_process_stat(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = stat.substr(name_end + 1);
  if (const std::size_t end = rest.find('\n'); end != std::string_view::npos) rest = rest.substr(0, end);
  ProcessUse use;
  for (int field = 3; field <= 24; ++field) {
    const std::string_view word = take_word(rest);
    if (word.empty()) return std::nullopt;
    if (field != 4 && field != 14 && field != 15 && field != 24) continue;
    const auto value = number<std::int64_t>(word);
    if (!value) return std::nullopt;
    if (field == 4) use.parent = static_cast<int>(std::clamp<std::int64_t>(*value, 0, 1 << 30));
    if (field == 14 || field == 15) use.cpu_s += static_cast<double>(*value) / ticks_per_s();
    if (field == 24) use.resident_bytes = static_cast<double>(*value) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  }
  return use;
}

std::optional<ProcessUse> read_process_tree(int pid, const std::filesystem::path& proc) {
  std::unordered_map<int, ProcessUse> all;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc, error), end; !error && entry != end && all.size() < kMostProcesses;
       entry.increment(error)) {
    const auto id = pid_of(entry->path());
    const auto stat = id ? read_file(entry->path() / "stat", 1u << 16) : fail(ErrorCode::kNotFound, "no process");
    if (!stat) continue;
    if (const auto use = parse_process_stat(*stat)) all[*id] = *use;
  }
  if (!all.contains(pid)) return std::nullopt;
  const auto descends = [&](int id) {
    for (int depth = 0; depth < 64; ++depth) {
      if (id == pid) return true;
      const auto found = all.find(id);
      if (found == all.end()) return false;
      id = found->second.parent;
    }
    return false;
  };
  ProcessUse sum{.parent = all[pid].parent};
  for (const auto& [id, use] : all) {
    if (!descends(id)) continue;
    sum.cpu_s += use.cpu_s;
    sum.resident_bytes += use.resident_bytes;
  }
  return sum;
}

std::vector<std::uint64_t> parse_listeners(std::string_view net_tcp, std::uint16_t port) {
  std::vector<std::uint64_t> inodes;
  for (std::size_t begin = 0; begin < net_tcp.size();) {
    const std::size_t end = std::min(net_tcp.find('\n', begin), net_tcp.size());
    std::string_view line = net_tcp.substr(begin, end - begin);
    begin = end + 1;
    take_word(line);  // the row's number
    const std::string_view local = take_word(line);
    take_word(line);  // the remote address
    const std::string_view state = take_word(line);
    const std::size_t colon = local.rfind(':');
    if (state != "0A" || colon == std::string_view::npos || number<std::uint16_t>(local.substr(colon + 1), 16) != port) continue;
    for (int skipped = 0; skipped < 5; ++skipped) take_word(line);  // queues, timer, retransmissions, user, timeout
    if (const auto inode = number<std::uint64_t>(take_word(line)); inode && inodes.size() < 64) inodes.push_back(*inode);
  }
  return inodes;
}

std::optional<int> find_listener(std::uint16_t port, const std::filesystem::path& proc) {
  std::vector<std::string> names;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    const auto text = read_file(proc / table, 64u << 20);
    if (!text) continue;
    for (const std::uint64_t inode : parse_listeners(*text, port)) names.push_back(fmt::format("socket:[{}]", inode));
  }
  if (names.empty()) return std::nullopt;
  std::optional<int> found;  // the lowest: a parent comes before the workers that it shares its socket with
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
    const auto id = pid_of(entry->path());
    if (id && (!found || *id < *found) && holds_socket(entry->path() / "fd", names)) found = *id;
  }
  return found;
}

}  // namespace weir::energy
