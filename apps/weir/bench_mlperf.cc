// SPDX-License-Identifier: Apache-2.0
// weir bench mlperf: MLPerf's own LoadGen against a model in process or a server over HTTP.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "base/file_io.h"
#include "base/log.h"
#include "base/units.h"
#include "bench.h"
#include "bench_record.h"
#include "engine/generation.h"
#include "mlperf/accuracy.h"
#include "mlperf/benchmarks.h"
#include "mlperf/engine_source.h"
#include "mlperf/http_source.h"
#include "mlperf/loadgen_run.h"
#include "mlperf/logs.h"
#include "mlperf/report.h"
#include "mlperf/user_conf.h"
#include "mlperf/warm_up.h"
#include "model_options.h"
#include "verbs.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;
using mlperf::Scenario;

constexpr double kSlack =
    1.2;  // LoadGen prepares for twice the duration: enough as long as queries take at least 0.6 of the warm-up's best

struct MlperfVerb {
  ModelOptions model;
  std::string scenario, url, dataset, conf, output = "mlperf-logs", kv_type = "auto", json;
  bool accuracy = false, find_peak = false, list = false, print_conf = false, completions = false, no_salt = false, trace = false;
  mlperf::ConfOptions rules;
  std::optional<std::int64_t> max_tokens, min_tokens;
  std::int32_t max_running = 32;
  std::size_t connections = 512;
  int warm_up = 3, timeout_s = 600;
  std::string api_key;
  std::vector<std::string> headers;
  RecordOptions record;

  bool over_http() const { return !url.empty(); }
};

// Who answers, and how the accuracy log's bytes become text again.
struct Answering {
  std::unique_ptr<engine::LoadedModel> loaded;
  std::unique_ptr<mlperf::EngineSource> engine;
  std::unique_ptr<mlperf::HttpSource> http;

  mlperf::AnswerSource& source() const { return engine ? static_cast<mlperf::AnswerSource&>(*engine) : *http; }
  std::string decode(std::string_view data) const { return engine ? engine->decode(data) : std::string(data); }
};

struct Outcome {
  mlperf::RunEnd end;
  mlperf::DetailLog log;
  std::optional<mlperf::Accuracy> accuracy;
  mlperf::LoadgenRun::Seeds seeds;
  bool token_latencies = false;
  mlperf::Mode mode = mlperf::Mode::kPerformance;
  std::string conf;

  bool fine() const { return mode == mlperf::Mode::kAccuracy ? log.errors.empty() : log.valid() && log.errors.empty(); }
};

Status read_scenario(MlperfVerb& verb) {
  const std::string& s = verb.scenario;
  verb.rules.interactive = s == "Interactive";
  if (s == "Offline") verb.rules.scenario = Scenario::kOffline;
  if (s == "SingleStream") verb.rules.scenario = Scenario::kSingleStream;
  if (s == "MultiStream") verb.rules.scenario = Scenario::kMultiStream;
  if (s == "Server" || verb.rules.interactive) verb.rules.scenario = Scenario::kServer;
  if (s.empty()) return fail(ErrorCode::kInvalidArgument, "--scenario is one of Offline, Server, SingleStream, MultiStream, Interactive");
  if (verb.model.model.empty())
    return fail(ErrorCode::kInvalidArgument, "--model names the model; with --url, the one that the server serves");
  if (verb.dataset.empty()) return fail(ErrorCode::kInvalidArgument, "--dataset names a JSONL file of prompts");
  if (verb.find_peak && (verb.accuracy || verb.rules.scenario != Scenario::kServer))
    return fail(ErrorCode::kInvalidArgument, "--find-peak is for Server and Interactive, and not for accuracy");
  if (const std::string& b = verb.rules.benchmark; !b.empty()) {
    const mlperf::Benchmark* known = mlperf::find_benchmark(b);
    if (!known) return fail(ErrorCode::kInvalidArgument, "no benchmark is named {}: --list names those that are known", b);
    if (verb.rules.interactive && known->interactive.ttft_ms == 0)
      return fail(ErrorCode::kInvalidArgument, "{} has no Interactive variant", b);
    if (!verb.max_tokens && known->max_tokens > 0) verb.max_tokens = known->max_tokens;
  }
  return {};
}

