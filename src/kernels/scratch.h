// SPDX-License-Identifier: Apache-2.0
// Memory for the length of one operation: taken by bumping a pointer, all given back at once by reset(). After the first
// few steps of a model nothing is allocated any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/huge_memory.h"

namespace weir::kernels {

class Scratch {
 public:
  template <class T>
  T* take(std::int64_t count) {
    return static_cast<T*>(take_bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }

  void reset() {
    if (chunks_.size() > 1) {  // next time one chunk holds it all
      chunks_.clear();
      add_chunk(total_);
    }
    used_ = 0;
  }

 private:
  static constexpr std::size_t kAlign = 64;

  void* take_bytes(std::size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    if (chunks_.empty() || used_ + bytes > last_size_) {
      add_chunk(bytes > kSmallest ? bytes : kSmallest);
      total_ += last_size_;
      used_ = 0;
    }
    std::byte* at = base_ + used_;
    used_ += bytes;
    return at;
  }

  void add_chunk(std::size_t bytes) {
    chunks_.push_back(allocate_working_memory(bytes, kAlign));
    base_ = chunks_.back().get();
    last_size_ = bytes;
  }

  static constexpr std::size_t kSmallest = 64u << 10;
  std::vector<std::shared_ptr<std::byte>> chunks_;
  std::byte* base_ = nullptr;
  std::size_t last_size_ = 0, used_ = 0, total_ = 0;
};

}  // namespace weir::kernels
