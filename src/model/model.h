// SPDX-License-Identifier: Apache-2.0
// A loaded model and its forward pass: rows of many sequences in, logits of the rows that need them out.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "model/sequence_memory.h"
#include "model/traits.h"
#include "model/weights.h"

namespace weir::model {

class Adapter;

// What a forward pass leaves for its output rows. Encoders have hidden states only, whatever is asked.
enum class Output { kLogits, kHidden };  // kHidden: the states after the final norm

// Rows of a step. Slices cover the rows in order, without gaps. Each block table of a slice reaches its last position; what no row of
// the slice sees of a windowed one may be gone (invalid ids).
struct Batch {
  std::span<const TokenId> tokens;  // one per row, in [0, vocab_size)
  std::span<const kernels::SequenceSlice> slices;
  std::span<const std::int32_t> output_rows;  // rows whose logits (encoders: hidden states) are wanted, ascending
  std::span<const std::int32_t> token_types;  // BERT; empty = 0
  // A slice's own blocks are its table for the memory's group 0; those for the further groups follow one another here, slice by slice.
  std::span<const std::span<const BlockId>> tables = {};
  Output output = Output::kLogits;
  std::span<const Adapter* const> adapters = {};  // one for each slice, null where it takes none; empty: none takes any. adapter.h
};

// What lies in some of a model's weights, each place in its files counted once.
struct WeightTotals {
  std::uint64_t bytes = 0;
  std::map<DType, std::uint64_t> elements = {};  // of the matrices: as many multiply-adds a row takes
};

struct WeightCacheOptions;
struct WeightCacheReport;

class Model {
 public:
  Model(Traits traits, Weights weights, std::shared_ptr<kernels::Backend> backend);
  ~Model();

  // A GGUF file (the first of a split one) or a Hugging Face folder. Every tensor's presence, shape and type is checked
  // here; errors name the tensor or the config key.
  static Result<std::unique_ptr<Model>> load(const std::filesystem::path& path, std::shared_ptr<kernels::Backend> backend);

  const Traits& traits() const { return traits_; }
  const Weights& weights() const { return weights_; }
  kernels::Backend& backend() { return *backend_; }
  const kernels::Backend& backend() const { return *backend_; }

  // Columns of `out` in forward(): the vocabulary's size, or the hidden one.
  std::int64_t output_width(Output output) const {
    return traits_.encoder || output == Output::kHidden ? traits_.hidden : traits_.vocab_size;
  }
  // out = [output_rows, output_width()]. kInvalidArgument for a batch that breaks its contract (token out of range, blocks
  // missing); kUnsupported for logits of a model that was saved without a head. One call at a time.
  // kExhausted when there is no memory for the batch's activations; the memory's own status when it has failed.
  Status forward(const Batch& batch, SequenceMemory& memory, kernels::Matrix out);

  // Called with (layer, hidden states of all rows): layer -1 after the embedding, then after each layer, and `layers` after
  // the final norm. For tests and for finding the first wrong layer.
  using Probe = std::function<void(std::int32_t, kernels::ConstMatrix)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

  // An encoder's pooled output tanh(W·x + b) of [n, hidden] final states (of first tokens). kUnsupported without a pooler.
  Status pool(kernels::ConstMatrix states, kernels::Matrix out);

  // The classification head on [n, hidden] pooled final states: out = [n, labels], raw. kUnsupported without one.
  Status classify(kernels::ConstMatrix states, kernels::Matrix out);

  std::uint64_t weight_bytes() const;         // all weights once: what a decode step reads of a dense model. Embedding
                                              // tables count only when they are the head too: a step reads a row of them
  std::uint64_t active_weight_bytes() const;  // the same with only top_k experts counted
  WeightTotals always_read_weights() const;   // by any row, the head included
  WeightTotals expert_weights() const;        // all experts; a row reads top_k of them

 private:
  friend WeightCacheReport attach_packed_weights(Model& model, const WeightCacheOptions& options);  // weight_cache.h

  Traits traits_;
  Weights weights_;
  std::shared_ptr<kernels::Backend> backend_;
  Probe probe_;
  struct Scratch;  // buffers kept between calls
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace weir::model
