// SPDX-License-Identifier: Apache-2.0
// Memory that lies nearer to some processors than to others. Weights that all threads read are spread over the nodes page by page, so
// that each node's memory gives its share of the bandwidth. On a machine with one node all of this does nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace weir {

// "0-3,8" → 0, 1, 2, 3, 8. Empty for nonsense, and for a list of more than 4,096.
std::vector<int> parse_processor_list(std::string_view text);

// The numbers of the nodes that have memory, from has_memory (else online) in a folder like /sys/devices/system/node.
std::vector<int> read_memory_nodes(const std::filesystem::path& folder = "/sys/devices/system/node");

// Lets the pages of `memory` that are not there yet come from all nodes in turn. False when the kernel refuses; one node or none: true,
// nothing done.
bool interleave(std::span<std::byte> memory, std::span<const int> nodes);

// The same from one node, as long as it has memory.
bool prefer_node(std::span<std::byte> memory, int node);

}  // namespace weir
