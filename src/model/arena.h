// SPDX-License-Identifier: Apache-2.0
// Scratch memory of a forward pass: a stack of buffers, given back in scopes. The first pass of a size takes what it lacks
// from the heap; reset() then grows the one block to that peak, so that a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/huge_memory.h"
#include "kernels/matrix.h"

namespace weir::model {

class Arena {
 public:
  // Buffers taken while a scope lives are given back when it ends.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), used_(arena.used_), overflows_(arena.overflows_.size()) {}
    ~Scope() {
      arena_.used_ = used_;
      arena_.overflows_.erase(arena_.overflows_.begin() + static_cast<std::ptrdiff_t>(overflows_), arena_.overflows_.end());
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t used_, overflows_;
  };

  // Uninitialised, rows next to one another, 64-byte aligned.
  kernels::Matrix matrix(std::int64_t rows, std::int64_t cols) {
    return {reinterpret_cast<float*>(take(static_cast<std::size_t>(rows * cols) * sizeof(float))), rows, cols};
  }

  // `count` objects with their default values; T needs no destructor.
  template <class T>
  std::span<T> array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = reinterpret_cast<T*>(take(count * sizeof(T)));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }

  // Forgets all buffers; no scope may be alive.
  void reset();

 private:
  static constexpr std::align_val_t kAlignment{64};
  using Block = std::shared_ptr<std::byte>;
  static Block allocate(std::size_t bytes) { return allocate_working_memory(bytes, static_cast<std::size_t>(kAlignment)); }

  std::byte* take(std::size_t bytes);

  Block block_;
  std::vector<Block> overflows_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;  // as if all buffers lay in the one block
  std::size_t peak_ = 0;
};

}  // namespace weir::model
