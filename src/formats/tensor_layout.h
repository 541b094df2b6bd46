// SPDX-License-Identifier: Apache-2.0
// Checks that every container needs: how many bytes a tensor of this type and shape takes, whether the pieces of a file
// overlap, and how a name from outside is shown in an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace weir::formats {

// The name in quotes, control characters escaped, cut when very long: names in errors come from the file.
std::string in_quotes(std::string_view name);

// Bytes of a tensor; kCorrupt when a dimension is negative, the last one is not a multiple of the block size, or the product
// overflows. The message does not name the tensor.
Result<std::uint64_t> tensor_bytes(DType type, std::span<const std::int64_t> shape);

struct Region {
  std::uint64_t begin = 0, end = 0;
  std::size_t entry = 0;  // which tensor it belongs to
};

// Sorts by position. The first two entries that share a byte, or nothing; empty regions share none.
struct Overlap {
  bool found = false;
  std::size_t first = 0, second = 0;
};
Overlap find_overlap(std::vector<Region>& regions);

}  // namespace weir::formats
