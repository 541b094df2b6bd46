// SPDX-License-Identifier: Apache-2.0
#include "bench_load_observe.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "http/head_syntax.h"
#include "http/url.h"

namespace weir::cli {
namespace {

constexpr char kGroup[] = "Server";
constexpr std::size_t kMostUrls = 64;

// Credentials go to the server that the load goes to, and to nobody else.
loadgen::MetricsSource source_of(const std::string& url, const loadgen::TargetOptions& target, const http::Url& load) {
  loadgen::MetricsSource source{.url = url, .headers = {}};
  const auto parsed = http::parse_url(url);
  if (!parsed || parsed->authority != load.authority || parsed->tls != load.tls) return source;
  if (!target.api_key.empty()) source.headers.add("Authorization", "Bearer " + http::header_safe(target.api_key));
  for (const auto& [name, value] : target.headers)
    if (http::is_token(name)) source.headers.add(name, http::header_safe(value));
  return source;
}

}  // namespace

void ObserveOptions::add_to(CLI::App& app) {
  app.add_flag("--collect-metrics", collect_,
               "Read the server's Prometheus metrics during each run, and what this machine does; without --metrics-url from URL's own "
               "/metrics, or, where that is none, from localhost:8002/metrics")
      ->group(kGroup);
  app.add_option("--metrics-url", urls_, "Where they are, say localhost:8002/metrics; as often as wanted. Implies --collect-metrics")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_option("--metrics-interval", interval_ms_, "ms between two readings")
      ->check(CLI::Range(10.0, 3.6e6))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--metrics-filter", filter_,
                 "Which series: a regular expression for the beginnings of their names, say vllm: or 'weir_(kv|prefix)'. Without it, those "
                 "that Weir, vLLM, SGLang, llama.cpp, TGI, Triton, Dynamo and DCGM are known for")
      ->group(kGroup);
  app.add_option("--server-pid", server_pid_,
                 "The server's process on this machine: its processors and memory. Without it, who listens at URL's port, if URL is local")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
}

Status ObserveOptions::attach(loadgen::LoadSpec& spec) {
  if (!wanted()) return {};
  WEIR_ASSIGN(const http::Url load, http::parse_typed_url(spec.target.url));
  if (urls_.size() > kMostUrls) return fail(ErrorCode::kInvalidArgument, "--metrics-url: {} at most", kMostUrls);
  const std::string base = http::origin_of(load);
  loadgen::ObserverOptions options;
  options.interval = std::chrono::microseconds(std::llround(interval_ms_ * 1e3));
  options.filter = filter_;
  options.tls = spec.target.tls;
  for (const std::string& text : urls_) {
    auto url = loadgen::metrics_url(text);
    if (!url) return std::unexpected(std::move(url).error().with_context("--metrics-url"));
    options.sources.push_back(source_of(*url, spec.target, load));
  }
  if (collect_ && urls_.empty()) {
    loadgen::FoundMetrics found = loadgen::find_metrics(source_of(base + "/metrics", spec.target, load), options.tls);
    options.sources.push_back(source_of(found.url, spec.target, load));
    if (!found.note.empty()) options.notes.push_back(std::move(found.note));
  }
  options.machine.server_pid = server_pid_ > 0 ? std::optional(server_pid_) : loadgen::find_server_pid(base);
  WEIR_ASSIGN(observer_, loadgen::Observer::make(std::move(options)));
  spec.run.watcher = observer_.get();
  return {};
}

void ObserveOptions::add_to(loadgen::Measured& measured) const {
  if (observer_) measured.seen["observations"] = observer_->take();
}

}  // namespace weir::cli
