// SPDX-License-Identifier: Apache-2.0
// A step's plan carried out: memory operations first, then all rows as one batch through the model. The step loop knows only this
// interface, so that its tests run without a model.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/step_cost.h"
#include "kernels/matrix.h"
#include "scheduler/step_plan.h"

namespace weir::model {
class Adapter;
}

namespace weir::engine {

// What the plan does not say of a row, by the row's number.
struct RowContext {
  std::int32_t rope_length = 0;             // as in kernels::SequenceSlice
  const model::Adapter* adapter = nullptr;  // null: none
};

class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  virtual std::int32_t vocabulary() const = 0;
  // Work between steps that may be shared among threads, as kernels::Backend::for_each.
  virtual void for_each(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
  // The logits that rows want, in the order of the rows: [sum of Row::logits, vocabulary], valid until the next call. After an error
  // nothing that the rows wrote may be relied on.
  virtual Result<kernels::ConstMatrix> run(const scheduler::StepPlan& plan, std::span<const RowContext> contexts) = 0;
  // For times when nothing runs: gets a little ready for what may come, a few milliseconds at most. False when all is.
  virtual bool prepare() { return false; }
  // Before the first step, and when nothing came for a while: does a part of what the first request would find slow. False when that is
  // done, or not worth the time that a request may have to wait for it.
  virtual bool warm_up() { return false; }
  // What the last run took, by kind of operation; null when nobody measures.
  virtual const StepBreakdown* breakdown() const { return nullptr; }
};

}  // namespace weir::engine
