// SPDX-License-Identifier: Apache-2.0
#include "bench_load_options.h"

#include <CLI/CLI.hpp>

#include "store/resolve.h"

namespace weir::cli {
namespace {

void add_load_options(CLI::App& app, LoadOptions& o) {
  app.add_option(
         "-r,--rate", o.rate,
         "Open loop: requests a second, as Poisson arrivals; or constant:R, gamma:R,BURSTINESS, bursts:R,N, ramp:FROM,TO, expramp:FROM,TO, "
         "stairs:R,R,…, diurnal:R,SWING,PERIOD")
      ->group("Load");
  app.add_option("--request-distribution", o.distribution, "Arrivals of a plain --rate: constant or poisson")
      ->check(CLI::IsMember({"constant", "poisson"}))
      ->group("Load");
  app.add_option("-c,--concurrency", o.concurrency, "Closed loop: so many users, each waits for its answer")
      ->check(CLI::NonNegativeNumber)
      ->group("Load");
  app.add_option("--trace", o.trace, "Open loop: the moments and lengths of a trace (Azure's CSV or Mooncake's JSONL)")->group("Load");
  app.add_option("--trace-speed", o.trace_speed, "Replays it so many times faster")->check(CLI::PositiveNumber)->group("Load");
  app.add_option("-n,--requests,--request-count", o.requests, "How many conversations")->check(CLI::NonNegativeNumber)->group("Load");
  app.add_option("-d,--duration", o.duration, "For how long, say 60s; with --requests: whichever ends first")->group("Load");
  app.add_option("--max-concurrency,--connections", o.max_concurrency,
                 "Open loop: at most so many at a time; what is due then waits, and its latency grows")
      ->check(CLI::NonNegativeNumber)
      ->group("Load");
  app.add_option("--think", o.think, "Time between an answer and the same user's next request: 2s, exp:2s, …")
      ->capture_default_str()
      ->group("Load");
  app.add_option("--seed", o.seed, "Same seed: same moments, same prompts")->capture_default_str()->group("Load");
}

void add_prompt_options(CLI::App& app, LoadOptions& o) {
  app.add_option("--prompts", o.prompts, "synthetic, text, jsonl or sharegpt")
      ->check(CLI::IsMember({"synthetic", "text", "jsonl", "sharegpt"}))
      ->capture_default_str()
      ->group("Prompts");
  app.add_option("--prompt-file", o.prompt_file, "Where text, jsonl or sharegpt prompts come from")->group("Prompts");
  app.add_option("--input-tokens,--isl", o.input_tokens,
                 "Length of a prompt: 512, normal:512,64, lognormal:512,300, uniform:100,900, empirical:1,2,3")
      ->capture_default_str()
      ->group("Prompts");
  app.add_option("--output-tokens,--osl", o.output_tokens, "max_tokens, likewise; 0 leaves it out")
      ->capture_default_str()
      ->group("Prompts");
  app.add_option("--tokenizer", o.tokenizer,
                 "A model whose tokenizer makes lengths exact (a name, GGUF file or folder); else words are counted")
      ->group("Prompts");
  app.add_option("--shared-prefix", o.shared_prefix, "Share of each prompt that is common, 0 to 1")
      ->check(CLI::Range(0.0, 1.0))
      ->group("Prompts");
  app.add_option("--prefix-groups", o.prefix_groups, "So many different common prefixes")->check(CLI::PositiveNumber)->group("Prompts");
  app.add_option("--turns", o.turns, "Turns of a conversation, each repeating what was said before")
      ->capture_default_str()
      ->group("Prompts");
  app.add_option("--different-prompts", o.most_prompts, "Then they repeat")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Prompts");
}

void add_request_options(CLI::App& app, LoadOptions& o) {
  app.add_option("--endpoint", o.endpoint, "chat or completions")
      ->check(CLI::IsMember({"chat", "completions"}))
      ->capture_default_str()
      ->group("Requests");
  app.add_option("-m,--model", o.model, "The model's name; without it the server's first one")->group("Requests");
  app.add_option("-H,--header", o.headers, "\"Name: value\", as often as wanted")->allow_extra_args(false)->group("Requests");
  app.add_option("--api-key", o.api_key, "A bearer token")->envname("OPENAI_API_KEY")->group("Requests");
  app.add_option("--extra", o.extra, "JSON object whose members every request gets, say {\"temperature\":0}")->group("Requests");
  app.add_flag("--no-stream", o.no_stream, "Whole answers: no time to first token then")->group("Requests");
  app.add_flag("--ignore-eos", o.ignore_eos, "Answers of exactly max_tokens, if the server knows that field")->group("Requests");
  app.add_flag("--timings", o.timings, "Ask for the server's own times (queue, prefill, decode)")->group("Requests");
  app.add_flag("--hash-answers", o.hash_answers, "Keep a hash of each answer's text: whether the same prompt always gets the same answer")
      ->group("Requests");
  app.add_option("--timeout", o.timeout, "Of a request")->capture_default_str()->group("Requests");
  app.add_option("--ca-file", o.ca_file, "PEM to verify the server with")->group("Requests");
  app.add_flag("--insecure", o.insecure, "Do not verify the server's certificate")->group("Requests");
}

void add_measure_options(CLI::App& app, LoadOptions& o) {
  app.add_option("--slo", o.slo, "What a good request holds: ttft=500ms,tpot=50ms,itl=…,e2e=…")->group("Measuring");
  app.add_option("--threads", o.threads, "Of the generator")->check(CLI::Range(1, 256))->capture_default_str()->group("Measuring");
  app.add_option("--max-late", o.max_late, "INVALID when the generator's own p99 is later (or 1 % of the median TTFT, if that is longer)")
      ->capture_default_str()
      ->group("Measuring");
  app.add_option("--warm-connections", o.warm_connections, "Opened before the start")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group("Measuring");
  app.add_option("--drain", o.drain, "How long to wait for answers after the last arrival")->capture_default_str()->group("Measuring");
  app.add_option("-p,--measurement-interval", o.interval_ms, "Window of the stability rule, ms")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Measuring");
  app.add_option("-s,--stability-percentage", o.stability_percent, "Three windows within so many per cent are stable")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Measuring");
  app.add_option("--percentile", o.percentile, "Latency that the stability rule looks at; -1: the mean")
      ->capture_default_str()
      ->group("Measuring");
  app.add_option("--max-trials", o.max_trials, "Windows that may pass until it is stable")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group("Measuring");
}

Status take_prompts(const LoadOptions& o, loadgen::LoadSpec& spec) {
  using loadgen::Distribution;
  spec.source = *loadgen::prompt_source(o.prompts);
  spec.prompt_file = o.prompt_file;
  spec.most_prompts = o.most_prompts;
  spec.prompts.shared_prefix = o.shared_prefix;
  spec.prompts.prefix_groups = o.prefix_groups;
  WEIR_ASSIGN(spec.prompts.input_tokens, Distribution::parse(o.input_tokens, Distribution::Unit::kPlain));
  WEIR_ASSIGN(spec.prompts.output_tokens, Distribution::parse(o.output_tokens, Distribution::Unit::kPlain));
  WEIR_ASSIGN(spec.prompts.turns, Distribution::parse(o.turns, Distribution::Unit::kPlain));
  WEIR_ASSIGN(spec.think, Distribution::parse(o.think, Distribution::Unit::kSeconds));
  if (!o.tokenizer.empty()) {
    WEIR_ASSIGN(spec.tokenizer, store::resolve(o.tokenizer));
  }
  return {};
}

Status take_load(const LoadOptions& o, loadgen::LoadSpec& spec) {
  if (o.concurrency > 0 && (!o.rate.empty() || !o.trace.empty()))
    return fail(ErrorCode::kInvalidArgument, "--concurrency is a closed loop: it goes with neither --rate nor --trace");
  spec.users = o.concurrency;
  spec.trace = o.trace;
  spec.trace_speed = o.trace_speed;
  const std::string rate = o.rate.empty() ? "1" : o.rate;
  const bool plain = rate.find(':') == std::string::npos && !o.distribution.empty();
  WEIR_ASSIGN(spec.arrivals, loadgen::ArrivalProcess::parse(plain ? o.distribution + ":" + rate : rate));
  if (o.requests > 0) spec.size.requests = o.requests;
  if (!o.duration.empty()) {
    WEIR_ASSIGN(const double seconds, loadgen::parse_seconds(o.duration));
    spec.size.length = loadgen::to_duration(seconds);
  }
  if (o.requests == 0 && o.duration.empty() && o.trace.empty()) spec.size.requests = 100;
  return {};
}

Status take_request(const LoadOptions& o, const std::string& url, loadgen::LoadSpec& spec) {
  spec.target.url = url;
  spec.target.api_key = o.api_key;
  spec.target.tls.ca = o.ca_file;
  spec.target.tls.verify = !o.insecure;
  for (const std::string& header : o.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos) return fail(ErrorCode::kInvalidArgument, "'{}': a header is written as \"Name: value\"", header);
    const std::size_t value = std::min(header.find_first_not_of(' ', colon + 1), header.size());
    spec.target.headers.emplace_back(header.substr(0, colon), header.substr(value));
  }
  spec.shape.chat = o.endpoint == "chat";
  spec.shape.stream = !o.no_stream;
  spec.shape.model = o.model;
  spec.shape.ignore_eos = o.ignore_eos;
  spec.shape.timings = o.timings;
  spec.shape.hash_answers = o.hash_answers;
  if (!o.extra.empty()) {
    WEIR_ASSIGN(const json::Value extra, json::parse(o.extra, "--extra"));
    WEIR_ASSIGN(const json::Object* object, json::as_object(extra, "--extra"));
    spec.shape.extra = *object;
  }
  return {};
}

}  // namespace

