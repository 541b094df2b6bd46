// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_html.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "loadgen/metrics.h"
#include "loadgen/report_curves.h"
#include "loadgen/report_html_parts.h"

namespace weir::loadgen {
namespace {

using html::Run;

constexpr std::size_t kMostRuns = 64, kMostDots = 2500;

struct Results {
  std::vector<Run> runs;
  std::vector<const json::Object*> comparisons;
  double attainment = 0.95, highest = std::nan("");
  const json::Object* head = nullptr;  // of the first file: version, date, machine
};

std::string load_name(const json::Object& run) {
  const double rate = html::number_at(run, {"rate"}), users = html::number_at(run, {"concurrency"});
  if (rate > 0) return html::number_text(rate) + " requests/s";
  return users > 0 ? html::number_text(users) + " users" : "run";
}

Status collect(const ReportFile& file, bool several, Results& out) {
  const json::Object* json = &file.json;
  std::string schema = html::text_at(*json, {"schema"});
  if (schema == "weir.bench.record/1") {
    const json::Value* results = html::value_at(*json, {"results"});
    if (!results || !results->is_object()) return fail(ErrorCode::kUnsupported, "{}: a record without results", file.name);
    json = &results->get_object();
    schema = html::text_at(*json, {"schema"});
  }
  if (!out.head) out.head = &file.json;
  if (schema == "weir.bench.load/1") {
    out.runs.push_back({several ? file.name : load_name(*json), json});
  } else if (schema == "weir.bench.load_levels/1") {
    for (const json::Value& level : html::array_at(*json, {"levels"}))
      if (const json::Object* run = level.if_object())
        out.runs.push_back({several ? file.name + ": " + load_name(*run) : load_name(*run), run});
    if (const double share = html::number_at(*json, {"attainment"}); share > 0) out.attainment = share;
    if (!several) out.highest = html::number_at(*json, {"highest"});
  } else if (schema == "weir.bench.compare/1") {
    out.comparisons.push_back(json);
  } else {
    return fail(ErrorCode::kUnsupported, "{}: a report is made of the JSON of 'weir bench load' and 'compare', not of '{}'", file.name,
                schema);
  }
  return {};
}

std::string made_on(const json::Object& head) {
  std::string out = "Measured";
  if (const std::string date = html::text_at(head, {"date"}); !date.empty()) out += " " + date;
  if (const std::string version = html::text_at(head, {"weir"}); !version.empty()) out += " with weir " + version;
  if (const std::string cpu = html::text_at(head, {"machine", "cpu"}); !cpu.empty()) out += ", the generator on " + cpu;
  return out + ". Latencies count from the moment at which a request was due; percentiles are exact.";
}

std::string body_of(const Results& results) {
  std::string out;
  if (!results.runs.empty()) {
    // What is shown of one run: the highest load that still holds, or the only one, or the last.
    const Run* held = html::highest_that_holds(results.runs, results.attainment, results.highest);
    const Run& run = held ? *held : results.runs.back();
    const bool several = results.runs.size() > 1;
    const std::string which = several ? " (" + run.name + ")" : "";
    out += "<header>" + html::head_of(run) + "</header>" + html::tiles_of(run);
    out += html::section("Verdict" + which, html::verdict_of(run));
    out += html::section("What bounds it" + which, html::bottleneck_of(run));
    out += html::section("Load and latency", html::levels_of(results.runs, held));
    out += html::section("Distribution of latencies", html::curves_of(results.runs));
    out += html::section("Latencies", html::latencies_of(results.runs));
    out += html::section("Over time" + which, html::timeline_of(run) + html::observed_timeline_of(run));
    out += html::section("Where the time went", html::breakdown_of(results.runs));
    out += html::section("Limits of the machine", html::limits_of(results.runs));
    out += html::section("Energy and cost", html::energy_of(results.runs));
    out += html::section("Observed meanwhile" + which, html::observations_of(run));
  }
  for (const json::Object* comparison : results.comparisons) out += html::section("A against B", html::compare_of({"", comparison}));
  out += html::section("The generator itself", html::generator_of(results.runs));
  return out;
}

json::Object dots_of(const RunResult& result) {
  json::Array at, ttft, e2e;
  const std::size_t stride = result.records.size() / kMostDots + 1;
  for (std::size_t i = 0; i < result.records.size(); i += stride) {
    const RequestRecord& r = result.records[i];
    if (r.outcome != Outcome::kOk) continue;
    const auto value = [](double seconds) { return seconds < 0 ? json::Value(nullptr) : json::Value(six_digits(seconds)); };
    at.emplace_back(six_digits(std::chrono::duration<double>(r.scheduled).count()));
    ttft.push_back(value(ttft_s(r)));
    e2e.push_back(value(e2e_s(r)));
  }
  return {{"scheduled_s", std::move(at)}, {"ttft_s", std::move(ttft)}, {"e2e_s", std::move(e2e)}};
}

void add_samples_of(json::Object& run, const RunResult& result) {
  if (!json::find(run, "curves")) run["curves"] = curves_json(result);
  if (!json::find(run, "timeline")) run["timeline"] = timeline_json(result);
  run["dots"] = dots_of(result);
}

}  // namespace

Status add_samples(json::Object& result, std::span<const RunResult> levels) {
  json::Value* array = result.if_contains("levels");
  if (!array || !array->is_array()) {
    if (levels.size() != 1) return fail(ErrorCode::kInvalidArgument, "the samples hold {} levels, the result is of one run", levels.size());
    add_samples_of(result, levels[0]);
    return {};
  }
  json::Array& runs = array->get_array();
  if (runs.size() != levels.size())
    return fail(ErrorCode::kInvalidArgument, "the samples hold {} levels, the result {}", levels.size(), runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].is_object()) add_samples_of(runs[i].get_object(), levels[i]);
  return {};
}

Result<std::string> html_report(std::span<const ReportFile> files) {
  Results results;
  for (const ReportFile& file : files) WEIR_TRY(collect(file, files.size() > 1, results));
  if (results.runs.empty() && results.comparisons.empty()) return fail(ErrorCode::kInvalidArgument, "there are no results to report");
  if (results.runs.size() > kMostRuns) results.runs.resize(kMostRuns);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">"
      // No script runs here, whatever a result holds, and nothing is fetched.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
      "<meta name=\"referrer\" content=\"no-referrer\"><title>Load report</title><style>";
  out += html::kStyle;
  out +=
      "</style></head>\n<body><main><div class=\"theme\" role=\"group\" aria-label=\"Colours\"><label><input type=\"radio\" name=\"theme\" "
      "checked> "
      "system</label><label><input type=\"radio\" name=\"theme\" id=\"light\"> light</label><label><input type=\"radio\" name=\"theme\" "
      "id=\"dark\"> dark</label></div>\n";
  out += body_of(results) + "<footer>" + html::paragraph(made_on(*results.head)) + "</footer></main></body></html>\n";
  return out;
}

}  // namespace weir::loadgen