Result<Answering> start_answering(const MlperfVerb& verb, const mlperf::Dataset& dataset) {
  const std::int64_t most = verb.max_tokens.value_or(128), least = verb.min_tokens.value_or(2);
  if (least > most) return fail(ErrorCode::kInvalidArgument, "--min-tokens {} is more than --max-tokens {}", least, most);
  Answering out;
  if (verb.over_http()) {
    mlperf::HttpSourceOptions o;
    o.target = {.url = verb.url, .chat = !verb.completions, .headers = {}, .api_key = verb.api_key, .tls = {}};
    for (const std::string& header : verb.headers) {
      const std::size_t colon = header.find(':');
      if (colon == std::string::npos) return fail(ErrorCode::kInvalidArgument, "'{}' is no header: NAME: VALUE", header);
      const std::size_t value = header.find_first_not_of(' ', colon + 1);
      o.target.headers.emplace_back(header.substr(0, colon), value == std::string::npos ? "" : header.substr(value));
    }
    o.model = verb.model.model;
    o.max_tokens = most;
    o.min_tokens = least;
    o.cache_salt = !verb.no_salt;
    o.max_open = verb.connections;
    o.timeout = std::chrono::seconds(verb.timeout_s);
    o.seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    WEIR_ASSIGN(out.http, mlperf::HttpSource::start(o, dataset));
    return out;
  }
  WEIR_ASSIGN(const auto kv_type, engine::parse_kv_type(verb.kv_type));
  WEIR_ASSIGN(engine::LoadedModel loaded, pull_and_load(verb.model));
  out.loaded = std::make_unique<engine::LoadedModel>(std::move(loaded));
  const mlperf::EngineSourceOptions o{
      .max_tokens = most, .min_tokens = least, .chat = !verb.completions, .max_running = verb.max_running, .kv_type = kv_type};
  WEIR_ASSIGN(out.engine, mlperf::EngineSource::start(*out.loaded, o, dataset));
  return out;
}

bool go_on() { return !interrupted(); }

// LoadGen and the source's threads are still at work: nothing may be taken away from under them.
[[noreturn]] void leave(const Error& error) {
  (void)report_error(error);
  std::fflush(nullptr);
  std::_Exit(interrupted() ? kExitInterrupted : kExitUsage);
}

// The one user.conf of the run, beside its logs. How long a query takes is measured where nobody says it.
Result<std::string> write_conf(const MlperfVerb& verb, const fs::path& folder, double query_s) {
  mlperf::ConfOptions rules = verb.rules;
  std::string users;
  if (!verb.conf.empty()) {
    WEIR_ASSIGN(users, read_file(verb.conf, 1u << 20));
  }
  const bool streams = rules.scenario == Scenario::kSingleStream || rules.scenario == Scenario::kMultiStream;
  if (streams && query_s > 0 && !rules.target_latency_ms &&
      !mlperf::conf_sets(users, mlperf::model_key(rules), rules.scenario, "target_latency"))
    rules.target_latency_ms = query_s * 1e3 * kSlack;
  WEIR_ASSIGN(std::string text, mlperf::make_user_conf(rules, users));
  WEIR_TRY(write_file_atomically(folder / "user.conf", text));
  return text;
}

