// SPDX-License-Identifier: Apache-2.0
#include "base/huge_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

#include "base/file_io.h"

namespace weir {

HugeMemory allocate_huge(std::size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return {};
  const std::size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage, reserved = size + kHugePage;
  void* memory = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  auto* data = static_cast<std::byte*>(memory);
  std::byte* aligned = data + (kHugePage - reinterpret_cast<std::uintptr_t>(data) % kHugePage) % kHugePage;
  ::madvise(aligned, size, MADV_HUGEPAGE);
  return {std::shared_ptr<std::byte>(aligned, [data, reserved](std::byte*) { ::munmap(data, reserved); }), {aligned, bytes}};
}

std::shared_ptr<std::byte> allocate_working_memory(std::size_t bytes, std::size_t alignment) {
  constexpr std::size_t kWorthwhile = 4 * kHugePage;  // what the last page wastes is then little
  if (bytes >= kWorthwhile) {
    if (HugeMemory memory = allocate_huge(bytes)) return std::move(memory.owner);
  }
  const std::align_val_t align{alignment};
  auto* data = static_cast<std::byte*>(::operator new[](bytes, align));
  return {data, [align](std::byte* p) { ::operator delete[](p, align); }};
}

bool parse_thp_enabled(std::string_view text) {
  return text.find("[always]") != std::string_view::npos || text.find("[madvise]") != std::string_view::npos;
}

bool huge_pages_allowed() { return parse_thp_enabled(read_file("/sys/kernel/mm/transparent_hugepage/enabled", 4096).value_or("")); }

}  // namespace weir
