// SPDX-License-Identifier: Apache-2.0
// Memory that lies nearer to some processors than to others. Weights that all threads read are spread over the nodes page by page, so
// that each node's memory gives its share of the bandwidth. On a machine with one node all of this does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir {

// "0-3,8" → 0, 1, 2, 3, 8. Empty for nonsense, for a list of more than 4,096, and for numbers from 65,536 on.
std::vector<int> parse_processor_list(std::string_view text);

// The numbers of the nodes that have memory, from has_memory (else online) in a folder like /sys/devices/system/node.
std::vector<int> read_memory_nodes(const std::filesystem::path& folder = "/sys/devices/system/node");

struct NumaNode {
  int number = 0;
  std::vector<int> processors;                     // ascending; none where there is only memory
  std::uint64_t memory_bytes = 0, free_bytes = 0;  // 0 where there are only processors, or where it is not told
  std::vector<int> distances;                      // to each node, in the order of the nodes; 10 = itself. Empty when not told
};

// The nodes that are online, ascending, from a folder like /sys/devices/system/node. Files that are missing or make no sense leave their
// member empty; a processor belongs to the first node that names it. At most 256 nodes; none when `online` says nothing.
std::vector<NumaNode> read_numa_nodes(const std::filesystem::path& folder = "/sys/devices/system/node");

// Lets the pages of `memory` that are not there yet come from all nodes in turn. False when the kernel refuses; one node or none: true,
// nothing done.
bool interleave(std::span<std::byte> memory, std::span<const int> nodes);

// The same from one node, as long as it has memory.
bool prefer_node(std::span<std::byte> memory, int node);

// On which node the page of this address lies, which has been touched. Nothing when the kernel does not tell.
std::optional<int> node_of(const std::byte* address);

}  // namespace weir