Result<Outcome> run_loadgen(const MlperfVerb& verb, const Answering& answering, const mlperf::Dataset& dataset, const fs::path& folder) {
  const bool multi = verb.rules.scenario == Scenario::kMultiStream;
  const int width = multi ? static_cast<int>(verb.rules.samples_per_query.value_or(8)) : 1;
  auto warm = mlperf::warm_up(answering.source(), dataset.samples.size(), verb.warm_up, width, std::chrono::seconds(verb.timeout_s), go_on);
  if (!warm) {
    if (warm.error().code != ErrorCode::kNetwork) leave(warm.error());
    return std::unexpected(std::move(warm.error()));
  }
  Outcome out;
  WEIR_ASSIGN(out.conf, write_conf(verb, folder, warm->fastest_s));
  mlperf::RunConfig config;
  config.scenario = verb.rules.scenario;
  if (verb.accuracy) config.mode = mlperf::Mode::kAccuracy;
  if (verb.find_peak) config.mode = mlperf::Mode::kFindPeak;
  config.model = mlperf::model_key(verb.rules);
  config.user_conf = folder / "user.conf";
  config.output = folder;
  config.trace = verb.trace;
  WEIR_ASSIGN(const std::unique_ptr<mlperf::LoadgenRun> run, mlperf::LoadgenRun::configure(config));
  out.token_latencies = run->token_latencies();
  out.mode = run->mode();
  out.seeds = run->seeds();
  if (out.token_latencies && warm->least_tokens >= 0 && warm->least_tokens < 2)
    return fail(
        ErrorCode::kUnsupported,
        "an answer had {} token(s); where tokens are timed LoadGen needs two: the server does not keep to min_tokens, so give prompts "
        "with longer answers",
        warm->least_tokens);
  auto end = run->run(answering.source(), dataset.samples.size(), dataset.name, go_on);
  if (!end) leave(end.error());
  out.end = std::move(*end);
  WEIR_ASSIGN(out.log, mlperf::read_detail(folder));
  return out;
}

Status score_answers(const Answering& answering, const mlperf::Dataset& dataset, const fs::path& folder, Outcome& outcome) {
  WEIR_ASSIGN(const auto logged, mlperf::read_accuracy(folder));
  WEIR_ASSIGN(outcome.accuracy, mlperf::score_log(logged, dataset, [&](std::string_view data) { return answering.decode(data); }));
  WEIR_TRY(write_json((folder / "accuracy.json").string(), mlperf::to_json(*outcome.accuracy, dataset)));
  return write_file_atomically(folder / "accuracy.txt", mlperf::to_text(*outcome.accuracy));
}

json::Object results_json(const MlperfVerb& verb, const Answering& answering, const mlperf::Dataset& dataset, const Outcome& outcome) {
  json::Object target{{"over", verb.over_http() ? "http" : "process"}, {"name", answering.source().name()}, {"model", verb.model.model}};
  if (answering.http) {
    target["url"] = verb.url;
    target["cache_salt"] = !verb.no_salt;
    target["cached_tokens"] = answering.http->notes().cached_tokens;
  } else {
    target["path"] = answering.loaded->path.string();
    target["kernel_table"] = answering.loaded->backend->description();
    target["max_running"] = verb.max_running;
    target["prefix_cache"] = false;
    target["speculation"] = false;
  }
  json::Object out{
      {"schema", "weir.bench.mlperf/1"},
      {"loadgen", mlperf::loadgen_version()},
      {"scenario", verb.scenario},
      {"mode", mlperf::mode_name(outcome.mode)},
      {"benchmark", verb.rules.benchmark},
      {"model_key", mlperf::model_key(verb.rules)},
      {"token_latencies", outcome.token_latencies},
      {"target", std::move(target)},
      {"dataset", json::Object{{"name", dataset.name}, {"sha256", dataset.sha256}, {"samples", dataset.samples.size()}}},
      {"max_tokens", verb.max_tokens.value_or(128)},
      {"min_tokens", verb.min_tokens.value_or(2)},
      {"user_conf", outcome.conf},
      {"seeds",
       json::Object{{"qsl", outcome.seeds.qsl}, {"sample_index", outcome.seeds.sample_index}, {"schedule", outcome.seeds.schedule}}},
      {"answered", outcome.end.answered},
      {"failed", outcome.end.failed},
      {"short_answers", outcome.end.short_answers},
      {"log", mlperf::to_json(outcome.log)}};
  if (outcome.accuracy) {
    json::Object accuracy = mlperf::to_json(*outcome.accuracy, dataset);
    accuracy.erase("samples");
    out["accuracy"] = std::move(accuracy);
  }
  return out;
}

