// SPDX-License-Identifier: Apache-2.0
// Deployment profiles: the load that a setting is judged by, and what it cares about. A profile is two tables, defaults for options and
// criteria with bounds; a user's own options and bounds go before both.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loadgen/metrics.h"

namespace weir::loadgen {

enum class Profile { kHyperscale, kOnPrem, kEdge, kEmbedded };
std::optional<Profile> profile_named(std::string_view name);
std::string_view profile_name(Profile profile);

// An option of `weir bench load` and the value that it gets unless the user gave one of `unless` (comma separated; itself always counts).
struct ProfileDefault {
  std::string_view option, value, unless;
};
std::span<const ProfileDefault> profile_defaults(Profile profile);

// "p99_over_p50_ttft=4": a bound of the user's own, or for a criterion that has none.
struct Requirement {
  std::string criterion;
  double bound = 0;
};
Result<std::vector<Requirement>> parse_requirements(std::string_view text);

// What criteria look at beside the summary. Nothing: not known.
struct ProfileFacts {
  double wall_s = 0;                         // from the start to the last answer's end
  std::optional<double> answers_per_prompt;  // the most different answers that one prompt got
  std::optional<double> drift;               // median E2E of the last quarter by that of the first, less 1, or its reverse if that is more
  std::optional<double> mean_watts, joules_per_request, price_per_request;
};
ProfileFacts facts_of(const RunResult& result, const json::Object& seen);

struct Judged {
  enum class State { kPass, kFail, kNotKnown, kReported } state = State::kReported;
  std::string name, title, unit;
  bool at_most = true;
  std::optional<double> bound, figure;
};
struct Verdict {
  std::string profile;  // "" without one
  std::vector<Judged> criteria;
  enum class Outcome { kPass, kFail, kIncomplete } outcome = Outcome::kPass;  // incomplete: a figure that counts is not known
  bool any() const { return !criteria.empty(); }
};
// Of the profile's criteria, if there is one, and of those that are required.
Verdict judge(std::optional<Profile> profile, std::span<const Requirement> requirements, const Summary& summary, const ProfileFacts& facts);
std::string to_text(const Verdict& verdict);
json::Object to_json(const Verdict& verdict);
std::string criteria_help();  // a line per criterion

}  // namespace weir::loadgen
