// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/caches.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

#include "base/numa.h"

namespace weir::kernels {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Reads a number from the front of `text`, which it shortens.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

void add_cache(const std::filesystem::path& entry, CacheSizes& sizes) {
  const auto size = parse_cache_size(first_line(entry / "size"));
  const std::string level = first_line(entry / "level");
  if (!size || *size == 0 || first_line(entry / "type") == "Instruction") return;
  sizes.known = true;
  if (level == "1") sizes.l1 = *size;
  if (level == "2") sizes.l2 = *size;
  if (level == "3") {
    sizes.l3 = *size;
    sizes.l3_processors = std::max(static_cast<int>(parse_processor_list(first_line(entry / "shared_cpu_list")).size()), 1);
  }
}

void ask_sysconf(CacheSizes& sizes) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const long l1 = ::sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (l1 > 0) sizes.l1 = static_cast<std::uint64_t>(l1);
  if (l2 > 0) sizes.l2 = static_cast<std::uint64_t>(l2);
  if (l3 > 0) sizes.l3 = static_cast<std::uint64_t>(l3);
  sizes.known = l2 > 0;
#else
  (void)sizes;
#endif
}

}  // namespace

std::optional<std::uint64_t> parse_cache_size(std::string_view text) {
  const auto value = take_number(text);
  if (!value) return std::nullopt;
  const std::uint64_t unit = text.empty() ? 1 : text == "K" ? 1u << 10 : text == "M" ? 1u << 20 : text == "G" ? 1u << 30 : 0;
  if (unit == 0 || *value > (std::uint64_t{1} << 50) / unit) return std::nullopt;
  return *value * unit;
}

CacheSizes read_cache_sizes(const std::filesystem::path& folder) {
  CacheSizes sizes;
  for (int i = 0; i < 8; ++i) add_cache(folder / ("index" + std::to_string(i)), sizes);
  if (!sizes.known) ask_sysconf(sizes);
  return sizes;
}

}  // namespace weir::kernels