void print_header(const MlperfVerb& verb, const Answering& answering, const mlperf::Dataset& dataset, const Outcome& outcome,
                  const fs::path& folder) {
  fmt::print("MLPerf LoadGen {}, unmodified: {}, {}, rules of {}\n", mlperf::loadgen_version(), verb.scenario,
             mlperf::mode_name(outcome.mode), verb.rules.benchmark.empty() ? "no benchmark" : mlperf::model_key(verb.rules));
  fmt::print("{}; {} ({} samples, sha256 {}); logs in {}\n", log::printable(answering.source().name()), log::printable(dataset.name),
             dataset.samples.size(), dataset.sha256.substr(0, 16), log::printable(folder.string()));
  if (answering.engine)
    fmt::print("nothing is kept from sample to sample and no tokens are guessed, as the rules want\n");
  else
    fmt::print(
        "{}; the server said that it had {} prompt tokens already\n",
        verb.no_salt ? "no cache_salt: whether the server keeps prefixes is its own affair" : "each request has a cache_salt of its own",
        answering.http->notes().cached_tokens);
  const double duration = outcome.log.number("effective_min_duration_ms");
  if (outcome.mode == mlperf::Mode::kPerformance && duration < 600'000)
    fmt::print("runs for at least {}; a submission's for 600 s\n", format_duration(duration * 1e-3));
}

Status print_outcome(const MlperfVerb& verb, const Outcome& outcome) {
  if (outcome.mode != mlperf::Mode::kAccuracy) fmt::print("{}", mlperf::to_text(outcome.log, verb.rules.scenario, outcome.token_latencies));
  if (const auto peak = mlperf::peak_of(outcome.log))
    fmt::print("peak: {:g} queries/s, the highest rate tried that holds the bounds; LoadGen's verdict is on the run at that rate\n", *peak);
  if (outcome.accuracy) {
    fmt::print("{}", mlperf::to_text(*outcome.accuracy));
    if (const auto* b = mlperf::find_benchmark(verb.rules.benchmark))
      fmt::print("{} wants over its own data set: {}\n", b->key, b->accuracy);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(outcome.log.errors.size(), 5); ++i)
    fmt::print("LoadGen's log holds an error: {}\n", log::printable(outcome.log.errors[i]));
  if (outcome.log.errors.size() > 5) fmt::print("and {} more\n", outcome.log.errors.size() - 5);
  if (outcome.end.failed > 0)
    return fail(ErrorCode::kNetwork, "{} of {} samples failed, so the figures mean nothing: {}", outcome.end.failed,
                outcome.end.failed + outcome.end.answered, outcome.end.first_failure);
  return {};
}

Result<bool> run_in(MlperfVerb& verb, const fs::path& folder) {
  WEIR_ASSIGN(const mlperf::Dataset dataset, mlperf::read_dataset(verb.dataset));
  catch_interrupts();
  WEIR_ASSIGN(const Answering answering, start_answering(verb, dataset));
  WEIR_ASSIGN(Outcome outcome, run_loadgen(verb, answering, dataset, folder));
  if (outcome.mode == mlperf::Mode::kAccuracy) WEIR_TRY(score_answers(answering, dataset, folder, outcome));
  print_header(verb, answering, dataset, outcome, folder);
  const Status fine = print_outcome(verb, outcome);
  const json::Object results = results_json(verb, answering, dataset, outcome);
  if (verb.record.only.empty() && verb.record.record.empty()) verb.record.record = (folder / "run.json").string();
  std::vector<loadgen::Figure> figures = mlperf::figures_of(outcome.log, verb.rules.scenario, outcome.token_latencies);
  if (const auto peak = mlperf::peak_of(outcome.log))
    figures.push_back({.name = "peak_qps", .unit = "1/s", .value = *peak, .higher_is_better = true});
  if (outcome.accuracy && outcome.accuracy->scored > 0) {
    figures.push_back({.name = "exact_match", .unit = "%", .value = outcome.accuracy->exact_match, .higher_is_better = true});
    figures.push_back({.name = "rougeL", .unit = "%", .value = outcome.accuracy->rouge_l, .higher_is_better = true});
  }
  WEIR_TRY(verb.record.write("mlperf", outcome.seeds.schedule, outcome.fine() && fine, std::move(figures), results));
  if (!verb.json.empty() && verb.record.may_write_others()) WEIR_TRY(write_json(verb.json, results));
  WEIR_TRY(fine);
  return outcome.fine();
}

Result<bool> run(MlperfVerb& verb) {
  if (verb.list) {
    fmt::print("{}", mlperf::benchmark_table());
    if (!verb.json.empty()) WEIR_TRY(write_json(verb.json, {{"benchmarks", mlperf::benchmarks_json()}}));
    return true;
  }
  if (!mlperf::loadgen_available()) {
    WEIR_TRY(mlperf::LoadgenRun::configure({}));  // tells what to do
  }
  if (verb.print_conf) {
    fmt::print("{}", mlperf::built_in_mlperf_conf());
    return true;
  }
  WEIR_TRY(read_scenario(verb));
  fs::path folder = verb.output;
  if (!verb.record.may_write_others()) folder = fs::temp_directory_path() / fmt::format("weir-mlperf-{}", ::getpid());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  auto done = run_in(verb, folder);
  if (!verb.record.may_write_others()) fs::remove_all(folder, error);
  return done;
}

void add_what(CLI::App& app, MlperfVerb& verb) {
  app.add_option("--scenario", verb.scenario, "Offline, Server, SingleStream, MultiStream, or Interactive (Server with tighter bounds)")
      ->check(CLI::IsMember({"Offline", "Server", "SingleStream", "MultiStream", "Interactive"}));
  app.add_option("--model", verb.model.model,
                 "In process: catalogue name, GGUF file or Hugging Face folder. With --url: the server's name for it");
  app.add_option("--url", verb.url, "A server instead: http://host:port, or an endpoint's whole address");
  app.add_option("--dataset", verb.dataset, R"(JSONL: {"prompt": …} or {"messages": …} or {"tokens": …}, perhaps "answer")");
  app.add_option("--benchmark", verb.rules.benchmark,
                 "Whose rules apply: llama2-70b, llama3_1-8b, …; none: tokens timed, llama2-70b's bounds");
  app.add_flag("--accuracy", verb.accuracy, "Each sample once; the answers are scored against the data set's");
  app.add_flag("--find-peak", verb.find_peak, "Server: the highest rate that holds the bounds; --target-qps must hold them");
  app.add_option("--output", verb.output, "Folder for LoadGen's logs, user.conf, run.json and the scores")->capture_default_str();
  app.add_option("--json", verb.json, "Also write the results (or the --list) as JSON; '-' is standard output");
  app.add_flag("--list", verb.list, "What each benchmark asks");
  app.add_flag("--mlperf-conf", verb.print_conf, "Print the mlperf.conf that is compiled into LoadGen");
}

void add_rules(CLI::App& app, MlperfVerb& verb) {
  mlperf::ConfOptions& r = verb.rules;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto count = [&](const char* name, std::optional<std::int64_t>& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(std::int64_t{0}, kMost))->group("Rules (they go into user.conf, and win)");
  };
  app.add_option("--conf", verb.conf, "A user.conf of yours: model.scenario.key = number")
      ->group("Rules (they go into user.conf, and win)");
  app.add_option("--target-qps", r.target_qps, "Server: the rate. Offline: the rate expected, from which the number of samples follows")
      ->group("Rules (they go into user.conf, and win)");
  app.add_option("--target-latency", r.target_latency_ms,
                 "ms, SingleStream and MultiStream: expected of a query; default: as in the warm-up")
      ->group("Rules (they go into user.conf, and win)");
  app.add_option("--percentile", r.percentile, "Of latency, that is judged")->group("Rules (they go into user.conf, and win)");
  count("--min-duration", r.min_duration_ms, "ms");
  count("--max-duration", r.max_duration_ms, "ms");
  count("--min-query-count", r.min_query_count, "Queries; Offline: samples");
  count("--max-query-count", r.max_query_count, "Queries");
  count("--samples-per-query", r.samples_per_query, "MultiStream");
  count("--ttft-latency", r.ttft_ms, "ms: bound on the time to the first token, Server");
  count("--tpot-latency", r.tpot_ms, "ms: bound on the time per token after it, Server");
}

