// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report.h"

#include <algorithm>

#include "base/units.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

struct Row {
  const char* name;
  const char* title;
  const Stat Summary::* stat;
  double unit;  // of the table's figures
};

constexpr Row kRows[] = {
    {"ttft", "time to first token, ms", &Summary::ttft, 1e3},
    {"itl", "between tokens (ITL), ms", &Summary::itl, 1e3},
    {"tpot", "per output token (TPOT), ms", &Summary::tpot, 1e3},
    {"e2e", "whole answer (E2E), ms", &Summary::e2e, 1e3},
    {"tokens_per_s_per_user", "tokens/s per user", &Summary::per_user, 1},
    {"queue", "server: queue, ms", &Summary::queue, 1e3},
    {"prefill", "server: prefill, ms", &Summary::prefill, 1e3},
    {"decode", "server: decode, ms", &Summary::decode, 1e3},
};

std::string stat_line(const Row& row, const Summary& summary) {
  const Stat& s = summary.*row.stat;
  std::string line = fmt::format("{:<28}{:>10.3f}", row.title, s.mean * row.unit);
  for (const double p : {50.0, 90.0, 95.0, 99.0, 99.9}) line += fmt::format("{:>10.3f}", s.at(p) * row.unit);
  return line + fmt::format("{:>10.3f}\n", s.max * row.unit);
}

std::string interval_text(const Estimate& estimate, double unit) {
  if (!estimate.interval) return fmt::format("{:.3f}", estimate.value * unit);
  return fmt::format("{:.3f} ({:.3f}..{:.3f})", estimate.value * unit, estimate.interval->low * unit, estimate.interval->high * unit);
}

std::string steady_text(const Summary& s) {
  if (!s.steady.found) return fmt::format("No steady state to give intervals for: {}.\n", s.steady.why_not);
  const Steady& t = s.steady;
  std::string out = fmt::format(
      "\nSteady state: {} requests due from {:.2f} to {:.2f} s ({} of the warm-up and {} of the drain left out), 95 % intervals\n",
      t.requests, to_seconds(t.from), to_seconds(t.to), t.warm_up, t.drained);
  const auto line = [&](const char* title, const Estimate& mean, const Estimate& p50, const Estimate& p99) {
    if (p50.value > 0)
      out += fmt::format("  {:<8} mean {:<28} p50 {:<28} p99 {}\n", title, interval_text(mean, 1e3), interval_text(p50, 1e3),
                         interval_text(p99, 1e3));
  };
  line("TTFT ms", t.ttft_mean, t.ttft_p50, t.ttft_p99);
  line("TPOT ms", t.tpot_mean, t.tpot_p50, t.tpot_p99);
  line("E2E ms", t.e2e_mean, t.e2e_p50, t.e2e_p99);
  return out +
         fmt::format("  requests/s {}   output tokens/s {}\n", interval_text(t.request_rate, 1), interval_text(t.output_tokens_per_s, 1));
}

std::string errors_text(const Summary& s) {
  if (s.ok == s.requests) return {};
  std::string out = "Errors:";
  for (std::size_t i = 1; i < s.outcomes.size(); ++i)
    if (s.outcomes[i] > 0) out += fmt::format(" {} {}", s.outcomes[i], outcome_name(static_cast<Outcome>(i)));
  for (const auto& [status, count] : s.statuses) out += fmt::format(", {} × status {}", count, status);
  return out + (s.first_error.empty() ? "\n" : fmt::format("; the first: {}\n", s.first_error));
}

std::string generator_text(const Summary& s) {
  std::string out = fmt::format(
      "\nThe generator: sent late by p50 {:.1f} µs, p99 {:.1f} µs, max {:.1f} µs; read late by p50 {:.1f} µs, p99 {:.1f} µs;\n"
      "  its busiest thread worked {:.1f} % of the time, watched the clock {:.1f} %, waited for a processor {:.1f} %; {} connections "
      "opened\n",
      s.late.at(50) * 1e6, s.late.at(99) * 1e6, s.late.max * 1e6, s.read_lag_p50 * 1e6, s.read_lag_p99 * 1e6, 100 * s.cpu_share,
      100 * s.spin_share, 100 * s.run_queue_share, s.connections_opened);
  for (const std::string& note : s.notes) out += fmt::format("Note: {}.\n", note);
  out += s.valid ? "Result: VALID\n" : "Result: INVALID\n";
  for (const std::string& reason : s.reasons) out += fmt::format("  {}\n", reason);
  return out;
}

