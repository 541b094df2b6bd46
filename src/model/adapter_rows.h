// SPDX-License-Identifier: Apache-2.0
// Which rows of a batch take which adapter. Slices are put in another order, so that the rows of an adapter lie next to one another and
// each adapter's weights are read once a step; results depend on no row's place.
#pragma once

#include <cstdint>
#include <span>

#include "model/arena.h"
#include "model/model.h"
#include "model/pass.h"

namespace weir::model {

struct AdaptedBatch {
  Batch batch;
  std::span<const AdaptedRows> rows = {};     // those that take an adapter, ascending
  std::span<const AdaptedRows> outputs = {};  // the same of the output rows (positions in Batch::output_rows)
  std::span<const std::int32_t> origin = {};  // the row that each one was in the given batch; empty when all stayed
};

// The batch has passed check_batch(). What is new lies in the arena. The order of output rows stays.
AdaptedBatch group_by_adapter(const Batch& batch, Arena& arena);

}  // namespace weir::model
