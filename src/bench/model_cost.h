// SPDX-License-Identifier: Apache-2.0
// The bytes and the multiply-adds that steps of a model need at least. Counted: every matrix product, weights once per step, keys and
// values of the context once per step. Scores and sums of attention are counted apart; norms and the like, and activations, are not.
#pragma once

#include <cstdint>

#include "kernels/limits/roofline.h"
#include "model/model.h"

namespace weir::bench {

struct ModelCost {
  ModelCost(const model::Model& model, DType kv_type, kernels::Activations activations, const kernels::Limits& limits);

  // Bytes of weights that a step of `rows` rows reads. Of experts an estimate: as many as rows would touch if they chose at random.
  double weight_bytes(std::int64_t rows) const;
  // Bytes of keys, values and state that one row at the end of `context` positions reads.
  double context_bytes(double context) const;
  // Operations of the scores and weighted sums of one row that sees `context` positions, over all layers of attention.
  double attention_ops(double context) const;
  // A step of `rows` rows of which `outputs` need logits.
  kernels::Work step(std::int64_t rows, std::int64_t outputs) const;

 private:
  struct Window {
    double positions = 0;  // 0 = the whole context
    double bytes = 0;      // of one position, in a layer that has this window
    double ops = 0;        // of one row with one position
  };
  model::WeightTotals always_, experts_;
  std::map<DType, std::uint64_t> head_;
  double chosen_ = 1;  // share of the experts that one row uses
  double state_bytes_ = 0;
  std::vector<Window> windows_;
  std::map<DType, kernels::Arithmetic> arithmetic_;
};

}  // namespace weir::bench
