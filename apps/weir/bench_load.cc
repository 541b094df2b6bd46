// SPDX-License-Identifier: Apache-2.0
// weir bench load: load for any OpenAI-compatible server, at one level, at several, or as much as an objective allows.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/file_io.h"
#include "bench.h"
#include "bench/machine.h"
#include "bench_load_options.h"
#include "loadgen/report_samples.h"
#include "loadgen/search.h"
#include "verbs.h"

namespace weir::cli {
namespace {

using loadgen::Measured;
using loadgen::Scenario;

struct LoadVerb {
  LoadOptions load;
  std::string url, json, csv, records, samples, perf_analyzer;
  std::string rate_range, concurrency_range;
  bool verbose_csv = false, search = false, quiet = false;
  double attainment = 0.95, latency_threshold_ms = 0;
};

bool holds(const LoadVerb& verb, const Measured& measured) {
  const loadgen::Summary& s = measured.summary;
  if (!s.valid || s.requests == 0) return false;
  if (verb.latency_threshold_ms > 0) {
    const double latency = verb.load.percentile < 0 ? s.e2e.mean : s.e2e.at(verb.load.percentile);
    if (latency * 1e3 > verb.latency_threshold_ms) return false;
  }
  return static_cast<double>(s.good) >= verb.attainment * static_cast<double>(s.requests);
}

Status write_outputs(const LoadVerb& verb, const std::vector<Measured>& runs, const loadgen::Slo& slo, const json::Object& more) {
  std::vector<std::pair<loadgen::RunLabel, loadgen::Summary>> rows;
  for (const Measured& run : runs) rows.emplace_back(run.label, run.summary);
  if (!verb.csv.empty()) WEIR_TRY(write_file_atomically(verb.csv, loadgen::to_csv(rows)));
  if (!verb.perf_analyzer.empty()) WEIR_TRY(write_file_atomically(verb.perf_analyzer, loadgen::perf_analyzer_csv(rows, verb.verbose_csv)));
  if (!verb.records.empty() && !runs.empty()) WEIR_TRY(write_file_atomically(verb.records, loadgen::records_csv(runs.back().result)));
  if (!verb.samples.empty() && !runs.empty()) {
    std::vector<const loadgen::RunResult*> levels;
    for (const Measured& run : runs) levels.push_back(&run.result);
    WEIR_TRY(loadgen::write_samples(verb.samples, levels));
  }
  if (verb.json.empty()) return {};
  json::Object out{{"weir", WEIR_VERSION}, {"date", bench::utc_now()}, {"machine", bench::to_json(bench::describe_machine())}};
  if (runs.size() == 1 && more.empty()) {
    for (auto& [key, value] : loadgen::to_json(runs[0].summary, runs[0].label, slo)) out[key] = std::move(value);
    return write_json(verb.json, out);
  }
  json::Array levels;
  for (const Measured& run : runs) levels.push_back(loadgen::to_json(run.summary, run.label, slo));
  out["schema"] = "weir.bench.load_levels/1";
  for (const auto& [key, value] : more) out[key] = value;
  out["levels"] = std::move(levels);
  return write_json(verb.json, out);
}

Scenario::Variation at_level(bool by_users, double level) {
  if (by_users) return {.rate = {}, .users = std::llround(level), .seed = {}};
  return {.rate = level, .users = {}, .seed = {}};
}

Result<Measured> measure_level(const LoadVerb& verb, const Scenario& scenario, bool by_users, double level, std::FILE* to) {
  WEIR_ASSIGN(Measured measured, measure_with_progress(scenario, at_level(by_users, level), verb.quiet));
  fmt::print(to, "{}", loadgen::to_line(measured.summary, measured.label));
  std::fflush(to);
  return measured;
}

Result<bool> run_levels(const LoadVerb& verb, const Scenario& scenario, bool by_users, std::FILE* to) {
  WEIR_ASSIGN(const std::vector<double> levels, loadgen::parse_levels(by_users ? verb.concurrency_range : verb.rate_range));
  fmt::print(to, "{}", loadgen::line_header());
  std::vector<Measured> runs;
  bool valid = true;
  for (const double level : levels) {
    WEIR_ASSIGN(Measured measured, measure_level(verb, scenario, by_users, level, to));
    valid &= measured.summary.valid;
    runs.push_back(std::move(measured));
    if (interrupted()) break;
    if (verb.latency_threshold_ms > 0 && !holds(verb, runs.back())) break;
  }
  WEIR_TRY(write_outputs(verb, runs, scenario.spec().metrics.slo, {{"kind", "sweep"}}));
  return valid;
}

Result<bool> run_search(const LoadVerb& verb, const Scenario& scenario, bool by_users, std::FILE* to) {
  WEIR_ASSIGN(const loadgen::Range range, loadgen::parse_range(by_users ? verb.concurrency_range : verb.rate_range));
  if (!scenario.spec().metrics.slo.any() && verb.latency_threshold_ms <= 0)
    return fail(ErrorCode::kInvalidArgument, "a search needs an objective: --slo or --latency-threshold");
  fmt::print(to, "{}", loadgen::line_header());
  std::vector<Measured> runs;
  WEIR_ASSIGN(const loadgen::SearchResult found,
              loadgen::find_highest(range.low, range.high, range.step, [&](double level) -> Result<bool> {
                WEIR_ASSIGN(Measured measured, measure_level(verb, scenario, by_users, level, to));
                if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
                const bool passed = holds(verb, measured);
                runs.push_back(std::move(measured));
                return passed;
              }));
  const std::string unit = by_users ? "users" : "requests/s";
  if (!found.highest)
    fmt::print(to, "Not even {:g} {} hold the objective.\n", range.low, unit);
  else
    fmt::print(to, "Highest load that holds the objective{}: {:g} {}\n", found.reached_end ? " (the range's end: it may be higher)" : "",
               *found.highest, unit);
  json::Object more{{"kind", "search"},
                    {"highest", found.highest ? json::Value(*found.highest) : json::Value(nullptr)},
                    {"reached_end", found.reached_end},
                    {"attainment", verb.attainment}};
  WEIR_TRY(write_outputs(verb, runs, scenario.spec().metrics.slo, more));
  return found.highest.has_value();
}

Result<bool> run_once(const LoadVerb& verb, const Scenario& scenario, std::FILE* to) {
  std::vector<Measured> runs;
  WEIR_ASSIGN(Measured measured, measure_with_progress(scenario, {}, verb.quiet));
  fmt::print(to, "{}", loadgen::to_text(measured.summary, measured.label, scenario.spec().metrics.slo));
  const bool valid = measured.summary.valid;
  runs.push_back(std::move(measured));
  WEIR_TRY(write_outputs(verb, runs, scenario.spec().metrics.slo, {}));
  return valid;
}

Result<bool> run(const LoadVerb& verb) {
  if (!verb.rate_range.empty() && !verb.concurrency_range.empty())
    return fail(ErrorCode::kInvalidArgument, "--request-rate-range or --concurrency-range, not both");
  if (verb.search && verb.rate_range.empty() && verb.concurrency_range.empty())
    return fail(ErrorCode::kInvalidArgument, "--binary-search needs --request-rate-range or --concurrency-range START:END:PRECISION");
  catch_interrupts();
  WEIR_ASSIGN(loadgen::LoadSpec spec, verb.load.spec(verb.url));
  // As in Perf Analyzer, the rates of a range are constant unless told otherwise.
  if (!verb.rate_range.empty() && verb.load.rate.empty() && verb.load.distribution != "poisson")
    spec.arrivals.kind = loadgen::ArrivalProcess::Kind::kConstant;
  WEIR_ASSIGN(const Scenario scenario, Scenario::prepare(std::move(spec)));
  std::FILE* to = verb.json == "-" ? stderr : stdout;
  const bool by_users = !verb.concurrency_range.empty();
  if (verb.search) return run_search(verb, scenario, by_users, to);
  if (by_users || !verb.rate_range.empty()) return run_levels(verb, scenario, by_users, to);
  return run_once(verb, scenario, to);
}

void add_outputs(CLI::App& app, LoadVerb& verb) {
  app.add_option("--request-rate-range", verb.rate_range, "Several rates: START:END:STEP, START:END:xFACTOR or A,B,C")->group("Levels");
  app.add_option("--concurrency-range", verb.concurrency_range, "Several numbers of users, likewise")->group("Levels");
  app.add_flag("--binary-search", verb.search,
               "The highest level of the range (START:END:PRECISION) that holds --slo or --latency-threshold")
      ->group("Levels");
  app.add_option("--attainment", verb.attainment, "Share of requests that must be good for a level to hold")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Levels");
  app.add_option("-l,--latency-threshold", verb.latency_threshold_ms,
                 "ms: mean (or --percentile) of E2E that no level may exceed; ends a sweep")
      ->group("Levels");
  app.add_option("--json", verb.json, "Write JSON to a file, or - for standard output")->group("Output");
  app.add_option("--csv", verb.csv, "Write a row per level")->group("Output");
  app.add_option("--records", verb.records, "Write a CSV row per request (of the last level)")->group("Output");
  app.add_option("--samples", verb.samples, "Write a JSON line per request with every gap (of the last level)")->group("Output");
  app.add_option("-f", verb.perf_analyzer, "Write Perf Analyzer's CSV")->group("Output");
  app.add_flag("--verbose-csv", verb.verbose_csv, "With its further columns")->group("Output");
  app.add_flag("-q,--quiet", verb.quiet, "No progress line")->group("Output");
}

}  // namespace

void add_bench_load(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<LoadVerb>();
  CLI::App* app =
      bench.add_subcommand("load", "Load for any OpenAI-compatible server: latencies, rates, goodput, and whether to trust them");
  app->add_option("URL", verb->url, "http://host:port, or the whole address of an endpoint")->required();
  verb->load.add_to(*app);
  add_outputs(*app, *verb);
  app->footer(
      "Latency counts from the moment at which a request was due, not from when it could be sent. The generator measures its own error; "
      "exit\n"
      "status 1 when the result is INVALID.\n"
      "Examples:\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --slo ttft=500ms,tpot=50ms\n"
      "  weir bench load http://localhost:8080 --concurrency 8 -n 200 --isl lognormal:512,300 --osl 128 --tokenizer smollm2\n"
      "  weir bench load http://localhost:8080 --trace azure.csv --trace-speed 4 -d 10m\n"
      "  weir bench load http://localhost:8080 --binary-search --request-rate-range 1:64:1 -d 60s --slo ttft=500ms\n");
  app->callback([verb, &exit_status] {
    const auto valid = run(*verb);
    if (!valid)
      exit_status = interrupted() ? kExitInterrupted : report_error(valid.error());
    else
      exit_status = interrupted() ? kExitInterrupted : *valid ? 0 : kExitFailed;
  });
}

}  // namespace weir::cli
