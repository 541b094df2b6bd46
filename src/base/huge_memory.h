// SPDX-License-Identifier: Apache-2.0
// Anonymous memory that asks the kernel for pages of 2 MiB. Streaming weights through 4 KiB pages of a file mapping costs a
// page walk per 4 KiB; no Linux file system maps its files with large pages on demand, private memory can have them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace weir {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Zeroed memory at a border of 2 MiB that ends with its last holder; null when the kernel grants none. Pages come as they
// are touched, large ones where the kernel has them.
struct HugeMemory {
  std::shared_ptr<std::byte> owner;
  std::span<std::byte> bytes;
  explicit operator bool() const { return owner != nullptr; }
};
HugeMemory allocate_huge(std::size_t bytes);

// Uninitialised memory for activations and buffers: large pages from a few of them on, since matrices are written in columns of
// rows that lie far apart; the heap else. Throws std::bad_alloc. `alignment`: a power of two up to 4096.
std::shared_ptr<std::byte> allocate_working_memory(std::size_t bytes, std::size_t alignment);

// Whether the kernel gives large pages to memory that asks, from /sys/kernel/mm/transparent_hugepage/enabled.
bool huge_pages_allowed();
bool parse_thp_enabled(std::string_view text);  // "always [madvise] never" → true

}  // namespace weir
