// SPDX-License-Identifier: Apache-2.0
// The same figures as engine_speed.h, but through the whole engine: requests are submitted, scheduled, batched continuously and read
// back as events. Prompts are taken in first, without answers, and are timed so; then the same requests answer from the prefix cache,
// and what is timed is from the moment when all of them stream to the moment when the first has all its tokens.
#pragma once

#include "bench/engine_speed.h"

namespace weir::bench {

Result<EngineCase> measure_service(engine::LoadedModel& loaded, const EngineSpeedOptions& options, std::int32_t batch,
                                   const kernels::Limits& limits, const KeepGoing& keep_going, const Clock& clock = steady_clock());

}  // namespace weir::bench
