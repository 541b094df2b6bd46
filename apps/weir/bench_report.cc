// SPDX-License-Identifier: Apache-2.0
// weir bench report: a page for the browser from saved results, without measuring anything.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file_io.h"
#include "bench.h"
#include "loadgen/report_html.h"
#include "loadgen/report_samples.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct ReportVerb {
  std::vector<std::string> results;
  std::string samples, out;
};

Status run(const ReportVerb& verb) {
  std::vector<loadgen::ReportFile> files;
  for (const std::string& path : verb.results) {
    WEIR_ASSIGN(const std::string text, read_file(path));
    WEIR_ASSIGN(json::Value value, json::parse(text, path));
    if (!value.is_object()) return fail(ErrorCode::kCorrupt, "{}: not a JSON object", path);
    files.push_back({std::filesystem::path(path).stem().string(), std::move(value.get_object())});
  }
  if (!verb.samples.empty()) {
    if (files.size() != 1) return fail(ErrorCode::kInvalidArgument, "--samples belong to one result");
    WEIR_ASSIGN(const auto levels, loadgen::read_samples(verb.samples));
    WEIR_TRY(loadgen::add_samples(files[0].json, levels));
  }
  WEIR_ASSIGN(const std::string page, loadgen::html_report(files));
  if (verb.out != "-") return write_file_atomically(verb.out, page);
  fmt::print("{}", page);
  return {};
}

}  // namespace

void add_bench_report(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<ReportVerb>();
  CLI::App* app = bench.add_subcommand("report", "One page for the browser from saved results: plots, tables, what bounds it");
  app->add_option("RESULT", verb->results, "JSON of 'weir bench load' or 'compare', or run records; several are laid over one another")
      ->required()
      ->check(CLI::ExistingFile);
  app->add_option("--samples", verb->samples, "Raw samples of the (one) result: a dot per request")->check(CLI::ExistingFile);
  app->add_option("-o,--output", verb->out, "The page, or - for standard output")->required();
  app->footer(
      "The page is one file that needs no network and runs no script; light, dark and printable.\n"
      "Examples:\n"
      "  weir bench report result.json -o report.html\n"
      "  weir bench report sweep.json --samples sweep.csv.gz -o report.html\n"
      "  weir bench report monday.json tuesday.json -o both.html\n");
  app->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
