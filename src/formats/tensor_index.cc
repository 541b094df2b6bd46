// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_index.h"

#include "formats/tensor_layout.h"

namespace weir::formats {

Status TensorIndex::add(NamedTensor tensor) {
  const auto [position, inserted] = by_name_.try_emplace(tensor.name, tensors_.size());
  if (!inserted) return fail(ErrorCode::kCorrupt, "tensor {} occurs twice", in_quotes(tensor.name));
  tensors_.push_back(std::move(tensor));
  return {};
}

const NamedTensor* TensorIndex::find(std::string_view name) const {
  const auto position = by_name_.find(name);
  return position == by_name_.end() ? nullptr : &tensors_[position->second];
}

}  // namespace weir::formats
