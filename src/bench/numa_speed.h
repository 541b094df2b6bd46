// SPDX-License-Identifier: Apache-2.0
// How fast the processors of each NUMA node read memory of each node. Where there is one node, there is nothing to compare.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/numa.h"
#include "base/result.h"
#include "base/spread.h"
#include "kernels/limits/caches.h"

namespace weir::bench {

struct NodeRead {
  int processors_of = 0, memory_of = 0;  // numbers of nodes
  int threads = 0;
  std::uint64_t bytes_per_thread = 0;
  Spread bytes_per_s;
  std::string problem;  // why there is no figure; empty when there is one
};

struct NumaSpeed {
  std::vector<NumaNode> nodes;
  std::vector<NodeRead> reads;  // one per pair of nodes; none on a machine with one node
};

struct NumaOptions {
  kernels::CacheSizes caches{};
  int most_threads = 1;
  double seconds = 0.2;  // about, for each pair
};

// More than the caches of so many processors hold, and at most an eighth of what is free, all threads together.
std::uint64_t node_bytes_per_thread(const kernels::CacheSizes& caches, int threads, std::uint64_t free_bytes);

// One pair, which may be a node with itself. Threads are pinned to those of the node's processors that this process may use.
NodeRead measure_node_read(const NumaNode& processors, const NumaNode& memory, const NumaOptions& options);

// Every pair of the first 8 nodes with processors and the first 8 with memory. `keep_going` is asked between pairs; false cancels.
Result<NumaSpeed> measure_numa(std::vector<NumaNode> nodes, const NumaOptions& options, const std::function<bool()>& keep_going);

json::Object to_json(const NumaSpeed& numa);

}  // namespace weir::bench
