// SPDX-License-Identifier: Apache-2.0
#include "mlperf/user_conf.h"

#include <fmt/core.h>

#include <cmath>
#include <sstream>

namespace weir::mlperf {
namespace {

constexpr TokenBounds kOwnServer{2000, 200}, kOwnInteractive{450, 40};  // llama2-70b's

bool is_stream(Scenario s) { return s == Scenario::kSingleStream || s == Scenario::kMultiStream; }

Status check(const ConfOptions& o) {
  const auto refuse = [&](const char* option, const char* scenarios) {
    return fail(ErrorCode::kInvalidArgument, "{} is for {}", option, scenarios);
  };
  if (o.target_qps && is_stream(o.scenario)) return refuse("--target-qps", "Server, Interactive and Offline; here it is --target-latency");
  if (o.target_latency_ms && !is_stream(o.scenario)) return refuse("--target-latency", "SingleStream and MultiStream");
  if (o.samples_per_query && o.scenario != Scenario::kMultiStream) return refuse("--samples-per-query", "MultiStream");
  if ((o.ttft_ms || o.tpot_ms) && o.scenario != Scenario::kServer) return refuse("a bound of latency", "Server and Interactive");
  if (o.percentile && o.scenario == Scenario::kOffline) return refuse("--percentile", "scenarios with latencies");
  for (const auto& value : {o.target_qps, o.target_latency_ms})
    if (value && !(std::isfinite(*value) && *value > 0 && *value <= 1e9))
      return fail(ErrorCode::kInvalidArgument, "{} is no rate or latency", *value);
  if (o.percentile && !(*o.percentile > 0 && *o.percentile < 100))
    return fail(ErrorCode::kInvalidArgument, "{} is no percentile", *o.percentile);
  return {};
}

}  // namespace

std::string model_key(const ConfOptions& options) {
  const std::string key(options.benchmark.empty() ? std::string(kOwnKey) : options.benchmark);
  return options.interactive ? key + "-interactive" : key;
}

Result<std::string> make_user_conf(const ConfOptions& options, std::string_view users_text) {
  WEIR_TRY(check(options));
  const std::string scenario = scenario_name(options.scenario), key = model_key(options);
  std::string out;
  if (options.benchmark.empty()) {
    const TokenBounds bounds = options.interactive ? kOwnInteractive : kOwnServer;
    out += fmt::format(
        "# No benchmark's rules: tokens are timed, samples come in whole permutations, bounds as llama2-70b's.\n"
        "*.*.use_token_latencies = 1\n*.*.sample_concatenate_permutation = 1\n"
        "*.Server.target_latency = 0\n*.Server.ttft_latency = {}\n*.Server.tpot_latency = {}\n",
        bounds.ttft_ms, bounds.tpot_ms);
  }
  if (!users_text.empty()) out += fmt::format("# From --conf:\n{}{}", users_text, users_text.ends_with('\n') ? "" : "\n");
  std::string lines;
  const auto add = [&](std::string_view name, const auto& value) {
    if (value) lines += fmt::format("{}.{}.{} = {:.6g}\n", key, scenario, name, static_cast<double>(*value));
  };
  add("target_qps", options.target_qps);
  add("target_latency", options.target_latency_ms);
  add("target_latency_percentile", options.percentile);
  add("min_duration", options.min_duration_ms);
  add("max_duration", options.max_duration_ms);
  add("min_query_count", options.min_query_count);
  add("max_query_count", options.max_query_count);
  add("samples_per_query", options.samples_per_query);
  add("ttft_latency", options.ttft_ms);
  add("tpot_latency", options.tpot_ms);
  if (!lines.empty()) out += "# From options:\n" + lines;
  return out;
}

bool conf_sets(std::string_view text, const std::string& model, Scenario scenario, std::string_view key) {
  const std::string name = scenario_name(scenario);
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) continue;
    for (const std::string& m : {model, std::string("*")})
      for (const std::string& s : {name, std::string("*")})
        if (word == fmt::format("{}.{}.{}", m, s, key)) return true;
  }
  return false;
}

}  // namespace weir::mlperf
