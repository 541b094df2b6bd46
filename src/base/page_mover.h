// SPDX-License-Identifier: Apache-2.0
// Exchanges the pages of a mapped file for private ones of 2 MiB, a piece at a time and at the same addresses: a start need not
// wait for a copy, and no pointer changes. Each piece is copied to a new large page, which then takes the place of the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

namespace weir {

// A file's bytes from `offset` (a multiple of 4096, of 2 MiB for large entries) on, at a border of 2 MiB, in a reservation of whole large
// pages; ends with its last holder. Empty when the file cannot be mapped.
struct AlignedMap {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};
AlignedMap map_aligned(int fd, std::uint64_t offset, std::size_t size);

// How many of its bytes the kernel maps with large entries already: file systems with large folios need no PageMover.
std::uint64_t huge_mapped_bytes(const AlignedMap& map);
std::uint64_t parse_huge_mapped(std::string_view smaps, const void* start);

class PageMover {
 public:
  // `bytes` as map_aligned() gave them. Pages come from the nodes in turn, when there are several.
  PageMover(AlignedMap map, std::vector<int> nodes);

  // Moves about as many bytes more. Nobody may read the map meanwhile. Where pages are hard to get (memory in small pieces) it
  // pauses for ever more calls. False when nothing is left to do.
  bool move_some(std::uint64_t bytes);

 private:
  bool move_piece(std::size_t piece);

  const AlignedMap map_;
  const std::vector<int> nodes_;
  const std::size_t piece_bytes_, pieces_;
  std::size_t next_ = 0;
  int pause_ = 0, next_pause_ = 16;
  ThreadPool pool_;
};

}  // namespace weir
