// SPDX-License-Identifier: Apache-2.0
// The system call is made directly: libnuma would be a dependency for one line.
#include "base/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

#include "base/file_io.h"
#include "base/system_memory.h"

namespace weir {
namespace {

constexpr int kMostNumbers = 4096, kNumbersEnd = 1 << 16;
constexpr std::size_t kMostNodes = 256;
constexpr int kPreferred = 1, kInterleave = 3;  // of linux/mempolicy.h, as are these
constexpr unsigned long kNode = 1, kOfAddress = 2;

bool parse_range(std::string_view text, int& first, int& last) {
  const auto number = [](std::string_view part, int& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && end == part.data() + part.size() && value >= 0 && value < kNumbersEnd;
  };
  const auto dash = text.find('-');
  if (!number(text.substr(0, dash), first)) return false;
  last = first;
  return dash == std::string_view::npos || (number(text.substr(dash + 1), last) && last >= first);
}

std::vector<int> sorted_list(const std::filesystem::path& file) {
  std::vector<int> numbers = parse_processor_list(read_file(file, 65536).value_or(""));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// "10 21\n". As many as there are nodes, or none.
std::vector<int> parse_distances(std::string_view text, std::size_t nodes) {
  std::vector<int> distances;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (text.empty()) break;
    int distance = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), distance);
    if (error != std::errc{} || distance <= 0 || distances.size() == nodes) return {};
    distances.push_back(distance);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return distances.size() == nodes ? distances : std::vector<int>{};
}

NumaNode read_node(const std::filesystem::path& folder, int number, std::size_t nodes) {
  const std::filesystem::path own = folder / fmt::format("node{}", number);
  const std::string memory = read_file(own / "meminfo", 65536).value_or("");
  const auto bytes = [&](const char* what) { return parse_kilobytes(memory, fmt::format("Node {} {}", number, what)).value_or(0); };
  return {.number = number,
          .processors = sorted_list(own / "cpulist"),
          .memory_bytes = bytes("MemTotal"),
          .free_bytes = bytes("MemFree"),
          .distances = parse_distances(read_file(own / "distance", 65536).value_or(""), nodes)};
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
    if (comma == std::string_view::npos) break;
    text = text.substr(comma + 1);
    if (text.empty()) return {};
  }
  return numbers;
}

std::vector<int> read_memory_nodes(const std::filesystem::path& folder) {
  for (const char* file : {"has_memory", "online"})
    if (auto nodes = parse_processor_list(read_file(folder / file, 4096).value_or("")); !nodes.empty()) return nodes;
  return {};
}

std::vector<NumaNode> read_numa_nodes(const std::filesystem::path& folder) {
  const std::vector<int> numbers = sorted_list(folder / "online");
  std::vector<NumaNode> nodes;
  std::set<int> seen;
  if (numbers.size() > kMostNodes) return nodes;
  for (const int number : numbers) {
    nodes.push_back(read_node(folder, number, numbers.size()));
    std::erase_if(nodes.back().processors, [&](int processor) { return !seen.insert(processor).second; });
  }
  return nodes;
}

bool interleave(std::span<std::byte> memory, std::span<const int> nodes) {
  return nodes.size() < 2 || memory.empty() || bind(memory, kInterleave, nodes);
}

bool prefer_node(std::span<std::byte> memory, int node) { return bind(memory, kPreferred, {&node, 1}); }

std::optional<int> node_of(const std::byte* address) {
  int node = -1;
  const bool told = ::syscall(SYS_get_mempolicy, &node, nullptr, 0ul, address, kNode | kOfAddress) == 0;
  return told && node >= 0 ? std::optional(node) : std::nullopt;
}

}  // namespace weir