void add_answering(CLI::App& app, MlperfVerb& verb) {
  constexpr const char* kGroup = "Answers";
  app.add_option("--max-tokens", verb.max_tokens, "Of an answer; default: the benchmark's, else 128")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->group(kGroup);
  app.add_option("--min-tokens", verb.min_tokens, "Of an answer; default 2, without which LoadGen can tell no time per token")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30))
      ->group(kGroup);
  app.add_flag("--completions", verb.completions, "A prompt is bare text, not what a user says in a chat")->group(kGroup);
  app.add_option("--warm-up", verb.warm_up, "Queries before LoadGen takes a time")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--timeout", verb.timeout_s, "s, of a request")->check(CLI::Range(1, 86400))->capture_default_str()->group(kGroup);
  app.add_flag("--trace", verb.trace, "LoadGen also writes its trace")->group(kGroup);
  constexpr const char* kProcess = "In process";
  app.add_option("--max-running", verb.max_running, "Samples in a step at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->group(kProcess);
  app.add_option("--kv-type", verb.kv_type, "Element type of the KV cache: f32, f16, bf16, q8_0 or auto")
      ->capture_default_str()
      ->group(kProcess);
  app.add_option("-t,--threads", verb.model.threads, "Threads to compute with; 0: as many as help")
      ->check(CLI::Range(0, 4096))
      ->group(kProcess);
  verb.model.activations = "int8";
  app.add_option("--activations", verb.model.activations, "In products with quantised weights: int8 or f32")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->capture_default_str()
      ->group(kProcess);
  app.add_option("--isa", verb.model.isa, "Kernel table; default: the best this machine runs")->group(kProcess);
  constexpr const char* kHttp = "Over HTTP";
  app.add_option("--connections", verb.connections, "At most; further samples wait, and their latency counts")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->group(kHttp);
  app.add_flag("--no-cache-salt", verb.no_salt, "For servers that refuse the field cache_salt")->group(kHttp);
  app.add_option("--api-key", verb.api_key, "Sent as a bearer token")->group(kHttp);
  app.add_option("--header", verb.headers, "NAME: VALUE, sent with each request")->allow_extra_args(false)->group(kHttp);
}

}  // namespace

