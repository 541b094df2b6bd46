// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>

#include "base/file_io.h"
#include "base/thread_pool.h"

namespace weir::bench {
namespace {

// x86 names the model; other systems name an implementer or a whole machine.
std::string cpu_name(std::string_view cpuinfo) {
  for (const char* key : {"model name", "Model", "cpu", "Hardware"})
    if (std::string name = cpuinfo_value(cpuinfo, key); !name.empty()) return name;
  const std::string implementer = cpuinfo_value(cpuinfo, "CPU implementer"), part = cpuinfo_value(cpuinfo, "CPU part");
  return implementer.empty() ? "unknown" : fmt::format("implementer {} part {}", implementer, part);
}

}  // namespace

std::string cpuinfo_value(std::string_view text, std::string_view key) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !line.starts_with(key)) continue;
    if (line.substr(key.size(), colon - key.size()).find_first_not_of(" \t") != std::string_view::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? "" : std::string(line.substr(value));
  }
  return "";
}

Machine describe_machine() {
  Machine machine;
  machine.cpu = cpu_name(read_file("/proc/cpuinfo", 64u << 20).value_or(""));
  if (utsname name{}; ::uname(&name) == 0) machine.host = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  machine.processors = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.usable = usable_processors();
  machine.memory_gib = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE)) / (1 << 30);
  return machine;
}

json::Object to_json(const Machine& machine) {
  return {{"host", machine.host},
          {"processors", machine.processors},
          {"usable_processors", machine.usable},
          {"memory_gib", machine.memory_gib}};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace weir::bench