const char* stability_name(Stability::State state) {
  switch (state) {
    case Stability::State::kStable: return "stable";
    case Stability::State::kUnstable: return "unstable";
    case Stability::State::kTooShort: return "too_short";
  }
  return "";
}

json::Object stat_json(const Stat& s, double unit = 1) {
  json::Object percentiles;
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) percentiles[fmt::format("p{:g}", kPercentiles[i])] = s.percentiles[i] * unit;
  return {{"count", s.count},    {"mean", s.mean * unit}, {"stddev", s.deviation * unit},
          {"min", s.min * unit}, {"max", s.max * unit},   {"percentiles", std::move(percentiles)}};
}

json::Value estimate_json(const Estimate& e) {
  if (e.value <= 0) return nullptr;
  json::Object out{{"value", e.value}};
  if (e.interval) out["interval"] = json::Array{e.interval->low, e.interval->high};
  return out;
}

json::Object steady_json(const Steady& t) {
  if (!t.found) return {{"found", false}, {"why_not", t.why_not}};
  return {
      {"found", true},
      {"from_s", to_seconds(t.from)},
      {"to_s", to_seconds(t.to)},
      {"requests", t.requests},
      {"warm_up_requests", t.warm_up},
      {"drain_requests", t.drained},
      {"ttft_s",
       json::Object{{"mean", estimate_json(t.ttft_mean)}, {"p50", estimate_json(t.ttft_p50)}, {"p99", estimate_json(t.ttft_p99)}}},
      {"tpot_s",
       json::Object{{"mean", estimate_json(t.tpot_mean)}, {"p50", estimate_json(t.tpot_p50)}, {"p99", estimate_json(t.tpot_p99)}}},
      {"e2e_s", json::Object{{"mean", estimate_json(t.e2e_mean)}, {"p50", estimate_json(t.e2e_p50)}, {"p99", estimate_json(t.e2e_p99)}}},
      {"request_rate", estimate_json(t.request_rate)},
      {"output_tokens_per_s", estimate_json(t.output_tokens_per_s)}};
}

json::Value bound_json(const std::optional<EarlyStopping>& bound) {
  if (!bound) return nullptr;
  return json::Object{{"value_s", bound->estimate}, {"discarded", bound->discarded}};
}

json::Object generator_json(const Summary& s) {
  return {{"late_s", stat_json(s.late)},
          {"read_lag_s", json::Object{{"p50", s.read_lag_p50}, {"p99", s.read_lag_p99}, {"max", s.read_lag_max}}},
          {"busy_share", s.cpu_share},
          {"spin_share", s.spin_share},
          {"run_queue_share", s.run_queue_share},
          {"waited_for_connection_share", s.waited_share},
          {"connections_opened", s.connections_opened},
          {"resent", s.resent}};
}

json::Array strings(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

}  // namespace

std::string to_text(const Summary& s, const RunLabel& label, const Slo& slo) {
  std::string out = fmt::format("{}\n  load {}, prompts {}, seed {}\n\n", label.target, label.load, label.prompts, label.seed);
  out += fmt::format("{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "from the scheduled time", "mean", "p50", "p90", "p95", "p99",
                     "p99.9", "max");
  for (const Row& row : kRows)
    if ((s.*row.stat).count > 0) out += stat_line(row, s);
  if (s.waited_share > 0 && s.e2e_sent.count > 0)
    out += fmt::format("  counted from sending, as some tools do, E2E would be: mean {:.3f} ms, p99 {:.3f} ms\n", s.e2e_sent.mean * 1e3,
                       s.e2e_sent.at(99) * 1e3);
  out += fmt::format("\n{} of {} requests answered in {:.2f} s: {:.2f} requests/s (due {:.2f}/s), {:.1f} output tokens/s", s.ok, s.requests,
                     s.length_s, s.request_rate, s.offered_rate, s.output_tokens_per_s);
  out += s.prompt_known ? fmt::format(", {:.1f} tokens/s in all\n", s.total_tokens_per_s) : "\n";
  if (s.prompt_known) out += fmt::format("{} prompt tokens", s.prompt_tokens);
  if (s.prompt_known && s.cached_known && s.prompt_tokens > 0)
    out += fmt::format(", {} of them cached ({:.1f} %)", s.cached_tokens,
                       100.0 * static_cast<double>(s.cached_tokens) / static_cast<double>(s.prompt_tokens));
  if (s.prompt_known) out += fmt::format("; {} output tokens\n", s.output_tokens);
  if (slo.any())
    out += fmt::format("Goodput ({}): {:.2f} requests/s, {} of {} ({:.1f} %)\n", slo.description(), s.goodput, s.good, s.requests,
                       s.requests ? 100.0 * static_cast<double>(s.good) / static_cast<double>(s.requests) : 0.0);
  if (s.ttft_bound_99 || s.e2e_bound_99)
    out += fmt::format("With 99 % confidence (MLPerf's rule) p99 of TTFT ≤ {}, of E2E ≤ {}\n",
                       s.ttft_bound_99 ? format_duration(s.ttft_bound_99->estimate) : "?",
                       s.e2e_bound_99 ? format_duration(s.e2e_bound_99->estimate) : "?");
  out += errors_text(s);
  out += steady_text(s);
  if (s.stability.state != Stability::State::kTooShort)
    out += fmt::format("Stability (Perf Analyzer's rule): {} after {} windows\n", stability_name(s.stability.state), s.stability.windows);
  return out + generator_text(s);
}