void LoadOptions::add_to(CLI::App& app) {
  add_load_options(app, *this);
  add_prompt_options(app, *this);
  add_request_options(app, *this);
  add_measure_options(app, *this);
  progress.add_to(app);
}

Result<loadgen::LoadSpec> LoadOptions::spec(const std::string& url) const {
  loadgen::LoadSpec spec;
  spec.seed = seed;
  WEIR_TRY(take_load(*this, spec));
  WEIR_TRY(take_prompts(*this, spec));
  WEIR_TRY(take_request(*this, url, spec));
  spec.run.max_concurrency = max_concurrency;
  spec.run.warm_connections = warm_connections;
  spec.run.threads = threads;
  WEIR_ASSIGN(const double timeout_s, loadgen::parse_seconds(timeout));
  WEIR_ASSIGN(const double drain_s, loadgen::parse_seconds(drain));
  WEIR_ASSIGN(const double late_s, loadgen::parse_seconds(max_late));
  spec.run.timeout = loadgen::to_duration(timeout_s);
  spec.run.drain = loadgen::to_duration(drain_s);
  spec.metrics.max_late = loadgen::to_duration(late_s);
  if (!slo.empty()) {
    WEIR_ASSIGN(spec.metrics.slo, loadgen::Slo::parse(slo));
  }
  spec.metrics.stability = stability_percent / 100;
  spec.metrics.stability_window = loadgen::to_duration(interval_ms * 1e-3);
  spec.metrics.stability_percentile = percentile;
  spec.metrics.max_trials = static_cast<int>(std::min<std::int64_t>(max_trials, 1'000'000));
  return spec;
}

}  // namespace weir::cli
