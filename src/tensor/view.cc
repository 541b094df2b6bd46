// SPDX-License-Identifier: Apache-2.0
#include "tensor/view.h"

namespace weir {

std::string shape_string(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + "]";
}

}  // namespace weir
