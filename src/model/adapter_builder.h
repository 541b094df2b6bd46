// SPDX-License-Identifier: Apache-2.0
// Puts the parts of an adapter together: matrices that read the same input are stacked, factors are multiplied in, and all is brought
// into the order in which the backend reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/huge_memory.h"
#include "base/result.h"
#include "model/adapter.h"

namespace weir::model {

// Row-major floats.
struct Floats {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> values;
  float at(std::int64_t r, std::int64_t c) const { return values[static_cast<std::size_t>(r * cols + c)]; }
  float& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * cols + c)]; }
};

class AdapterBuilder {
 public:
  AdapterBuilder(const kernels::Backend& backend, std::shared_ptr<const Naming> model);

  // A group holds what reads the same input: `down` gives rows [first, first + rows) of the group, from which `up` makes the weight's
  // change.
  std::int64_t add_down(const Floats& down);  // → first
  Status add_up(const kernels::Weight* weight, std::int64_t first, Floats up);
  Status end_group();

  Status set_embedding(const Floats& down, const Floats& up);  // [vocab_size, rank], [hidden, rank]
  AdapterParts take() { return std::move(parts_); }

 private:
  struct Up {
    const kernels::Weight* weight;
    std::int64_t first;
    Floats matrix;
  };
  Result<kernels::Weight> store(const Floats& matrix, bool packed);
  Result<std::span<std::byte>> allocate(std::size_t bytes);

  const kernels::Backend& backend_;
  AdapterParts parts_;
  Floats group_;
  std::vector<Up> ups_;
  std::span<std::byte> free_;  // of the last piece of memory
};

}  // namespace weir::model
