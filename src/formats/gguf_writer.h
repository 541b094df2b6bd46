// SPDX-License-Identifier: Apache-2.0
// Writes GGUF version 3. Metadata and tensor shapes are declared first; then each tensor hands over its bytes in pieces, so that
// a model larger than memory can be written. Files appear under their name only when complete. What GgufFile read, written
// again, has the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "formats/gguf_value.h"
#include "formats/tensor_index.h"

namespace weir::formats {

// Takes the next bytes of a tensor.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

struct GgufTensorSource {
  std::string name;
  DType type = DType::kF32;
  std::vector<std::int64_t> shape;                  // outermost first
  std::function<Status(const ByteSink&)> write_to;  // hands over the tensor's bytes, all of them, in order
};

class GgufWriter {
 public:
  // kInvalidArgument for a repeated or empty key, or a value that its type cannot hold. "general.alignment" sets the alignment
  // of tensors (a power of two from 8, 32 when absent).
  Status add(GgufEntry entry);
  // kInvalidArgument for a repeated or empty name, a rank outside 1..4, a zero dimension, a type that GGUF lacks, or rows that
  // are no multiple of the block size.
  Status add(GgufTensorSource tensor);
  // A tensor that lies in memory or in a mapped file, which must outlive the writer.
  Status add(const NamedTensor& tensor);

  Status write(const std::filesystem::path& path) const;
  Result<std::string> to_bytes() const;

  // Writes PREFIX-00001-of-0000N.gguf …, each with tensors of at most `max_part_bytes` (more where one tensor alone is larger).
  // The first part has all the metadata. Returns the paths.
  Result<std::vector<std::filesystem::path>> write_split(const std::filesystem::path& prefix, std::uint64_t max_part_bytes) const;

 private:
  struct Tensor {
    GgufTensorSource source;
    std::uint64_t bytes = 0;
  };
  Status write_part(std::span<const GgufEntry> metadata, std::span<const Tensor> tensors, const ByteSink& out) const;
  Result<std::string> header_of(std::span<const GgufEntry> metadata, std::span<const Tensor> tensors) const;

  std::vector<GgufEntry> metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_set<std::string> keys_, names_;
  std::uint64_t alignment_ = 32;
};

}  // namespace weir::formats
