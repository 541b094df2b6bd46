// SPDX-License-Identifier: Apache-2.0
// One pass over the bytes of one GGUF file: header, metadata, tensor entries, then the checks that need all entries at once.
// Internal to this folder; users open files through GgufFile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/byte_cursor.h"
#include "formats/gguf_reader.h"

namespace weir::formats {

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), cursor_(bytes), what_(what) {}
  Result<GgufFile> parse();

 private:
  struct PendingTensor {
    std::string name;
    DType type = DType::kF32;
    std::vector<std::int64_t> shape;
    std::uint64_t offset = 0, size = 0;
  };

  Status read_header();
  Status read_counts();
  Status read_metadata();
  Status read_entry();
  Status read_alignment();
  Status read_tensor_entries();
  Result<PendingTensor> read_tensor_entry(std::uint64_t index);
  Result<std::vector<std::int64_t>> read_shape(std::string_view tensor);
  Status place_tensors();

  Result<std::string> read_string(std::string_view what);
  Result<GgufType> read_type(std::string_view what);
  Result<bool> read_bool(std::string_view key);
  Result<GgufValue> read_scalar(GgufType type, std::string_view key);
  Result<GgufInnerArray> read_array(std::string_view key, int depth);
  template <class Wide, class Narrow>
  Result<GgufArray> read_numbers(std::size_t count, std::string_view key);
  Result<GgufArray> read_bools(std::size_t count, std::string_view key);
  Result<GgufArray> read_strings(std::size_t count, std::string_view key);
  Result<GgufArray> read_inner_arrays(std::size_t count, std::string_view key, int depth);

  std::unexpected<Error> truncated(std::string_view entry) const;

  std::span<const std::byte> bytes_;
  ByteCursor cursor_;
  std::string what_;
  GgufFile file_;
  std::uint64_t tensor_count_ = 0, entry_count_ = 0;
  std::uint64_t array_elements_ = 0;  // of all arrays so far
  std::vector<PendingTensor> pending_;
};

// "IQ2_XXS" for a type id that ggml knows (or once knew), "" for others.
std::string_view ggml_type_label(std::uint32_t id);

}  // namespace weir::formats
