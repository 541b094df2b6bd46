// SPDX-License-Identifier: Apache-2.0
// How busy processors are, and with whom: the counters of /proc, for the machine and for one process with all its descendants.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::energy {

struct CpuTimes {
  double busy_s = 0, total_s = 0;  // over all processors
};
// The line "cpu …" of /proc/stat. Waiting for disks and stolen time are not busy.
std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat);
std::optional<CpuTimes> read_cpu_times(const std::filesystem::path& proc = "/proc");

// Share of the processors' time that was busy between two readings, 0 to 1.
double busy_share(const CpuTimes& before, const CpuTimes& after);

struct ProcessUse {
  int parent = 0;
  double cpu_s = 0;           // user and system, since its start
  double resident_bytes = 0;  // pages of files that are mapped included
};
std::optional<ProcessUse> parse_process_stat(std::string_view stat);  // /proc/PID/stat; the name in it may hold anything

// The process and whatever descends from it. Nothing when there is no such process.
std::optional<ProcessUse> read_process_tree(int pid, const std::filesystem::path& proc = "/proc");

// Who listens at this TCP port, if this process may know.
std::optional<int> find_listener(std::uint16_t port, const std::filesystem::path& proc = "/proc");
// Inodes of sockets that listen at the port, of a text like /proc/net/tcp.
std::vector<std::uint64_t> parse_listeners(std::string_view net_tcp, std::uint16_t port);

}  // namespace weir::energy
