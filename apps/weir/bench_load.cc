// SPDX-License-Identifier: Apache-2.0
// weir bench load: load for any OpenAI-compatible server, at one level, at several, or as much as an objective allows.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "bench.h"
#include "bench_load_energy.h"
#include "bench_load_observe.h"
#include "bench_load_options.h"
#include "bench_load_outputs.h"
#include "bench_load_work.h"
#include "loadgen/search.h"
#include "verbs.h"

namespace weir::cli {
namespace {

using loadgen::Measured;
using loadgen::Scenario;

struct LoadVerb {
  LoadOptions load;
  LoadOutputs outputs;
  std::string url, rate_range, concurrency_range, profile, require;
  loadgen::Judging judging;
  EnergyOptions energy;
  WorkOptions work;
  ObserveOptions observe;
  bool search = false;
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

Scenario::Variation at_level(bool by_users, double level) {
  if (by_users) return {.rate = {}, .users = std::llround(level), .seed = {}};
  return {.rate = level, .users = {}, .seed = {}};
}

Result<Measured> measure(const LoadVerb& verb, const Scenario& scenario, const Scenario::Variation& variation, std::string& more) {
  const auto measured_once = [&] {
    auto measured = measure_with_progress(scenario, variation, verb.load.progress);
    if (measured) verb.observe.add_to(*measured);
    return measured;
  };
  WEIR_ASSIGN(Measured measured, verb.energy.around(measured_once, more));
  WEIR_TRY(verb.work.add_to(measured, more));
  return measured;
}

Result<Measured> measure_level(const LoadVerb& verb, const Scenario& scenario, bool by_users, double level, std::FILE* to) {
  std::string more;  // a level is one line
  WEIR_ASSIGN(Measured measured, measure(verb, scenario, at_level(by_users, level), more));
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
  WEIR_TRY(verb.outputs.write(runs, verb.judging, {{"kind", "sweep"}, {"attainment", verb.attainment}}));
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
  WEIR_TRY(verb.outputs.write(runs, verb.judging, more));
  return found.highest.has_value();
}

Result<bool> run_once(const LoadVerb& verb, const Scenario& scenario, std::FILE* to) {
  std::vector<Measured> runs;
  std::string more;
  WEIR_ASSIGN(Measured measured, measure(verb, scenario, {}, more));
  fmt::print(to, "{}{}", loadgen::run_text(measured, verb.judging), more);
  const bool fine = measured.summary.valid && loadgen::verdict_of(measured, verb.judging).outcome != loadgen::Verdict::Outcome::kFail;
  runs.push_back(std::move(measured));
  WEIR_TRY(verb.outputs.write(runs, verb.judging, {}));
  return fine;
}

Status take_judging(LoadVerb& verb, const loadgen::Slo& slo) {
  verb.judging.slo = slo;
  verb.judging.profile = loadgen::profile_named(verb.profile);
  if (!verb.require.empty()) {
    WEIR_ASSIGN(verb.judging.requirements, loadgen::parse_requirements(verb.require));
  }
  WEIR_TRY(verb.outputs.check());
  WEIR_TRY(verb.energy.prepare());
  return verb.work.prepare();
}

Result<bool> run(LoadVerb& verb) {
  if (!verb.rate_range.empty() && !verb.concurrency_range.empty())
    return fail(ErrorCode::kInvalidArgument, "--request-rate-range or --concurrency-range, not both");
  if (verb.search && verb.rate_range.empty() && verb.concurrency_range.empty())
    return fail(ErrorCode::kInvalidArgument, "--binary-search needs --request-rate-range or --concurrency-range START:END:PRECISION");
  catch_interrupts();
  WEIR_ASSIGN(loadgen::LoadSpec spec, verb.load.spec(verb.url));
  WEIR_TRY(take_judging(verb, spec.metrics.slo));
  // As in Perf Analyzer, the rates of a range are constant unless told otherwise.
  if (!verb.rate_range.empty() && verb.load.rate.empty() && verb.load.distribution != "poisson")
    spec.arrivals.kind = loadgen::ArrivalProcess::Kind::kConstant;
  WEIR_TRY(verb.observe.attach(spec));
  WEIR_ASSIGN(const Scenario scenario, Scenario::prepare(std::move(spec)));
  std::FILE* to = verb.outputs.json == "-" ? stderr : stdout;
  const bool by_users = !verb.concurrency_range.empty();
  if (verb.search) return run_search(verb, scenario, by_users, to);
  if (by_users || !verb.rate_range.empty()) return run_levels(verb, scenario, by_users, to);
  return run_once(verb, scenario, to);
}

void add_levels(CLI::App& app, LoadVerb& verb) {
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
  app.add_option("--profile", verb.profile,
                 "A setting's load, where no options of yours say otherwise, and what it is judged by: hyperscale, on-prem, edge, embedded")
      ->check(CLI::IsMember({"hyperscale", "on-prem", "edge", "embedded"}))
      ->group("Verdict");
  app.add_option("--require", verb.require, "Bounds of criteria, say ttft_p90_s=0.5,error_share=0; they go before the profile's")
      ->group("Verdict");
  verb.outputs.add_to(app);
  verb.energy.add_to(app);
  verb.work.add_to(app);
  verb.observe.add_to(app);
}

bool given(const CLI::App& app, std::string_view options) {
  for (const std::string_view option : loadgen::split(options, ','))
    if (!option.empty() && app.get_option(std::string(option))->count() > 0) return true;
  return false;
}

// As if the user had written the profile's options, where they wrote none of their own.
void apply_profile(CLI::App& app, const std::string& name) {
  const auto profile = loadgen::profile_named(name);
  if (!profile) return;
  std::vector<const loadgen::ProfileDefault*> wanted;
  for (const loadgen::ProfileDefault& value : loadgen::profile_defaults(*profile))
    if (!given(app, value.option) && !given(app, value.unless)) wanted.push_back(&value);
  for (const loadgen::ProfileDefault* value : wanted) {
    CLI::Option* option = app.get_option(std::string(value->option));
    option->add_result(std::string(value->value));
    option->run_callback();
  }
}

}  // namespace

void add_bench_load(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<LoadVerb>();
  CLI::App* app =
      bench.add_subcommand("load", "Load for any OpenAI-compatible server: latencies, rates, goodput, and whether to trust them");
  app->add_option("URL", verb->url, "http://host:port, or the whole address of an endpoint")->required();
  verb->load.add_to(*app);
  add_levels(*app, *verb);
  app->footer(
      "Latency counts from the moment at which a request was due, not from when it could be sent. The generator measures its own error; "
      "exit\n"
      "status 1 when the result is INVALID or a criterion fails.\n"
      "Examples:\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --slo ttft=500ms,tpot=50ms\n"
      "  weir bench load http://localhost:8080 --concurrency 8 -n 200 --isl lognormal:512,300 --osl 128 --tokenizer smollm2\n"
      "  weir bench load http://localhost:8080 --trace azure.csv --trace-speed 4 -d 10m\n"
      "  weir bench load http://localhost:8080 --binary-search --request-rate-range 1:64:1 -d 60s --slo ttft=500ms\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --power 60,180 --pue 1.2 --wue 1.8,3.1 --cif 350 --price-per-kwh 0.3\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --collect-metrics --metrics-interval 500 --html r.html\n"
      "  weir bench load http://localhost:8000 --rate 5 -d 60s --metrics-url localhost:8002/metrics --metrics-filter 'nv_|vllm:'\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --json r.json --html r.html --samples r.csv.gz --record r.record\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --model-file smollm2\n"
      "  weir bench load http://localhost:8080 --profile edge --require ttft_p90_s=0.3,mean_watts=10\n"
      "Criteria for --require:\n" +
      loadgen::criteria_help());
  app->callback([verb, app, &exit_status] {
    apply_profile(*app, verb->profile);
    const auto fine = run(*verb);
    if (!fine)
      exit_status = interrupted() ? kExitInterrupted : report_error(fine.error());
    else
      exit_status = interrupted() ? kExitInterrupted : *fine ? 0 : kExitFailed;
  });
}

}  // namespace weir::cli
