// SPDX-License-Identifier: Apache-2.0
// The order of a batch's rows, and which of them take which adapter. Rows of prompts come last, since they may be multiplied in another
// way than others; within a phase the rows of an adapter lie next to one another, so that its weights are read once for them. Results
// depend on no row's place.
#pragma once

#include <cstdint>
#include <span>

#include "model/arena.h"
#include "model/model.h"
#include "model/pass.h"

namespace weir::model {

struct OrderedBatch {
  Batch batch;
  std::int64_t prompt_rows = 0;               // the last so many
  std::span<const AdaptedRows> rows = {};     // those that take an adapter, ascending
  std::span<const AdaptedRows> outputs = {};  // the same of the output rows (positions in Batch::output_rows)
  std::span<const std::int32_t> origin = {};  // the row that each one was in the given batch; empty when all stayed
};

// The batch has passed check_batch(). What is new lies in the arena. The order of output rows stays.
OrderedBatch order_rows(const Batch& batch, Arena& arena);

}  // namespace weir::model
