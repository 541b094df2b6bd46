// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file: they are refused, or everything in them can be read, and written and read again with the same result.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/summary.h"

namespace {

using namespace weir;
using namespace weir::formats;

void touch_metadata(const GgufFile& file, volatile std::size_t& sink) {
  for (const GgufEntry& entry : file.metadata()) {
    sink = sink + file.get_int(entry.key).has_value() + file.get_double(entry.key).has_value() + file.get_bool(entry.key).has_value();
    if (const auto text = file.get_string(entry.key)) sink = sink + text->size();
    if (const auto* strings = file.get_strings(entry.key)) sink = sink + strings->size();
    if (const auto ints = file.get_ints(entry.key)) sink = sink + ints->size();
    if (const auto doubles = file.get_doubles(entry.key)) sink = sink + doubles->size();
  }
}

void touch_tensors(const TensorIndex& index, volatile std::size_t& sink) {
  for (const NamedTensor& tensor : index.tensors()) {
    WEIR_CHECK(index.find(tensor.name) == &tensor);
    WEIR_CHECK(tensor.view.bytes.size() == static_cast<std::size_t>(tensor.view.rows() * tensor.view.bytes_per_row()));
    sink = sink + static_cast<std::size_t>(tensor.view.bytes.front()) + static_cast<std::size_t>(tensor.view.bytes.back());
  }
  sink = sink + summarize(index).bytes;
}

void write_again(const GgufFile& file) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata()) WEIR_CHECK(writer.add(entry), "entry");
  for (const NamedTensor& tensor : file.index().tensors()) WEIR_CHECK(writer.add(tensor), "tensor");
  const auto first = writer.to_bytes();
  WEIR_CHECK(first, "writing");
  const auto again = GgufFile::parse(std::as_bytes(std::span(*first)), "written");
  WEIR_CHECK(again, "{}", again.error().message);
  WEIR_CHECK(again->metadata().size() == file.metadata().size() && again->index().tensors().size() == file.index().tensors().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  volatile std::size_t sink = 0;
  touch_metadata(*file, sink);
  touch_tensors(file->index(), sink);
  write_again(*file);
  return 0;
}
