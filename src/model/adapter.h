// SPDX-License-Identifier: Apache-2.0
// A LoRA adapter (Hu et al. 2021, arXiv:2106.09685): small changes to some weights of one loaded model, x·Wᵀ + (x·Aᵀ)·Bᵀ instead of
// x·Wᵀ. It lies beside the model, whose weights stay as they are, and is chosen for each slice of a batch (Batch::adapters), so that one
// step serves sequences with different adapters and with none. Immutable once loaded: loading and unloading touch no running pass, and
// the memory ends with the last holder.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"

namespace weir::formats {
class GgufFile;
}

namespace weir::model {

class Model;
struct Naming;

// The change of one weight.
struct LowRank {
  const kernels::Weight* down = nullptr;  // A, [ranks, in], of all weights that read the same input, one above the other
  std::int64_t first = 0, rank = 0;       // the outputs of `down` that are this weight's
  kernels::Weight up;                     // B · scale, [out, rank]
};

// The change of the token embedding: row `token` of `down`, times `up`.
struct EmbeddingChange {
  kernels::Weight down;  // [vocab_size, rank]
  kernels::Weight up;    // [hidden, rank], scale included
};

struct AdapterParts {
  std::shared_ptr<const Naming> model;  // the model's own: tells models apart
  std::unordered_map<const kernels::Weight*, LowRank> changes = {};
  std::optional<EmbeddingChange> embedding = {};
  std::deque<kernels::Weight> downs = {};
  std::vector<std::shared_ptr<const void>> memory = {};
  std::uint64_t bytes = 0;
  std::int64_t rank = 0;
};

class Adapter {
 public:
  explicit Adapter(AdapterParts parts) : parts_(std::move(parts)) {}
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  // Null when the adapter leaves this weight as it is.
  const LowRank* find(const kernels::Weight* weight) const {
    const auto at = parts_.changes.find(weight);
    return at == parts_.changes.end() ? nullptr : &at->second;
  }
  const EmbeddingChange* embedding() const { return parts_.embedding ? &*parts_.embedding : nullptr; }

  bool made_for(const Model& model) const;
  std::uint64_t bytes() const { return parts_.bytes; }                   // of memory that it holds
  std::int64_t rank() const { return parts_.rank; }                      // the largest of its ranks
  std::size_t changed_weights() const { return parts_.changes.size(); }  // matrices as the model holds them

 private:
  AdapterParts parts_;
};

// A folder as PEFT saves it (adapter_config.json and adapter_model.safetensors, or the path of that file) or a GGUF file as llama.cpp's
// convert_lora_to_gguf.py writes it, for a model in either container. Every tensor must have its place in the model and the shape that
// belongs there; kNotFound, kCorrupt or kUnsupported names the file, the tensor or the key. May run beside a forward pass.
Result<std::shared_ptr<const Adapter>> load_adapter(const std::filesystem::path& path, const Model& model);

// The same from a GGUF file that is open.
Result<std::shared_ptr<const Adapter>> load_adapter(const formats::GgufFile& file, const Model& model);

}  // namespace weir::model
