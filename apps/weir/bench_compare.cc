// SPDX-License-Identifier: Apache-2.0
// weir bench compare: two servers under the same load, in turn; the exit status tells whether B is worse.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "bench.h"
#include "bench/machine.h"
#include "bench_load_options.h"
#include "bench_record.h"
#include "loadgen/compare.h"
#include "verbs.h"

namespace weir::cli {
namespace {

using loadgen::Measured;
using loadgen::PairedRatio;
using loadgen::Scenario;

struct CompareVerb {
  LoadOptions load;
  std::string a, b, json, metrics = "ttft_p50,tpot_p50,e2e_p50,e2e_p99,output_tokens_per_s";
  int rounds = 6;
  double threshold_percent = 5, confidence = 0.95;
  RecordOptions record;
};

struct Values {
  std::vector<double> a, b;
};

Status run_round(const CompareVerb& verb, const Scenario& a, const Scenario& b, bool a_first, std::uint64_t seed,
                 const std::vector<loadgen::ComparedMetric>& metrics, std::vector<Values>& values, std::FILE* to) {
  for (const bool is_a : {a_first, !a_first}) {
    WEIR_ASSIGN(const Measured measured, measure_with_progress(is_a ? a : b, {.rate = {}, .users = {}, .seed = seed}, verb.load.progress));
    if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
    fmt::print(to, "{} {}", is_a ? 'A' : 'B', loadgen::to_line(measured.summary, measured.label));
    std::fflush(to);
    if (!measured.summary.valid)
      return fail(ErrorCode::kInternal, "a run against {} is not valid: {}", measured.label.target, measured.summary.reasons.front());
    for (std::size_t i = 0; i < metrics.size(); ++i)
      (is_a ? values[i].a : values[i].b).push_back(loadgen::value_of(metrics[i], measured.summary));
  }
  return {};
}

// Whether there is no regression.
Result<bool> run(const CompareVerb& verb) {
  catch_interrupts();
  std::vector<loadgen::ComparedMetric> metrics;
  for (const std::string_view name : loadgen::split(verb.metrics, ',')) {
    WEIR_ASSIGN(loadgen::ComparedMetric metric, loadgen::parse_metric(name));
    metrics.push_back(std::move(metric));
  }
  WEIR_ASSIGN(loadgen::LoadSpec spec_a, verb.load.spec(verb.a));
  WEIR_ASSIGN(loadgen::LoadSpec spec_b, verb.load.spec(verb.b));
  WEIR_ASSIGN(const Scenario a, Scenario::prepare(std::move(spec_a)));
  WEIR_ASSIGN(const Scenario b, Scenario::prepare(std::move(spec_b)));
  std::FILE* to = verb.json == "-" ? stderr : stdout;
  fmt::print(to, "A {}\nB {}\n  {}", verb.a, verb.b, loadgen::line_header());
  std::vector<Values> values(metrics.size());
  const auto order = loadgen::a_first_order(static_cast<std::size_t>(verb.rounds), verb.load.seed);
  for (std::size_t round = 0; round < order.size(); ++round)
    WEIR_TRY(run_round(verb, a, b, order[round], verb.load.seed + round, metrics, values, to));
  bool regression = false;
  json::Array rows;
  std::vector<loadgen::Figure> figures;
  fmt::print(to, "\n{:<22}{:>12}{:>12}   ratio of {} paired rounds, {:g} % interval\n", "", "A", "B", verb.rounds, 100 * verb.confidence);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const PairedRatio ratio = loadgen::paired_ratio(metrics[i], values[i].a, values[i].b, verb.threshold_percent / 100, verb.confidence);
    regression |= ratio.verdict == PairedRatio::Verdict::kRegression;
    fmt::print(to, "{}", loadgen::to_text(ratio, verb.threshold_percent / 100));
    rows.push_back(loadgen::to_json(ratio));
    figures.push_back({metrics[i].name + " B/A", "", ratio.ratio, metrics[i].higher_is_better});
  }
  fmt::print(to, "{}\n", regression ? "B is a regression." : "B is no regression.");
  const json::Object out{{"weir", WEIR_VERSION},
                         {"date", bench::utc_now()},
                         {"schema", "weir.bench.compare/1"},
                         {"a", verb.a},
                         {"b", verb.b},
                         {"rounds", verb.rounds},
                         {"threshold", verb.threshold_percent / 100},
                         {"regression", regression},
                         {"metrics", std::move(rows)}};
  WEIR_TRY(verb.record.write("compare", verb.load.seed, true, std::move(figures), out));
  if (!verb.json.empty() && verb.record.may_write_others()) WEIR_TRY(write_json(verb.json, out));
  return !regression;
}

}  // namespace

void add_bench_compare(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<CompareVerb>();
  CLI::App* app =
      bench.add_subcommand("compare", "Two servers under the same load in turn: the paired ratio, and whether B is a regression");
  app->add_option("A", verb->a, "The server to compare with")->required();
  app->add_option("B", verb->b, "The server in question")->required();
  app->add_option("--rounds", verb->rounds, "Each round measures both, in an order that changes")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  app->add_option("--threshold", verb->threshold_percent, "Per cent by which B may be worse")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--confidence", verb->confidence, "Of the intervals")->check(CLI::Range(0.5, 0.9999))->capture_default_str();
  app->add_option("--metrics", verb->metrics,
                  "What is judged: ttft, itl, tpot, e2e with _mean, _p50, _p99 …; output_tokens_per_s, request_rate, goodput")
      ->capture_default_str();
  app->add_option("--json", verb->json, "Write JSON to a file, or - for standard output");
  verb->record.add_to(*app);
  verb->load.add_to(*app);
  app->footer(
      "Exit status 1 when B is worse by more than the threshold and the interval excludes that nothing changed.\n"
      "Example:\n"
      "  weir bench compare http://localhost:8080 http://localhost:8081 --rate 5 -d 20s --rounds 8 --threshold 3\n");
  app->callback([verb, &exit_status] {
    const auto fine = run(*verb);
    exit_status = !fine ? report_error(fine.error()) : *fine ? 0 : kExitFailed;
  });
}

}  // namespace weir::cli
