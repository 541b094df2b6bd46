// SPDX-License-Identifier: Apache-2.0
// A whole run as text and as JSON: its summary, what else was seen, what bounds it, and how it is judged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loadgen/bottleneck.h"
#include "loadgen/profile.h"
#include "loadgen/scenario.h"

namespace weir::loadgen {

struct Judging {
  Slo slo;
  std::optional<Profile> profile;
  std::vector<Requirement> requirements;
};

Verdict verdict_of(const Measured& run, const Judging& judging);
std::string run_text(const Measured& run, const Judging& judging);
// Schema weir.bench.load/1: docs/bench-json.md.
json::Object run_json(const Measured& run, const Judging& judging);

}  // namespace weir::loadgen
