// SPDX-License-Identifier: Apache-2.0
// The tensors of a model by name, whatever container they came in: GGUF (perhaps split) or safetensors (perhaps sharded).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/view.h"

namespace weir::formats {

struct NamedTensor {
  std::string name;
  TensorView view;  // points into one of the files, aligned to the size of its elements (blocks: to that of the file format)
  int file = 0;     // index into TensorIndex::files()
};

class TensorIndex {
 public:
  // kCorrupt when the name is taken.
  Status add(NamedTensor tensor);
  void add_file(std::shared_ptr<const MappedFile> file) { files_.push_back(std::move(file)); }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }  // in file order
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }
  const NamedTensor* find(std::string_view name) const;  // nullptr when absent

 private:
  // Looks names up without making a string of them.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  std::vector<NamedTensor> tensors_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_name_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

}  // namespace weir::formats
