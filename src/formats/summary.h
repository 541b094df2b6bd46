// SPDX-License-Identifier: Apache-2.0
// What a model's tensors add up to, for people and for reports.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/tensor_index.h"

namespace weir::formats {

struct TypeTotal {
  DType type = DType::kF32;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
};

struct TensorSummary {
  std::vector<TypeTotal> by_type;  // most bytes first
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;  // elements of all tensors; packed bytes (MXFP4 in safetensors) count as one each
  std::uint64_t bytes = 0;
};

TensorSummary summarize(const TensorIndex& index);

}  // namespace weir::formats
