// SPDX-License-Identifier: Apache-2.0
// What a Model keeps between calls, so that a steady state allocates nothing.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/page_mover.h"
#include "model/arena.h"
#include "model/model.h"

namespace weir::model {

struct Model::Scratch {
  Arena arena;
  std::vector<kernels::ConstMatrix> ropes;
  std::vector<bool> state_used;
  std::vector<kernels::SequenceSlice> further_slices;
  std::unique_ptr<PageMover> mover;  // of packed weights that are mapped still
  std::int64_t passes = 0;

  // Pass::further_slices of a batch that was checked.
  void fill_further_slices(const Batch& batch) {
    further_slices.clear();
    const std::size_t slices = batch.slices.size(), further = slices == 0 ? 0 : batch.tables.size() / slices;
    for (std::size_t g = 0; g < further; ++g) {
      for (std::size_t i = 0; i < slices; ++i) {
        further_slices.push_back(batch.slices[i]);
        further_slices.back().blocks = batch.tables[i * further + g];
      }
    }
  }

  // Before a pass of `rows` rows, which nothing else that reads weights overlaps. A short prompt's first pass is left alone: somebody
  // waits.
  void move_weights(std::int64_t rows) {
    constexpr std::int64_t kLongPrompt = 128;
    constexpr std::uint64_t kBytes = 32 << 20, kRows = 4;  // a few milliseconds a step; longer steps can afford more
    if (passes++ == 0 && rows < kLongPrompt) return;
    if (!mover->move_some(kBytes * std::max<std::uint64_t>(static_cast<std::uint64_t>(rows) / kRows, 1))) mover.reset();
  }
};

}  // namespace weir::model
