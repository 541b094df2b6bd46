// SPDX-License-Identifier: Apache-2.0
// How fast a folder's disk writes, reads in order, and answers single reads. The file for it has no name from the moment that it is
// open, so that whatever ends the process leaves nothing behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/spread.h"
#include "bench/latency.h"

namespace weir::bench {

struct DiskOptions {
  std::filesystem::path folder{};
  std::uint64_t bytes = 256u << 20;  // at most; see bounded_disk_bytes
  bool direct = true;                // past the page cache, where the file system allows it
  int random_reads = 2000;           // at most
  double seconds = 4;                // at most, for each of the three parts
};

struct DiskSpeed {
  std::string folder, file_system;  // "ext4"
  std::uint64_t bytes = 0;
  bool direct = false;                         // false: the file's pages were dropped from the cache before they were read
  Spread write_bytes_per_s, read_bytes_per_s;  // of quarters of the file, each write with fdatasync
  Latency random_read;                         // of 4 KiB, one at a time
};

// No more than a tenth of the free space, in whole 4 MiB; 0 when that is less than 4 MiB.
std::uint64_t bounded_disk_bytes(std::uint64_t wanted, std::uint64_t free_bytes);

// kExhausted when there is too little space. `keep_going` is asked between blocks of 1 MiB and between random reads; false cancels.
Result<DiskSpeed> measure_disk(const DiskOptions& options, const std::function<bool()>& keep_going);

json::Object to_json(const DiskSpeed& disk);

}  // namespace weir::bench
