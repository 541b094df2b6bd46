// SPDX-License-Identifier: Apache-2.0
// Activations: f32, row-major, rows apart by `stride` floats, so that a slice of columns is a Matrix too. Not owned.
#pragma once

#include <cstdint>
#include <span>

#include "base/check.h"

namespace weir::kernels {

template <class Float>
struct BasicMatrix {
  Float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  BasicMatrix() = default;
  BasicMatrix(Float* d, std::int64_t r, std::int64_t c) : data(d), rows(r), cols(c), stride(c) {}
  BasicMatrix(Float* d, std::int64_t r, std::int64_t c, std::int64_t s) : data(d), rows(r), cols(c), stride(s) {}
  operator BasicMatrix<const Float>() const { return {data, rows, cols, stride}; }  // NOLINT

  Float* row(std::int64_t r) const { return data + r * stride; }
  std::span<Float> row_span(std::int64_t r) const { return {row(r), static_cast<std::size_t>(cols)}; }
  BasicMatrix row_range(std::int64_t begin, std::int64_t count) const {
    WEIR_CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    return {data + begin * stride, count, cols, stride};
  }
  BasicMatrix col_range(std::int64_t begin, std::int64_t count) const {
    WEIR_CHECK(begin >= 0 && count >= 0 && begin + count <= cols);
    return {data + begin, rows, count, stride};
  }
};

using Matrix = BasicMatrix<float>;
using ConstMatrix = BasicMatrix<const float>;

}  // namespace weir::kernels
