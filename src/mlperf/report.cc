// SPDX-License-Identifier: Apache-2.0
#include "mlperf/report.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "base/units.h"

namespace weir::mlperf {
namespace {

constexpr const char* kPercentiles[] = {"50.00", "90.00", "99.00", "99.90"};

std::string yes(bool b) { return b ? "yes" : "NO"; }

// One line of percentiles out of keys with a gap for the percentile.
std::string latency_line(const DetailLog& log, const char* name, const char* before, const char* after, double bound_ns) {
  std::string line = fmt::format("{:<9}", name);
  for (const char* p : kPercentiles) {
    const json::Value* value = log.find(fmt::format("{}{}{}", before, p, after));
    line += fmt::format(" {:>10}", value ? format_duration(log.number(fmt::format("{}{}{}", before, p, after)) * 1e-9) : "-");
  }
  if (bound_ns > 0) line += fmt::format("   p99 within {}", format_duration(bound_ns * 1e-9));
  return line + "\n";
}

std::string rates(const DetailLog& log, Scenario scenario, bool tokens) {
  switch (scenario) {
    case Scenario::kOffline:
      return fmt::format("samples {:.3f}/s", log.number("result_samples_per_second")) +
             (tokens ? fmt::format(", tokens {:.2f}/s", log.number("result_tokens_per_second")) : "");
    case Scenario::kServer:
      return fmt::format("queries {:.0f}, scheduled {:.3f}/s, completed {:.3f}/s", log.number("result_query_count"),
                         log.number("result_scheduled_samples_per_sec"), log.number("result_completed_samples_per_sec")) +
             (tokens ? fmt::format(", tokens {:.2f}/s", log.number("result_completed_tokens_per_second")) : "");
    case Scenario::kSingleStream:
      return fmt::format("queries {:.0f}, {:.3f}/s", log.number("result_query_count"), log.number("result_qps_with_loadgen_overhead"));
    case Scenario::kMultiStream: return fmt::format("queries {:.0f}", log.number("result_query_count"));
  }
  return {};
}

std::string early_stopping(const DetailLog& log) {
  std::string out;
  for (const char* key : {"early_stopping_result", "early_stopping_ttft_result", "early_stopping_tpot_result"}) {
    std::string text;
    for (const char c : log.text(key))  // several lines with bullets, in one
      if (c != '*' && !(c == ' ' && (text.empty() || text.back() == ' '))) text += c;
    if (text.empty()) continue;
    const std::string_view name = std::string_view(key).substr(std::string_view("early_stopping_").size());
    out += fmt::format("  {:<6}{}\n", name == "result" ? "" : name.substr(0, 4), text);
  }
  return out;
}

}  // namespace

std::string to_text(const DetailLog& log, Scenario scenario, bool token_latencies) {
  std::string out = fmt::format("{}\n", rates(log, scenario, token_latencies));
  out += fmt::format("{:<9} {:>10} {:>10} {:>10} {:>10}\n", "", "p50", "p90", "p99", "p99.9");
  if (scenario == Scenario::kMultiStream)
    out += latency_line(log, "query", "result_", "_percentile_per_query_latency_ns", 0);
  else
    out += latency_line(log, "latency", "result_", "_percentile_latency_ns",
                        scenario == Scenario::kServer && !token_latencies ? log.number("effective_target_latency_ns") : 0);
  if (token_latencies && scenario != Scenario::kOffline) {
    const bool bounds = scenario == Scenario::kServer;
    out += latency_line(log, "TTFT", "result_first_token_", "_percentile_latency_ns",
                        bounds ? log.number("requested_server_ttft_latency") : 0);
    out += latency_line(log, "TPOT", "result_time_per_output_token_", "_percentile_ns",
                        bounds ? log.number("requested_server_tpot_latency") : 0);
  }
  if (scenario != Scenario::kOffline) out += "early stopping\n" + early_stopping(log);
  out += fmt::format("Result is: {}   (", log.text("result_validity"));
  if (scenario == Scenario::kServer) out += fmt::format("performance {}, ", yes(log.flag("result_perf_constraints_met")));
  out += fmt::format("duration {}, queries {}, early stopping {})\n", yes(log.flag("result_min_duration_met")),
                     yes(log.flag("result_min_queries_met")), yes(log.flag("early_stopping_met")));
  if (const std::string reason = log.text("result_invalid_reason"); !reason.empty()) out += fmt::format("  {}\n", reason);
  return out;
}

json::Object to_json(const DetailLog& log) {
  json::Object values;
  for (const auto& [key, value] : log.values)
    if (key.starts_with("result_") || key.starts_with("early_stopping_") || key.starts_with("effective_") || key.starts_with("generated_"))
      values[key] = value;
  json::Array errors;
  for (const std::string& e : log.errors) errors.emplace_back(e);
  return {{"validity", log.text("result_validity")}, {"values", std::move(values)}, {"errors", std::move(errors)}};
}

std::optional<double> peak_of(const DetailLog& log) {
  constexpr std::string_view kFound = "FindPeakPerformance: Found peak performance field: ";
  const std::string message = log.text("generic_message");
  if (!message.starts_with(kFound)) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(message.c_str() + kFound.size(), &end);
  if (end == message.c_str() + kFound.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<loadgen::Figure> figures_of(const DetailLog& log, Scenario scenario, bool token_latencies) {
  std::vector<loadgen::Figure> out;
  const auto add = [&](const char* name, const char* unit, const char* key, double scale, bool higher) {
    if (const json::Value* value = log.find(key); value && value->is_number())
      out.push_back({.name = name, .unit = unit, .value = log.number(key) * scale, .higher_is_better = higher});
  };
  switch (scenario) {
    case Scenario::kOffline:
      add("samples_per_s", "1/s", "result_samples_per_second", 1, true);
      add("tokens_per_s", "1/s", "result_tokens_per_second", 1, true);
      break;
    case Scenario::kServer: add("completed_samples_per_s", "1/s", "result_completed_samples_per_sec", 1, true); break;
    case Scenario::kSingleStream: add("latency_p90", "s", "result_90.00_percentile_latency_ns", 1e-9, false); break;
    case Scenario::kMultiStream: add("query_latency_p99", "s", "result_99.00_percentile_per_query_latency_ns", 1e-9, false); break;
  }
  if (token_latencies && scenario != Scenario::kOffline) {
    add("ttft_p99", "s", "result_first_token_99.00_percentile_latency_ns", 1e-9, false);
    add("tpot_p99", "s", "result_time_per_output_token_99.00_percentile_ns", 1e-9, false);
  }
  return out;
}

}  // namespace weir::mlperf
