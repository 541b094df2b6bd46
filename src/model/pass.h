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

struct Pass {
  kernels::Backend& backend;
  const Traits& traits;
  SequenceMemory& memory;
  std::span<const kernels::SequenceSlice> slices;
  std::span<const ConstMatrix> ropes;  // a table of cosines and sines for each of Traits::ropes
  Arena& arena;
  std::int64_t rows = 0;

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

inline LinearJob job(ConstMatrix x, const Linear& linear, Matrix out, bool accumulate = false) {
  return {x, &*linear.weight, data_or_null(linear.bias), out, accumulate};
}

inline void linear(const Pass& pass, ConstMatrix x, const Linear& linear, Matrix out, bool accumulate = false) {
  const LinearJob one = job(x, linear, out, accumulate);
  pass.backend.linear({&one, 1});
}

// Normalises groups of `group` columns (0: the whole row); the weight is one for all groups when it has that many entries.
inline void norm(const Pass& pass, const NormWeights& weights, NormKind kind, std::int64_t group, ConstMatrix x, Matrix out) {
  kernels::NormParams params;
  params.kind = kind;
  params.epsilon = pass.traits.norm_epsilon;
  params.group = group;
  params.weight = data_or_null(weights.weight);
  params.bias = data_or_null(weights.bias);
  params.shared = weights.weight.empty() || static_cast<std::int64_t>(weights.weight.size()) == (group == 0 ? x.cols : group);
  pass.backend.norm(x, params, out);
}

}  // namespace weir::model
