// SPDX-License-Identifier: Apache-2.0
// From the start of a process to the first token that a model chooses in it. Seen from outside: the clock starts before the process
// does, so that loading of the program counts too.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/spread.h"
#include "bench/prompts.h"

namespace weir::bench {

inline constexpr std::int64_t kColdPrompt = 16;  // tokens

// One fresh process: `line` is what it printed when its first token was chosen.
struct ColdRun {
  double seconds = 0;
  json::Object line;
};

// Starts the command `runs` times, one after the other, after one start that is not counted (it fills the page cache). Each must print one
// line of JSON; the time counts until it has arrived. Errors when one ends without it or with another status than 0.
Result<std::vector<ColdRun>> measure_cold_starts(const std::vector<std::string>& command, int runs);

// first_token_s, spread, load_s, resident_bytes, peak_resident_bytes, prompt.
json::Object to_json(const std::vector<ColdRun>& runs);

// What such a process does once its model is loaded: a random prompt, one token. The line to print.
Result<json::Object> take_first_token(engine::LoadedModel& loaded, double load_s, std::uint64_t seed);

}  // namespace weir::bench
