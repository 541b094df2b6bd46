// SPDX-License-Identifier: Apache-2.0
// What the null server tells at /metrics: its own counts, under the names that `weir serve` has for them (docs/metrics.md).
#pragma once

#include <cstdint>
#include <string>

namespace weir::loadgen {

struct NullCounts {
  std::uint64_t ok = 0, failed = 0, cancelled = 0;  // requests that ended
  std::uint64_t prompt_tokens = 0;                  // of requests that began
  std::uint64_t generated_tokens = 0;               // sent
  std::uint64_t running = 0, waiting = 0;           // now
};

// The whole response. `model` has no quotes, backslashes or control characters.
std::string null_metrics_answer(const NullCounts& counts, const std::string& model);

}  // namespace weir::loadgen
