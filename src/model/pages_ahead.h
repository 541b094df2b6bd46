// SPDX-License-Identifier: Apache-2.0
// The first use of a page costs: the system finds and clears it (2 MiB take from 0.1 to 20 ms, the latter where a virtual machine's host
// has to find it too). What follows the memory in use is therefore touched in idle time, a little at a time and not much of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/huge_memory.h"

namespace weir::model {

class PagesAhead {
 public:
  static constexpr std::uint64_t kPiece = kHugePage;  // of one touch(): what a request that arrives meanwhile waits for

  PagesAhead() = default;
  // Of a mapping that fills from the front; `data` lies at the start of a page. Keeps `ahead` bytes beyond those in use ready.
  PagesAhead(std::byte* data, std::uint64_t bytes, std::uint64_t ahead) : data_(data), bytes_(bytes), ahead_(ahead) {}

  // The first `end` bytes are in use, or were: they have their pages.
  void used_up_to(std::uint64_t end);
  // Makes one piece ready. False when there is nothing to do, or the system does not do it.
  bool touch();

  std::uint64_t ready() const { return ready_; }  // bytes from the front

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0, ahead_ = 0, used_ = 0, ready_ = 0;
};

}  // namespace weir::model
