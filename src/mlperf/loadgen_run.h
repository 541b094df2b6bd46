// SPDX-License-Identifier: Apache-2.0
// One run of MLPerf's LoadGen against an AnswerSource. LoadGen decides what is asked and when, takes the times, writes its logs, and says
// what is valid; nothing here looks over its shoulder. LoadGen is global state: one run at a time in a process.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "mlperf/answer_source.h"

namespace weir::mlperf {

enum class Scenario { kSingleStream, kMultiStream, kServer, kOffline };
enum class Mode { kPerformance, kAccuracy, kFindPeak };

const char* scenario_name(Scenario scenario);  // as LoadGen writes it
const char* mode_name(Mode mode);

bool loadgen_available();
std::string loadgen_version();  // "" without LoadGen
std::string built_in_mlperf_conf();

struct RunConfig {
  Scenario scenario = Scenario::kSingleStream;
  std::optional<Mode> mode = {};    // absent: what user_conf says, else performance
  std::string model;                // LoadGen's key, whose rules apply
  std::filesystem::path user_conf;  // the one that is read
  std::filesystem::path output;     // an existing folder for LoadGen's logs
  std::filesystem::path audit = "audit.config";
  bool trace = false;
};

// What became of the samples, beside LoadGen's own account.
struct RunEnd {
  std::uint64_t answered = 0, failed = 0;
  std::uint64_t short_answers = 0;  // of fewer than two tokens, of which LoadGen can tell no time per token
  std::string first_failure;
};

class LoadgenRun {
 public:
  // Reads mlperf.conf (LoadGen's own copy) and user_conf. kUnsupported when this build has no LoadGen.
  static Result<std::unique_ptr<LoadgenRun>> configure(const RunConfig& config);
  virtual ~LoadgenRun() = default;

  virtual bool token_latencies() const = 0;
  virtual Mode mode() const = 0;
  // The seeds that LoadGen was given: of the sets, the order of samples, and the schedule.
  struct Seeds {
    std::uint64_t qsl = 0, sample_index = 0, schedule = 0;
  };
  virtual Seeds seeds() const = 0;

  // Until LoadGen has ended. When `keep_going` turns false, or nothing but failures comes, an error is returned while LoadGen still runs:
  // the process has to end then (std::_Exit), as LoadGen cannot be stopped midway and its threads still use `source`.
  virtual Result<RunEnd> run(AnswerSource& source, std::size_t samples, const std::string& dataset,
                             const std::function<bool()>& keep_going) = 0;
};

}  // namespace weir::mlperf
