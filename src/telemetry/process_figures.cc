// SPDX-License-Identifier: Apache-2.0
// The process as /proc shows it, for the process_… metrics. What cannot be read counts as zero.
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_io.h"
#include "telemetry/metric_books.h"

namespace weir::telemetry {
namespace {

std::string proc_file(const char* path) {
  auto text = read_file(path, 1u << 20);
  return text ? std::move(*text) : std::string();
}

double number_at(std::string_view text, std::size_t field) {
  for (; field > 0; --field) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return 0;
    text.remove_prefix(space + 1);
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double boot_time() {
  const std::string stat = proc_file("/proc/stat");
  const std::size_t at = stat.find("\nbtime ");
  return at == std::string::npos ? 0 : number_at(std::string_view(stat).substr(at + 7), 0);
}

double open_descriptors() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end; entry.increment(error)) ++count;
  return count > 0 ? count - 1 : 0;  // one of them read the folder
}

}  // namespace

ProcessFigures process_figures() {
  ProcessFigures figures;
  const std::string stat = proc_file("/proc/self/stat");
  if (const std::size_t name_end = stat.rfind(") "); name_end != std::string::npos) {
    const std::string_view fields = std::string_view(stat).substr(name_end + 2);  // begins with field 3 of proc(5)
    const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    figures.cpu_seconds = (number_at(fields, 11) + number_at(fields, 12)) / ticks;
    static const double boot = boot_time();
    figures.start_unix_s = boot + number_at(fields, 19) / ticks;
    figures.virtual_bytes = number_at(fields, 20);
    figures.resident_bytes = number_at(fields, 21) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  figures.open_fds = open_descriptors();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.max_fds = static_cast<double>(limit.rlim_cur);
  return figures;
}

}  // namespace weir::telemetry
