// SPDX-License-Identifier: Apache-2.0
// A tensor as it lies in a file: type, shape and bytes, none of them owned. Shapes are outermost first, as in NumPy and
// safetensors (GGUF's ne[] is the other way round); the last dimension is contiguous and a multiple of the block size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "tensor/dtype.h"

namespace weir {

struct TensorView {
  DType type = DType::kF32;
  std::vector<std::int64_t> shape;  // empty for a scalar
  std::span<const std::byte> bytes;

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
  int rank() const { return static_cast<int>(shape.size()); }
  std::int64_t dim(int i) const { return shape[static_cast<std::size_t>(i)]; }
  std::int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  std::int64_t rows() const { return cols() == 0 ? 0 : elements() / cols(); }  // all outer dimensions together
  std::int64_t bytes_per_row() const { return row_bytes(type, cols()); }

  // Rows [begin, begin + count) of the view seen as 2-D: a view of shape [count, cols].
  TensorView row_slice(std::int64_t begin, std::int64_t count) const {
    WEIR_CHECK(begin >= 0 && count >= 0 && begin + count <= rows(), "rows {}+{} of {}", begin, count, rows());
    const auto stride = static_cast<std::size_t>(bytes_per_row());
    return {type, {count, cols()}, bytes.subspan(static_cast<std::size_t>(begin) * stride, static_cast<std::size_t>(count) * stride)};
  }

  // Entry `index` of the outermost dimension: its rank is one less.
  TensorView slice(std::int64_t index) const {
    WEIR_CHECK(rank() >= 1 && index >= 0 && index < shape.front(), "slice {}", index);
    const std::size_t size = bytes.size() / static_cast<std::size_t>(shape.front());
    return {type, {shape.begin() + 1, shape.end()}, bytes.subspan(static_cast<std::size_t>(index) * size, size)};
  }
};

std::string shape_string(std::span<const std::int64_t> shape);  // "[576, 1536]"

}  // namespace weir
