// SPDX-License-Identifier: Apache-2.0
// What the layers of one forward pass share: the backend, the batch's slices, the rope tables and the scratch memory.
// A layer function reads its input, leaves its result in a Target, and keeps nothing.
#pragma once

#include <span>

#include "kernels/backend.h"
#include "model/arena.h"
#include "model/sequence_memory.h"
#include "model/traits.h"
#include "model/weights.h"

namespace weir::model {

using kernels::ConstMatrix;
using kernels::LinearJob;
using kernels::Matrix;

class Adapter;

// Consecutive rows that take the same adapter.
struct AdaptedRows {
  const Adapter* adapter = nullptr;
  std::int64_t begin = 0, count = 0;
};

struct Pass {
  kernels::Backend& backend;
  const Traits& traits;
  SequenceMemory& memory;
  std::span<const kernels::SequenceSlice> slices;
  std::span<const ConstMatrix> ropes;  // a table of cosines and sines for each of Traits::ropes
  Arena& arena;
  std::int64_t rows = 0;
  std::int64_t prompt_rows = 0;                                 // the last so many rows are positions of prompts
  std::span<const AdaptedRows> adapted = {};                    // rows that take an adapter
  std::span<const kernels::SequenceSlice> further_slices = {};  // the slices with the tables of groups 1, 2, …, group by group

  // The slices with the block tables of a layer's group.
  std::span<const kernels::SequenceSlice> kv_slices(std::int32_t layer) const {
    const auto group = static_cast<std::size_t>(memory.group_of(layer));
    return group == 0 ? slices : further_slices.subspan((group - 1) * slices.size(), slices.size());
  }

  Matrix matrix(std::int64_t cols) const { return arena.matrix(rows, cols); }
};

struct Layer {
  std::int32_t index = 0;
  const LayerTraits& traits;
  const LayerWeights& weights;
};

// Where a layer leaves its result: overwriting, or added to what is there (the residual stream).
struct Target {
  Matrix out;
  bool accumulate = false;
};

inline const float* data_or_null(const Vector& v) { return v.empty() ? nullptr : v.data(); }

// What a product reads: rows as they are, or with one step before (kept in the pass's arena).
struct Input {
  Input(ConstMatrix m) : x(m) {}  // NOLINT(google-explicit-constructor)
  Input(Matrix m) : x(m) {}       // NOLINT(google-explicit-constructor)
  Input(ConstMatrix m, const kernels::InputStep* s) : x(m), step(s) {}
  ConstMatrix x;
  const kernels::InputStep* step = nullptr;
};

inline LinearJob job(Input input, const Linear& linear, Matrix out, bool accumulate = false) {
  return {input.x, &*linear.weight, data_or_null(linear.bias), out, accumulate, input.step};
}

// Products of all rows, each in the arithmetic of its phase, with what the rows' adapters add (layers/adapted_products.cc). Jobs that share
// their input stand next to one another.
void linear(const Pass& pass, std::span<const LinearJob> jobs, std::span<const AdaptedRows> adapted);
inline void linear(const Pass& pass, std::span<const LinearJob> jobs) { linear(pass, jobs, pass.adapted); }
inline void linear(const Pass& pass, Input x, const Linear& weights, Matrix out, bool accumulate = false) {
  const LinearJob one = job(x, weights, out, accumulate);
  linear(pass, {&one, 1});
}

// The same for jobs that each see some rows of the batch and know how many of them are prompts': which rows of which job take an adapter.
struct AdaptedPart {
  std::size_t job = 0;
  AdaptedRows rows;
};
void linear_parts(const Pass& pass, std::span<const LinearJob> jobs, std::span<const AdaptedPart> parts);

// Groups of `group` of `cols` columns (0: the whole row); the weight is one for all groups when it has that many entries.
inline kernels::NormParams norm_params(const Pass& pass, const NormWeights& weights, NormKind kind, std::int64_t group, std::int64_t cols) {
  kernels::NormParams params;
  params.kind = kind;
  params.epsilon = pass.traits.norm_epsilon;
  params.group = group;
  params.weight = data_or_null(weights.weight);
  params.bias = data_or_null(weights.bias);
  params.shared = weights.weight.empty() || static_cast<std::int64_t>(weights.weight.size()) == (group == 0 ? cols : group);
  return params;
}

inline void norm(const Pass& pass, const NormWeights& weights, NormKind kind, std::int64_t group, ConstMatrix x, Matrix out) {
  pass.backend.norm(x, norm_params(pass, weights, kind, group, x.cols), out);
}

}  // namespace weir::model
