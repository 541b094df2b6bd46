// SPDX-License-Identifier: Apache-2.0
// Speed of a loaded model, without a server: `batch` sequences of random prompts are prefilled, then take `generate` steps together.
// Every figure is the median of several runs, with its spread, and stands beside the bytes it moved and its share of the machine's limit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/spread.h"
#include "engine/loaded_model.h"
#include "kernels/limits/roofline.h"

namespace weir::bench {

struct EngineSpeedOptions {
  std::int64_t prompt = 512, generate = 64;
  std::int64_t depth = 0;  // tokens that are in each sequence before the prompt; taking them in is not timed
  std::vector<std::int32_t> batches = {1, 8, 16, 32};
  int runs = 3;
  std::int32_t chunk = 512;  // rows of a prefill step, from one sequence or several
  DType kv_type = DType::kF32;
  kernels::Activations activations = kernels::Activations::kInt8;  // what the model was loaded with; for the share of the limit
  std::uint64_t seed = 1;
};

struct EngineRun {
  double prefill_s = 0;  // forward passes of the prompts and the choice of the first tokens
  double decode_s = 0;   // all steps after it, choices included
  double slowest_step_s = 0;
};

struct EngineCase {
  std::int32_t batch = 1;
  std::int64_t prompt = 0, generate = 0, depth = 0;
  std::vector<EngineRun> runs = {};
  double weight_bytes = 0, kv_bytes = 0;            // read in a decode step, on average (model_cost.h)
  kernels::Work prefill_work = {}, step_work = {};  // of all prompts; of one decode step

  std::int64_t prefilled_tokens() const { return batch * prompt; }
  std::int64_t decoded_tokens() const { return batch * generate; }
  Spread prefill_tokens_per_s() const;
  Spread decode_tokens_per_s() const;  // in total over the batch
};

// The longest sequence that the options ask for.
std::int64_t tokens_per_sequence(const EngineSpeedOptions& options);

// Refuses sizes that are no sizes, a context longer than the model's, and more memory than is free. Called before anything is measured.
Status check_options(const engine::LoadedModel& loaded, const EngineSpeedOptions& options);

// Asked between steps; false cancels.
using KeepGoing = std::function<bool()>;

// One batch size: a warm-up, then the runs. `limits` says which arithmetic the model's products could use.
Result<EngineCase> measure_engine(engine::LoadedModel& loaded, const EngineSpeedOptions& options, std::int32_t batch,
                                  const kernels::Limits& limits, const KeepGoing& keep_going, const Clock& clock = steady_clock());

// Fills in the bytes and multiply-adds of a case whose sizes are known.
void count_work(EngineCase& result, const engine::LoadedModel& loaded, const EngineSpeedOptions& options, const kernels::Limits& limits);

// The figures of a case as JSON: batch, prompt, generate, prefill_tokens_per_s, decode_tokens_per_s, spread, bytes, share_of_limit, …
json::Object to_json(const EngineCase& result, const kernels::Limits& limits);

}  // namespace weir::bench
