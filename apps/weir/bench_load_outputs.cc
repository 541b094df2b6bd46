// SPDX-License-Identifier: Apache-2.0
#include "bench_load_outputs.h"

#include <CLI/CLI.hpp>

#include "base/file_io.h"
#include "bench.h"
#include "bench/machine.h"
#include "loadgen/report_gpus.h"
#include "loadgen/report_html.h"
#include "loadgen/report_samples.h"

namespace weir::cli {
namespace {

using loadgen::Measured;

json::Object results_of(const std::vector<Measured>& runs, const loadgen::Judging& judging, const json::Object& more) {
  json::Object out{{"weir", WEIR_VERSION}, {"date", bench::utc_now()}, {"machine", bench::to_json(bench::describe_machine())}};
  if (runs.size() == 1 && more.empty()) {
    for (auto& [key, value] : loadgen::run_json(runs[0], judging)) out[key] = std::move(value);
    return out;
  }
  json::Array levels;
  for (const Measured& run : runs) levels.push_back(loadgen::run_json(run, judging));
  out["schema"] = "weir.bench.load_levels/1";
  for (const auto& [key, value] : more) out[key] = value;
  out["levels"] = std::move(levels);
  return out;
}

std::vector<loadgen::Figure> figures_of(const std::vector<Measured>& runs, const json::Object& more) {
  std::vector<loadgen::Figure> out;
  // The levels that a bisection tries depend on what it finds: its answer is what two of them are compared by.
  if (const json::Value* kind = json::find(more, "kind"); kind && kind->is_string() && kind->get_string() == "search") {
    const json::Value* highest = json::find(more, "highest");
    out.push_back({"highest_load", "", highest && highest->is_double() ? highest->get_double() : 0, true});
    return out;
  }
  for (const Measured& run : runs) {
    const std::string level = run.label.rate > 0 ? fmt::format("{:g}/s ", run.label.rate) : fmt::format("{} users ", run.label.concurrency);
    for (loadgen::Figure& figure : loadgen::figures_of(run.summary, runs.size() > 1 ? level : std::string()))
      out.push_back(std::move(figure));
  }
  return out;
}

}  // namespace

void LoadOutputs::add_to(CLI::App& app) {
  app.add_option("--json", json, "Write JSON to a file, or - for standard output")->group("Output");
  app.add_option("--html", html, "Write a report to read in a browser: one file, with plots")->group("Output");
  app.add_option("--csv", csv, "Write a row per level")->group("Output");
  app.add_option("--samples", samples, "Write every request with every gap: to .jsonl, .csv, .jsonl.gz or .csv.gz")->group("Output");
  app.add_option("--records", records, "Write a CSV row per request (of the last level)")->group("Output");
  app.add_option("-f", perf_analyzer, "Write Perf Analyzer's CSV")->group("Output");
  app.add_flag("--verbose-csv", verbose_csv, "With its further columns")->group("Output");
  record.add_to(app);
}

Status LoadOutputs::check() const {
  if (!samples.empty()) {
    if (auto kind = loadgen::SampleKind::of(samples); !kind) return std::unexpected(std::move(kind).error());
  }
  return {};
}

Status LoadOutputs::write(const std::vector<Measured>& runs, const loadgen::Judging& judging, const json::Object& more) const {
  if (runs.empty()) return {};
  if (record.wanted()) {
    bool valid = true;
    for (const Measured& run : runs)
      valid &= run.summary.valid || !more.empty();  // levels beyond what a machine can do are part of a sweep
    WEIR_TRY(record.write("load", runs.front().label.seed, valid, figures_of(runs, more), results_of(runs, judging, more)));
    if (!record.may_write_others()) return {};
  }
  std::vector<std::pair<loadgen::RunLabel, loadgen::Summary>> rows;
  std::vector<const loadgen::RunResult*> levels;
  std::vector<loadgen::GpuColumns> gpus;
  for (const Measured& run : runs) {
    rows.emplace_back(run.label, run.summary);
    if (json::find(run.seen, "observations")) gpus.push_back(loadgen::gpu_columns(run.seen));
    levels.push_back(&run.result);
  }
  if (!csv.empty()) WEIR_TRY(write_file_atomically(csv, loadgen::to_csv(rows)));
  if (!perf_analyzer.empty()) WEIR_TRY(write_file_atomically(perf_analyzer, loadgen::perf_analyzer_csv(rows, verbose_csv, gpus)));
  if (!records.empty()) WEIR_TRY(write_file_atomically(records, loadgen::records_csv(*levels.back())));
  if (!samples.empty()) WEIR_TRY(loadgen::write_samples(samples, levels));
  if (json.empty() && html.empty()) return {};
  json::Object results = results_of(runs, judging, more);
  if (!json.empty()) WEIR_TRY(write_json(json, results));
  if (html.empty()) return {};
  std::vector<loadgen::ReportFile> files{{"", std::move(results)}};
  WEIR_ASSIGN(const std::string page, loadgen::html_report(files));
  return write_file_atomically(html, page);
}

}  // namespace weir::cli