std::string line_header() {
  return fmt::format("{:>10}{:>11}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}{:>10}  {}\n", "load", "requests/s", "tokens/s", "TTFT p50",
                     "TTFT p99", "TPOT p50", "TPOT p99", "E2E p99", "goodput", "errors", "");
}

std::string to_line(const Summary& s, const RunLabel& label) {
  const std::string load = label.rate > 0 ? fmt::format("{:g}/s", label.rate) : fmt::format("{} users", label.concurrency);
  const auto ms = [](const Stat& stat, double p) { return stat.count ? fmt::format("{:.2f} ms", stat.at(p) * 1e3) : std::string("-"); };
  return fmt::format("{:>10}{:>11.2f}{:>10.1f}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11.2f}{:>10}  {}\n", load, s.request_rate,
                     s.output_tokens_per_s, ms(s.ttft, 50), ms(s.ttft, 99), ms(s.tpot, 50), ms(s.tpot, 99), ms(s.e2e, 99), s.goodput,
                     s.requests - s.ok, s.valid ? "" : "INVALID");
}

json::Object to_json(const Summary& s, const RunLabel& label, const Slo& slo) {
  json::Object errors, statuses, latency;
  for (std::size_t i = 1; i < s.outcomes.size(); ++i) errors[outcome_name(static_cast<Outcome>(i))] = s.outcomes[i];
  for (const auto& [status, count] : s.statuses) statuses[fmt::format("{}", status)] = count;
  for (const Row& row : kRows) latency[row.unit == 1 ? std::string(row.name) : fmt::format("{}_s", row.name)] = stat_json(s.*row.stat);
  latency["ttft_from_sending_s"] = stat_json(s.ttft_sent);
  latency["e2e_from_sending_s"] = stat_json(s.e2e_sent);
  return {{"schema", kSchema},
          {"target", label.target},
          {"model", label.model},
          {"load", label.load},
          {"rate", label.rate},
          {"concurrency", label.concurrency},
          {"prompts", label.prompts},
          {"seed", label.seed},
          {"valid", s.valid},
          {"reasons", strings(s.reasons)},
          {"notes", strings(s.notes)},
          {"requests", s.requests},
          {"answered", s.ok},
          {"errors", std::move(errors)},
          {"error_statuses", std::move(statuses)},
          {"first_error", s.first_error},
          {"length_s", s.length_s},
          {"offered_rate", s.offered_rate},
          {"sent_rate", s.sent_rate},
          {"request_rate", s.request_rate},
          {"goodput", s.goodput},
          {"good_requests", s.good},
          {"slo", slo.description()},
          {"prompt_tokens", s.prompt_known ? json::Value(s.prompt_tokens) : json::Value(nullptr)},
          {"cached_tokens", s.cached_known ? json::Value(s.cached_tokens) : json::Value(nullptr)},
          {"output_tokens", s.output_tokens},
          {"output_tokens_counted_by", s.tokens_by_server ? "server" : "events"},
          {"output_tokens_per_s", s.output_tokens_per_s},
          {"total_tokens_per_s", s.total_tokens_per_s},
          {"latency", std::move(latency)},
          {"output_length", stat_json(s.output_length)},
          {"prompt_length", stat_json(s.prompt_length)},
          {"bounds_with_99_percent_confidence", json::Object{{"ttft_p99", bound_json(s.ttft_bound_99)},
                                                             {"tpot_p99", bound_json(s.tpot_bound_99)},
                                                             {"e2e_p99", bound_json(s.e2e_bound_99)},
                                                             {"e2e_p90", bound_json(s.e2e_bound_90)}}},
          {"steady", steady_json(s.steady)},
          {"stability", json::Object{{"state", stability_name(s.stability.state)}, {"windows", s.stability.windows}}},
          {"generator", generator_json(s)}};
}

}  // namespace weir::loadgen
