// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: they are refused, or every tensor lies within them.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/safetensors.h"
#include "formats/summary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = weir::formats::SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  volatile std::size_t sink = file->metadata().size();
  std::size_t total = 0;
  for (const auto& tensor : file->index().tensors()) {
    const auto& view = tensor.view;
    WEIR_CHECK(file->tensor(tensor.name) == &tensor);
    WEIR_CHECK(view.bytes.size() == static_cast<std::size_t>(view.rows() * view.bytes_per_row()));
    total += view.bytes.size();
    if (!view.bytes.empty()) sink = sink + static_cast<std::size_t>(view.bytes.front()) + static_cast<std::size_t>(view.bytes.back());
  }
  WEIR_CHECK(total < size && weir::formats::summarize(file->index()).bytes == total);
  return 0;
}
