// SPDX-License-Identifier: Apache-2.0
#include "base/page_mover.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/huge_memory.h"
#include "base/numa.h"
#include "base/system_memory.h"

namespace weir {
namespace {

constexpr std::size_t kMostPieces = 8192;  // each stays a mapping of its own, of which a process may have 65,530
constexpr double kWorthwhile = 1e9;        // bytes per second of moving below which the system is short of large pages
constexpr int kMovers = 8, kLongPause = 4096;

std::size_t round_up(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

AlignedMap map_aligned(int fd, std::uint64_t offset, std::size_t size) {
  if (size == 0 || size > SIZE_MAX / 2) return {};
  const std::size_t reserved = round_up(size) + kHugePage;
  void* const base = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return {};
  const std::shared_ptr<const void> owner(base, [reserved](void* p) { ::munmap(p, reserved); });
  auto* const start = static_cast<std::byte*>(base);
  std::byte* const aligned = start + (kHugePage - reinterpret_cast<std::uintptr_t>(base) % kHugePage) % kHugePage;
  if (::mmap(aligned, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) == MAP_FAILED) return {};
  ::madvise(aligned, size, MADV_HUGEPAGE);  // what is not in memory yet is read in large folios
  return {owner, {aligned, size}};
}

std::uint64_t parse_huge_mapped(std::string_view smaps, const void* start) {
  const std::string name = fmt::format("\n{:08x}-", reinterpret_cast<std::uintptr_t>(start));
  const auto at = smaps.find(name);
  if (at == std::string_view::npos) return 0;
  const auto end = smaps.find("\nVmFlags:", at);
  return parse_kilobytes(smaps.substr(at + 1, end == std::string_view::npos ? end : end - at), "FilePmdMapped").value_or(0);
}

std::uint64_t huge_mapped_bytes(const AlignedMap& map) {
  return parse_huge_mapped(read_file("/proc/self/smaps", 64 << 20).value_or(""), map.bytes.data());
}

PageMover::PageMover(AlignedMap map, std::vector<int> nodes)
    : map_(std::move(map)),
      nodes_(std::move(nodes)),
      piece_bytes_(std::max(kHugePage, round_up(map_.bytes.size() / kMostPieces))),
      pieces_(map_.bytes.size() / piece_bytes_),  // what is left over stays as it is
      pool_(std::min(usable_processors(), kMovers)) {}

bool PageMover::move_some(std::uint64_t bytes) {
  if (next_ >= pieces_) return false;
  if (pause_ > 0) {
    --pause_;
    return true;
  }
  const std::size_t count = std::min<std::size_t>(std::max<std::size_t>(bytes / piece_bytes_, 1), pieces_ - next_);
  std::atomic<bool> failed{false};
  const TimePoint start = steady_clock().now();
  pool_.parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if (!failed.load(std::memory_order_relaxed) && !move_piece(next_ + static_cast<std::size_t>(i))) failed.store(true);
  });
  next_ = failed.load() ? pieces_ : next_ + count;  // no memory: what is moved is moved, the rest stays mapped
  if (static_cast<double>(count * piece_bytes_) < kWorthwhile * to_seconds(steady_clock().now() - start)) {
    pause_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, kLongPause);
  }
  return next_ < pieces_;
}

bool PageMover::move_piece(std::size_t piece) {
  std::byte* const to = const_cast<std::byte*>(map_.bytes.data()) + piece * piece_bytes_;
  const std::size_t reserved = piece_bytes_ + kHugePage;
  void* const base = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return false;
  auto* const start = static_cast<std::byte*>(base);
  std::byte* const fresh = start + (kHugePage - reinterpret_cast<std::uintptr_t>(base) % kHugePage) % kHugePage;
  ::madvise(fresh, piece_bytes_, MADV_HUGEPAGE);
  if (nodes_.size() > 1) prefer_node({fresh, piece_bytes_}, nodes_[piece % nodes_.size()]);
  std::memcpy(fresh, to, piece_bytes_);
  if (::mremap(fresh, piece_bytes_, piece_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
    // The kernel may have taken the old pages away already: the copy is then the only one.
    void* const again = ::mmap(to, piece_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    WEIR_CHECK(again != MAP_FAILED, "no mapping is left for {} bytes", piece_bytes_);
    std::memcpy(to, fresh, piece_bytes_);
    ::munmap(base, reserved);
    return false;
  }
  // The rest of the reservation, in front and behind.
  if (fresh != start) ::munmap(base, static_cast<std::size_t>(fresh - start));
  if (std::byte* const end = fresh + piece_bytes_; end != start + reserved) ::munmap(end, static_cast<std::size_t>(start + reserved - end));
  return true;
}

}  // namespace weir
