// SPDX-License-Identifier: Apache-2.0
// Whole sequences through a model, once: for vectors and classes, where nothing is generated and nothing kept. Many short sequences
// share a forward pass, a long one of a causal model takes several; neither changes a bit of a result (design invariant 1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kernels/matrix.h"
#include "model/model.h"

namespace weir::engine {

struct SequenceInput {
  std::span<const TokenId> ids;
  std::span<const std::int32_t> types = {};  // BERT's token types, as many as ids, or none
};

class SequencePass {
 public:
  enum class Rows { kFirst, kLast, kAll };  // of each sequence
  // Called in the order of the inputs, for kAll perhaps several times each, with the rows from position `first` on.
  using Sink = std::function<Status(std::size_t input, std::int64_t first, kernels::ConstMatrix rows)>;

  // `model` must outlive it and is used during run() alone. `max_rows`: of one forward pass; a sequence of an encoder that is
  // longer runs alone.
  explicit SequencePass(model::Model& model, std::int32_t max_rows = 1024);

  // kInvalidArgument naming the input that is empty or has ids out of range; the sink's own errors. Memory for a sequence
  // longer than max_rows is given back at the end.
  Status run(std::span<const SequenceInput> inputs, Rows rows, model::Output output, const Sink& sink);

 private:
  Status check(std::span<const SequenceInput> inputs) const;
  std::size_t group_end(std::span<const SequenceInput> inputs, std::size_t begin, Rows rows, std::int64_t width) const;
  Status reserve(std::int64_t blocks);
  Status run_group(std::span<const SequenceInput> inputs, std::size_t begin, std::size_t end, Rows rows, model::Output output,
                   const Sink& sink);
  Status run_long(const SequenceInput& input, std::size_t index, Rows rows, model::Output output, const Sink& sink);
  Status step(std::span<const kernels::SequenceSlice> slices, std::span<const TokenId> ids, std::span<const std::int32_t> types,
              model::Output output);

  model::Model* model_;
  std::int32_t max_rows_;
  std::unique_ptr<model::SequenceMemory> memory_;
  std::vector<BlockId> blocks_;
  std::vector<TokenId> ids_;
  std::vector<std::int32_t> types_, output_rows_;
  std::vector<kernels::SequenceSlice> slices_;
  std::vector<float> output_;
  kernels::Matrix out_;
};

}  // namespace weir::engine
