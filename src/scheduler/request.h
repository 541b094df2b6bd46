// SPDX-License-Identifier: Apache-2.0
// What the scheduler must know of a request; texts, sampling and grammars are the engine's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace weir::scheduler {

struct Request {
  std::vector<TokenId> prompt;
  std::int32_t max_tokens = 0;        // generated at most; 0: only the prompt is run
  std::int32_t priority = 0;          // higher goes first
  std::string tenant;                 // whose share it uses
  std::string salt;                   // prefixes are shared among equal salts only: tenant, adapter, …
  Duration ttft_target{};             // until the first token; 0 = none
  Duration tpot_target{};             // between tokens; 0 = none
  std::optional<TimePoint> start_by;  // given up if it still waits then
  bool prompt_logits = false;         // logits of every prompt position: no prefix is taken from the cache
};

}  // namespace weir::scheduler
