// SPDX-License-Identifier: Apache-2.0
// A run record: what was run, where, and what came out, so that `weir bench rerun` can do the same again and tell whether it got worse.
// A record may come from anybody: reading one checks its schema and its verb, and gives nothing that a shell would see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loadgen/report.h"

namespace weir::loadgen {

inline constexpr std::string_view kRecordSchema = "weir.bench.record/1";
inline constexpr std::string_view kRecordedVerbs[] = {"load", "compare", "engine", "mlperf"};

// What two runs are compared by. Figures of the same name belong together.
struct Figure {
  std::string name, unit;  // "ttft_p99", "s"
  double value = 0;
  bool higher_is_better = false;
};

struct RunRecord {
  std::string verb;                  // one of kRecordedVerbs
  std::vector<std::string> command;  // without the program's name: "bench", verb, …; no secrets
  std::string weir, date;            // version, UTC
  json::Object machine, environment;
  std::uint64_t seed = 0;
  bool valid = true;  // whether the run itself said that its figures may be trusted
  std::vector<Figure> figures;
  json::Value results;  // the verb's own JSON
};

json::Object to_json(const RunRecord& record);
Result<RunRecord> parse_record(const json::Value& value);

// The command without API keys and headers that carry credentials.
std::vector<std::string> without_secrets(const std::vector<std::string>& command);

std::vector<Figure> figures_of(const Summary& summary, const std::string& prefix);

struct ChangedFigure {
  Figure before, after;
  double ratio = 0;    // after / before; 0: before was 0
  bool worse = false;  // beyond the threshold
};
struct RecordChange {
  std::vector<ChangedFigure> figures;
  std::vector<std::string> missing;  // figures that the new run does not have
  bool regression = false;           // a figure is worse or missing, or the new run is not valid while the old one was
};
// `threshold` 0.05: worse by more than 5 %.
RecordChange compare_records(const RunRecord& before, const RunRecord& after, double threshold);
std::string to_text(const RecordChange& change);

}  // namespace weir::loadgen
