// SPDX-License-Identifier: Apache-2.0
// The system call is made directly: libnuma would be a dependency for one line.
#include "base/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file_io.h"

namespace weir {
namespace {

constexpr int kMostNumbers = 4096;
constexpr int kPreferred = 1, kInterleave = 3;  // of linux/mempolicy.h

bool parse_range(std::string_view text, int& first, int& last) {
  const auto number = [](std::string_view part, int& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && end == part.data() + part.size() && value >= 0;
  };
  const auto dash = text.find('-');
  if (!number(text.substr(0, dash), first)) return false;
  last = first;
  return dash == std::string_view::npos || (number(text.substr(dash + 1), last) && last >= first);
}

bool bind(std::span<std::byte> memory, int policy, std::span<const int> nodes) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(static_cast<std::size_t>(*std::max_element(nodes.begin(), nodes.end())) / kBits + 1);
  for (const int node : nodes) mask[static_cast<std::size_t>(node) / kBits] |= 1ul << (static_cast<std::size_t>(node) % kBits);
  // The kernel reads one bit less than it is told.
  return ::syscall(SYS_mbind, memory.data(), memory.size(), policy, mask.data(), mask.size() * kBits + 1, 0) == 0;
}

}  // namespace

std::vector<int> parse_processor_list(std::string_view text) {
  std::vector<int> numbers;
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  while (!text.empty()) {
    const auto comma = text.find(',');
    int first = 0, last = 0;
    if (!parse_range(text.substr(0, comma), first, last) || last - first >= kMostNumbers) return {};
    for (int n = first; n <= last; ++n) numbers.push_back(n);
    if (numbers.size() > static_cast<std::size_t>(kMostNumbers)) return {};
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return numbers;
}

std::vector<int> read_memory_nodes(const std::filesystem::path& folder) {
  for (const char* file : {"has_memory", "online"})
    if (auto nodes = parse_processor_list(read_file(folder / file, 4096).value_or("")); !nodes.empty()) return nodes;
  return {};
}

bool interleave(std::span<std::byte> memory, std::span<const int> nodes) {
  return nodes.size() < 2 || memory.empty() || bind(memory, kInterleave, nodes);
}

bool prefer_node(std::span<std::byte> memory, int node) { return bind(memory, kPreferred, {&node, 1}); }

}  // namespace weir
