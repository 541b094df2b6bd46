// SPDX-License-Identifier: Apache-2.0
// The tensors of a file while a model is put together: each is taken by name with the shape that it must have, and what
// nobody took is known at the end, so that a weight that would change the result is never dropped in silence.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "formats/tensor_index.h"
#include "model/weights.h"

namespace weir::model {

using Shape = std::vector<std::int64_t>;

// The values of a small tensor (F32, F16 or BF16) as floats, whatever its shape. kUnsupported for other types.
Result<Vector> to_floats(const TensorView& view, std::string_view name);

class TensorSource {
 public:
  explicit TensorSource(const formats::TensorIndex& index) : index_(index) {}

  bool has(std::string_view name) const { return index_.find(name) != nullptr; }
  const TensorView* peek(std::string_view name) const;
  const formats::TensorIndex& index() const { return index_; }

  // The tensor under this name, of exactly this shape and of a type that a linear layer can use. Dimensions of size 1 in
  // excess are dropped. kCorrupt naming the tensor and both shapes; kUnsupported naming the type.
  Result<TensorView> matrix(const std::string& name, const Shape& shape);
  // Any type, for containers of raw blocks.
  Result<TensorView> raw(const std::string& name, const Shape& shape);
  // As floats; the shape counts by its number of elements.
  Result<Vector> vector(const std::string& name, std::int64_t count);

  void ignore(std::string_view name) { taken_.emplace(name); }
  // Names of tensors that nobody took and that `ignorable` does not accept, at most `limit` of them.
  template <class Predicate>
  std::vector<std::string> untaken(Predicate ignorable, std::size_t limit) const {
    std::vector<std::string> names;
    for (const formats::NamedTensor& tensor : index_.tensors())
      if (names.size() < limit && !taken_.contains(tensor.name) && !ignorable(std::string_view(tensor.name))) names.push_back(tensor.name);
    return names;
  }
  // Tells the kernel that the pages of a tensor that was copied are no longer needed.
  void release(std::string_view name) const;

 private:
  Result<const formats::NamedTensor*> take(const std::string& name);

  const formats::TensorIndex& index_;
  std::unordered_set<std::string> taken_;
};

}  // namespace weir::model
