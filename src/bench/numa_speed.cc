// SPDX-License-Identifier: Apache-2.0
#include "bench/numa_speed.h"

#include <algorithm>

#include "base/system_memory.h"
#include "kernels/limits/core_sharing.h"
#include "kernels/limits/machine_limits.h"
#include "kernels/limits/read_speed.h"

namespace weir::bench {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr int kMostOfEach = 8;  // 64 pairs take about half a minute

std::vector<int> usable_of(const NumaNode& node) {
  const std::vector<int> allowed = kernels::allowed_processors();
  std::vector<int> usable;
  std::set_intersection(allowed.begin(), allowed.end(), node.processors.begin(), node.processors.end(), std::back_inserter(usable));
  return usable;
}

json::Object node_json(const NumaNode& node) {
  return {{"node", node.number},
          {"processors", json::Array(node.processors.begin(), node.processors.end())},
          {"memory_bytes", node.memory_bytes},
          {"free_bytes", node.free_bytes},
          {"distances", json::Array(node.distances.begin(), node.distances.end())}};
}

json::Object read_json(const NodeRead& read) {
  json::Object out{{"processors_of_node", read.processors_of}, {"memory_of_node", read.memory_of}};
  if (!read.problem.empty()) {
    out["problem"] = read.problem;
    return out;
  }
  out["threads"] = read.threads;
  out["bytes_per_thread"] = read.bytes_per_thread;
  out["gb_per_s"] = kernels::spread_json(read.bytes_per_s, 1e-9);
  return out;
}

}  // namespace

std::uint64_t node_bytes_per_thread(const kernels::CacheSizes& caches, int threads, std::uint64_t free_bytes) {
  const auto count = static_cast<std::uint64_t>(std::max(threads, 1));
  const auto sharing = static_cast<std::uint64_t>(std::max(caches.l3_processors, 1));
  const std::uint64_t last_levels = (count + sharing - 1) / sharing * caches.l3;
  return std::min(std::max(4 * last_levels, 192 * kMiB), free_bytes / 8) / count;
}

NodeRead measure_node_read(const NumaNode& processors, const NumaNode& memory, const NumaOptions& options) {
  NodeRead read{.processors_of = processors.number, .memory_of = memory.number, .bytes_per_s = {}, .problem = {}};
  const std::vector<int> usable = usable_of(processors);
  read.threads = std::min(static_cast<int>(usable.size()), options.most_threads);
  const std::uint64_t free = std::min(memory.free_bytes, available_memory().value_or(memory.free_bytes));
  read.bytes_per_thread = node_bytes_per_thread(options.caches, read.threads, free);
  if (read.threads < 1) {
    read.problem = "this process may use none of the node's processors";
  } else if (read.bytes_per_thread < kMiB) {
    read.problem = "the node has too little free memory";
  } else if (auto speed = kernels::measure_read({.threads = read.threads,
                                                 .bytes_per_thread = read.bytes_per_thread,
                                                 .pages = kernels::Pages::kHuge,
                                                 .seconds = options.seconds,
                                                 .processors = usable,
                                                 .memory_node = memory.number})) {
    read.bytes_per_s = *speed;
  } else {
    read.problem = speed.error().message;
  }
  return read;
}

Result<NumaSpeed> measure_numa(std::vector<NumaNode> nodes, const NumaOptions& options, const std::function<bool()>& keep_going) {
  NumaSpeed numa{.nodes = std::move(nodes), .reads = {}};
  if (numa.nodes.size() < 2) return numa;
  int rows = 0;
  for (const NumaNode& processors : numa.nodes) {
    if (processors.processors.empty() || rows++ >= kMostOfEach) continue;
    int columns = 0;
    for (const NumaNode& memory : numa.nodes) {
      if (memory.memory_bytes == 0 || columns++ >= kMostOfEach) continue;
      if (!keep_going()) return fail(ErrorCode::kCancelled, "interrupted");
      numa.reads.push_back(measure_node_read(processors, memory, options));
    }
  }
  return numa;
}

json::Object to_json(const NumaSpeed& numa) {
  json::Array nodes, reads;
  for (const NumaNode& node : numa.nodes) nodes.push_back(node_json(node));
  for (const NodeRead& read : numa.reads) reads.push_back(read_json(read));
  return {{"nodes", std::move(nodes)}, {"reads", std::move(reads)}};
}

}  // namespace weir::bench
