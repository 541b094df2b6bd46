// SPDX-License-Identifier: Apache-2.0
#include "bench/disk_speed.h"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <random>

#include "base/clock.h"
#include "base/huge_memory.h"
#include "bench/probe_file.h"
#include "kernels/limits/machine_limits.h"

namespace weir::bench {
namespace {

constexpr std::uint64_t kBlock = 1u << 20, kPage = 4096;
constexpr std::uint64_t kQuarters = 4;

TimePoint now() { return steady_clock().now(); }

Status cancelled() { return fail(ErrorCode::kCancelled, "interrupted"); }

// The magic numbers of statfs(2).
std::string file_system_of(const std::filesystem::path& folder) {
  struct statfs info{};
  if (::statfs(folder.c_str(), &info) != 0) return "unknown";
  switch (static_cast<std::uint32_t>(info.f_type)) {
    case 0xEF53: return "ext4";
    case 0x58465342: return "xfs";
    case 0x9123683E: return "btrfs";
    case 0x2FC12FC1: return "zfs";
    case 0xF2F52010: return "f2fs";
    case 0x01021994: return "tmpfs";
    case 0x794C7630: return "overlay";
    case 0x6969: return "nfs";
    case 0x65735546: return "fuse";
    default: return fmt::format("type {:#x}", static_cast<std::uint32_t>(info.f_type));
  }
}

Result<std::uint64_t> free_space(const std::filesystem::path& folder) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0)
    return fail(ErrorCode::kIo, "cannot tell the free space of {}: {}", folder.string(), std::strerror(errno));
  const std::uint64_t unit = std::max<std::uint64_t>(info.f_frsize, 1), most = std::numeric_limits<std::uint64_t>::max();
  return info.f_bavail > most / unit ? most : info.f_bavail * unit;
}

// What no file system can make smaller.
void fill_with_noise(std::span<std::byte> block) {
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < block.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(&block[i], &word, sizeof word);
  }
}

// No two pages of the file are equal, lest they are stored once.
void stamp(std::span<std::byte> block, std::uint64_t offset) {
  for (std::size_t page = 0; page < block.size(); page += kPage) {
    const std::uint64_t place = offset + page;
    std::memcpy(&block[page], &place, sizeof place);
  }
}

struct Pass {
  Spread bytes_per_s;
  std::uint64_t bytes = 0;
};

class Probe {
 public:
  Probe(ProbeFile& file, const DiskOptions& options, const std::function<bool()>& keep_going)
      : file_(file),
        options_(options),
        keep_going_(keep_going),
        memory_(allocate_working_memory(kBlock, kPage)),
        block_(memory_.get(), kBlock) {
    fill_with_noise(block_);
  }

  Result<Pass> write(std::uint64_t bytes) {
    return in_quarters(
        bytes,
        [&](std::uint64_t offset) {
          stamp(block_, offset);
          return file_.write(block_, offset);
        },
        [&] { return file_.sync(); });
  }

  Result<Pass> read(std::uint64_t bytes) {
    file_.forget(0, 0);
    return in_quarters(bytes, [&](std::uint64_t offset) { return file_.read(block_, offset); }, [] { return Status(); });
  }

  Result<Latency> read_at_random(std::uint64_t bytes) {
    std::mt19937_64 random(2);
    std::vector<double> seconds;
    file_.forget(0, 0);
    file_.expect_random();
    const TimePoint start = now();
    for (int i = 0; i < options_.random_reads && to_seconds(now() - start) < options_.seconds; ++i) {
      if (!keep_going_()) return std::unexpected(cancelled().error());
      const std::uint64_t offset = random() % (bytes / kPage) * kPage;
      file_.forget(offset, kPage);  // a page that was met before
      const TimePoint asked = now();
      WEIR_TRY(file_.read(block_.first(kPage), offset));
      seconds.push_back(to_seconds(now() - asked));
    }
    return latency_of(std::move(seconds));
  }

 private:
  // Block after block until the time is up, timed by quarter; `end` belongs to each quarter's time.
  template <class Transfer, class End>
  Result<Pass> in_quarters(std::uint64_t bytes, Transfer transfer, End end) {
    Pass pass;
    std::vector<double> speeds;
    const TimePoint start = now();
    const auto in_time = [&] { return pass.bytes == 0 || to_seconds(now() - start) < options_.seconds; };
    while (pass.bytes < bytes && in_time()) {
      const std::uint64_t quarter_start = pass.bytes, quarter_end = std::min(pass.bytes + bytes / kQuarters, bytes);
      const TimePoint began = now();
      while (pass.bytes < quarter_end && in_time()) {
        if (!keep_going_()) return std::unexpected(cancelled().error());
        WEIR_TRY(transfer(pass.bytes));
        pass.bytes += kBlock;
      }
      WEIR_TRY(end());
      speeds.push_back(static_cast<double>(pass.bytes - quarter_start) / std::max(to_seconds(now() - began), 1e-9));
    }
    pass.bytes_per_s = spread_of(std::move(speeds));
    return pass;
  }

  ProbeFile& file_;
  const DiskOptions& options_;
  const std::function<bool()>& keep_going_;
  std::shared_ptr<std::byte> memory_;
  std::span<std::byte> block_;
};

}  // namespace

std::uint64_t bounded_disk_bytes(std::uint64_t wanted, std::uint64_t free_bytes) {
  return std::min(wanted, free_bytes / 10) / (kBlock * kQuarters) * (kBlock * kQuarters);
}

Result<DiskSpeed> measure_disk(const DiskOptions& options, const std::function<bool()>& keep_going) {
  WEIR_ASSIGN(const std::uint64_t free, free_space(options.folder));
  const std::uint64_t bytes = bounded_disk_bytes(options.bytes, free);
  if (bytes == 0)
    return fail(ErrorCode::kExhausted, "{} bytes are free in {}; a tenth of that is too little to measure with", free,
                options.folder.string());
  WEIR_ASSIGN(ProbeFile file, ProbeFile::create(options.folder, options.direct));
  Probe probe(file, options, keep_going);
  DiskSpeed disk{.folder = options.folder.string(),
                 .file_system = file_system_of(options.folder),
                 .write_bytes_per_s = {},
                 .read_bytes_per_s = {},
                 .random_read = {}};
  WEIR_ASSIGN(const Pass written, probe.write(bytes));
  WEIR_ASSIGN(const Pass read, probe.read(written.bytes));
  WEIR_ASSIGN(disk.random_read, probe.read_at_random(written.bytes));
  disk.bytes = written.bytes;
  disk.direct = file.is_direct();
  disk.write_bytes_per_s = written.bytes_per_s;
  disk.read_bytes_per_s = read.bytes_per_s;
  return disk;
}

json::Object to_json(const DiskSpeed& disk) {
  return {{"folder", disk.folder},
          {"file_system", disk.file_system},
          {"bytes", disk.bytes},
          {"direct", disk.direct},
          {"write_gb_per_s", kernels::spread_json(disk.write_bytes_per_s, 1e-9)},
          {"read_gb_per_s", kernels::spread_json(disk.read_bytes_per_s, 1e-9)},
          {"random_read_us", latency_us(disk.random_read)}};
}

}  // namespace weir::bench
