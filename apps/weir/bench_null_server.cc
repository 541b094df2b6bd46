// SPDX-License-Identifier: Apache-2.0
// weir bench null-server: a server without a model whose pace is programmed, to test load generators with.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "bench.h"
#include "loadgen/null_server.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct NullServerVerb {
  std::string listen = "127.0.0.1:8001", ttft = "0", itl = "0", tokens = "0", model = "null", arrivals;
  std::vector<std::string> stalls;
  int tokens_per_event = 1, slots = 0, error_status = 500;
  std::int64_t error_every = 0, cut_every = 0, cached_tokens = 0;
  std::uint64_t seed = 1;
};

Result<loadgen::NullServerOptions> options_of(const NullServerVerb& verb) {
  using loadgen::Distribution;
  loadgen::NullServerOptions options;
  options.listen = verb.listen;
  WEIR_ASSIGN(options.ttft, Distribution::parse(verb.ttft, Distribution::Unit::kSeconds));
  WEIR_ASSIGN(options.itl, Distribution::parse(verb.itl, Distribution::Unit::kSeconds));
  WEIR_ASSIGN(options.tokens, Distribution::parse(verb.tokens, Distribution::Unit::kPlain));
  for (const std::string& text : verb.stalls) {
    WEIR_ASSIGN(const auto stall, loadgen::parse_stall(text));
    options.stalls.push_back(stall);
  }
  options.tokens_per_event = verb.tokens_per_event;
  options.slots = verb.slots;
  options.error_every = verb.error_every;
  options.error_status = verb.error_status;
  options.cut_every = verb.cut_every;
  options.cached_tokens = verb.cached_tokens;
  options.seed = verb.seed;
  options.model = verb.model;
  options.keep_requests = !verb.arrivals.empty();
  return options;
}

Status run(const NullServerVerb& verb) {
  catch_interrupts();
  WEIR_ASSIGN(loadgen::NullServerOptions options, options_of(verb));
  WEIR_ASSIGN(const auto server, loadgen::NullServer::start(std::move(options)));
  fmt::print("listening at http://{}\n", server->address());
  std::fflush(stdout);
  while (!interrupted()) ::usleep(50'000);
  const loadgen::NullServerStats stats = server->stop();
  fmt::print("{} requests, {} events; events left late by p50 {:.1f} µs, p99 {:.1f} µs, max {:.1f} µs\n", stats.requests, stats.events,
             stats.late_p50 * 1e6, stats.late_p99 * 1e6, stats.late_max * 1e6);
  if (verb.arrivals.empty()) return {};
  std::ofstream file(verb.arrivals, std::ios::binary);
  file << loadgen::served_csv(stats.served);
  file.close();
  if (!file) return fail(ErrorCode::kIo, "writing {} failed", verb.arrivals);
  return {};
}

}  // namespace

void add_bench_null_server(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<NullServerVerb>();
  CLI::App* app = bench.add_subcommand("null-server", "An OpenAI-compatible server without a model that answers at a programmed pace");
  app->add_option("--listen", verb->listen, "Address and port; port 0 takes any free one")->capture_default_str();
  app->add_option("--ttft", verb->ttft, "Time to first token: 50ms, normal:50ms,5ms, exp:50ms, empirical:10ms,10ms,200ms, …")
      ->capture_default_str();
  app->add_option("--itl", verb->itl, "Time between tokens, likewise")->capture_default_str();
  app->add_option("--tokens", verb->tokens, "Tokens of an answer, likewise; 0: the request's max_tokens")->capture_default_str();
  app->add_option("--tokens-per-event", verb->tokens_per_event, "Tokens that come together")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--slots", verb->slots, "Requests served at a time, the others wait in order; 1: a serial server, 0: all at once")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--stall", verb->stalls, "AT+LENGTH, say 2s+500ms after the first request: nothing moves. As often as wanted");
  app->add_option("--error-every", verb->error_every, "Each n-th request fails")->check(CLI::NonNegativeNumber);
  app->add_option("--error-status", verb->error_status, "With this status")->check(CLI::Range(400, 599))->capture_default_str();
  app->add_option("--cut-every", verb->cut_every, "Each n-th request's connection is cut in the middle of its answer")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--cached-tokens", verb->cached_tokens, "That usage tells")->check(CLI::NonNegativeNumber);
  app->add_option("--arrivals", verb->arrivals, "Writes at its end when each request came and was answered, as CSV: to judge its clients");
  app->add_option("--model", verb->model, "The model's name")->capture_default_str();
  app->add_option("--seed", verb->seed, "Of the distributions")->capture_default_str();
  app->footer(
      "Until Ctrl-C; then it tells how exactly it kept its pace.\n"
      "Example:\n"
      "  weir bench null-server --ttft 200ms --itl 20ms &\n"
      "  weir bench load http://127.0.0.1:8001 --rate 20 -d 10s\n");
  app->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
