// SPDX-License-Identifier: Apache-2.0
// A load as a user describes it, prepared once and measured as often as wanted, at other rates or against other servers: what sweeps,
// searches and comparisons repeat.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loadgen/arrivals.h"
#include "loadgen/metrics.h"
#include "loadgen/prompts.h"
#include "loadgen/report.h"
#include "loadgen/runner.h"

namespace weir::loadgen {

enum class PromptSource { kSynthetic, kText, kJsonl, kShareGpt };
std::optional<PromptSource> prompt_source(std::string_view name);

struct LoadSpec {
  TargetOptions target;
  RequestShape shape;
  ArrivalProcess arrivals;
  std::int64_t users = 0;  // above 0: a closed loop
  RunSize size;
  std::filesystem::path trace;  // not empty: its moments and lengths
  double trace_speed = 1;
  PromptSource source = PromptSource::kSynthetic;
  std::filesystem::path prompt_file, tokenizer;
  std::int64_t most_prompts = 10000;  // different ones; then they repeat
  PromptOptions prompts;
  Distribution think;
  RunOptions run;
  MetricOptions metrics;
  std::uint64_t seed = 1;
};

struct Measured {
  RunLabel label;
  RunResult result;
  Summary summary;
  json::Object seen;  // what else was measured meanwhile, as members of the run's JSON: "observations", "energy", "work"
};

class Scenario {
 public:
  static Result<Scenario> prepare(LoadSpec spec);

  // Once, with what the specification says, or at another rate (open loop) or number of users. `seed` picks the arrivals.
  struct Variation {
    std::optional<double> rate;
    std::optional<std::int64_t> users;
    std::optional<std::uint64_t> seed;
  };
  Result<Measured> measure(const Variation& variation, Progress& progress) const;
  Result<Measured> measure_at(const Target& target, const Variation& variation, Progress& progress) const;

  const LoadSpec& spec() const { return spec_; }
  // Requests that a run will have, as far as that is known before.
  std::int64_t expected_requests(const Variation& variation) const;

 private:
  Status make_prompts();
  Result<LoadPlan> plan(const Variation& variation) const;
  std::string prompts_description() const;

  LoadSpec spec_;
  Target target_;
  Trace trace_;
  std::vector<Conversation> conversations_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

}  // namespace weir::loadgen
