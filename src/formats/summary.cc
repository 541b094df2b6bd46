// SPDX-License-Identifier: Apache-2.0
#include "formats/summary.h"

#include <algorithm>
#include <array>

namespace weir::formats {

TensorSummary summarize(const TensorIndex& index) {
  std::array<TypeTotal, kDTypeCount> totals{};
  TensorSummary summary;
  for (const NamedTensor& tensor : index.tensors()) {
    TypeTotal& total = totals[static_cast<std::size_t>(tensor.view.type)];
    total.type = tensor.view.type;
    ++total.tensors;
    total.elements += tensor.view.elements();
    total.bytes += tensor.view.bytes.size();
  }
  for (const TypeTotal& total : totals) {
    if (total.tensors == 0) continue;
    summary.by_type.push_back(total);
    summary.tensors += total.tensors;
    summary.parameters += total.elements;
    summary.bytes += total.bytes;
  }
  std::sort(summary.by_type.begin(), summary.by_type.end(),
            [](const TypeTotal& a, const TypeTotal& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.type < b.type; });
  return summary;
}

}  // namespace weir::formats