void add_bench_mlperf(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<MlperfVerb>();
  CLI::App* app = bench.add_subcommand("mlperf", "MLPerf Inference's own LoadGen, unmodified, on a model or a server");
  add_what(*app, *verb);
  add_rules(*app, *verb);
  add_answering(*app, *verb);
  verb->record.add_to(*app);
  app->footer(
      "LoadGen decides when to ask and what is valid; its logs stay as it wrote them, and an audit.config in the working folder counts.\n"
      "Exit status: 0 valid, 1 invalid or errors in LoadGen's log, 2 the run could not be made.\n"
      "Examples:\n"
      "  weir bench mlperf --list\n"
      "  weir bench mlperf --scenario Offline --model smollm2 --dataset prompts.jsonl --target-qps 20\n"
      "  weir bench mlperf --scenario Server --url http://localhost:8080 --model smollm2 --dataset prompts.jsonl --target-qps 4\n"
      "  weir bench mlperf --scenario Interactive --benchmark llama3_1-8b --model llama.gguf --dataset cnn.jsonl --target-qps 0.5\n"
      "  weir bench mlperf --scenario Offline --accuracy --model smollm2 --dataset prompts.jsonl\n"
      "  weir bench mlperf --scenario SingleStream --model smollm2 --dataset prompts.jsonl --min-duration 5000 --min-query-count 64\n");
  app->callback([verb, &exit_status] {
    const auto fine = run(*verb);
    if (!fine) {
      const int status = report_error(fine.error());
      exit_status = status == kExitInterrupted ? status : kExitUsage;
    } else {
      exit_status = *fine ? 0 : kExitFailed;
    }
  });
}

}  // namespace weir::cli
