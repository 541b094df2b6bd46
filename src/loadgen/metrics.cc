// SPDX-License-Identifier: Apache-2.0
#include "loadgen/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/units.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr double kBusy = 0.90;         // of a thread: beyond, moments can no longer be kept
constexpr double kMissingRate = 0.01;  // of the offered rate

struct SloName {
  std::string_view name;
  std::optional<double> Slo::* member;
};
constexpr SloName kSloNames[] = {
    {"ttft", &Slo::ttft_s}, {"tpot", &Slo::tpot_s}, {"itl", &Slo::itl_s}, {"e2e", &Slo::e2e_s}, {"e2el", &Slo::e2e_s}};

template <class Value>
Stat stat_of(const RunResult& result, Value&& value) {
  std::vector<double> samples;
  for (const RequestRecord& record : result.records)
    if (record.outcome == Outcome::kOk)
      if (const double sample = value(record); sample >= 0) samples.push_back(sample);
  return Stat::of(std::move(samples));
}

std::optional<EarlyStopping> bound_of(const RunResult& result, double (*value)(const RequestRecord&), double p) {
  std::vector<double> samples;
  for (const RequestRecord& record : result.records)
    if (record.outcome == Outcome::kOk)
      if (const double sample = value(record); sample >= 0) samples.push_back(sample);
  std::sort(samples.begin(), samples.end());
  return early_stopping_estimate(samples, p);
}

void count_outcomes(const RunResult& result, const Slo& slo, Summary& s) {
  std::map<int, std::size_t> statuses;
  for (const RequestRecord& record : result.records) {
    ++s.outcomes[static_cast<std::size_t>(record.outcome)];
    if (record.outcome == Outcome::kHttpError) ++statuses[record.status];
    if (record.outcome != Outcome::kOk) continue;
    ++s.ok;
    s.good += is_good(record, slo);
    s.output_tokens += record.tokens();
    s.tokens_by_server |= record.output_tokens >= 0;
    if (record.prompt_tokens >= 0) s.prompt_known = true, s.prompt_tokens += record.prompt_tokens;
    if (record.cached_tokens >= 0) s.cached_known = true, s.cached_tokens += record.cached_tokens;
  }
  s.statuses.assign(statuses.begin(), statuses.end());
  s.requests = result.records.size();
}

void take_rates(const RunResult& result, Summary& s) {
  if (result.records.empty()) return;
  const Duration first = result.records.front().scheduled, last = result.records.back().scheduled;
  s.length_s = to_seconds(std::max(result.length - first, Duration(1)));
  const double arrivals_s = to_seconds(last - first);
  std::vector<Duration> sent;
  for (const RequestRecord& record : result.records)
    if (record.sent != kNever) sent.push_back(record.sent);
  if (arrivals_s > 0) s.offered_rate = static_cast<double>(s.requests - 1) / arrivals_s;
  if (sent.size() > 1) {
    const auto [from, to] = std::minmax_element(sent.begin(), sent.end());
    if (*to > *from) s.sent_rate = static_cast<double>(sent.size() - 1) / to_seconds(*to - *from);
  }
  s.request_rate = static_cast<double>(s.ok) / s.length_s;
  s.goodput = static_cast<double>(s.good) / s.length_s;
  s.output_tokens_per_s = static_cast<double>(s.output_tokens) / s.length_s;
  s.total_tokens_per_s = static_cast<double>(s.output_tokens + s.prompt_tokens) / s.length_s;
}

void take_latencies(const RunResult& result, Summary& s) {
  s.ttft = stat_of(result, ttft_s);
  s.tpot = stat_of(result, tpot_s);
  s.e2e = stat_of(result, e2e_s);
  const auto since_sent = [](const RequestRecord& r, double value) { return value < 0 ? value : value - to_seconds(r.sent - r.scheduled); };
  s.ttft_sent = stat_of(result, [&](const RequestRecord& r) { return since_sent(r, ttft_s(r)); });
  s.e2e_sent = stat_of(result, [&](const RequestRecord& r) { return since_sent(r, e2e_s(r)); });
  s.per_user = stat_of(result, [](const RequestRecord& r) { return tpot_s(r) > 0 ? 1 / tpot_s(r) : -1; });
  s.queue = stat_of(result, [](const RequestRecord& r) { return r.queue_s; });
  s.prefill = stat_of(result, [](const RequestRecord& r) { return r.prefill_s; });
  s.decode = stat_of(result, [](const RequestRecord& r) { return r.decode_s; });
  s.output_length = stat_of(result, [](const RequestRecord& r) { return static_cast<double>(r.tokens()); });
  s.prompt_length = stat_of(result, [](const RequestRecord& r) { return static_cast<double>(r.prompt_tokens); });
  std::vector<double> gaps;
  for (const RequestRecord& record : result.records)
    if (record.outcome == Outcome::kOk)
      for (const Duration gap : record.gaps) gaps.push_back(to_seconds(gap));
  s.itl = Stat::of(std::move(gaps));
  s.ttft_bound_99 = bound_of(result, ttft_s, 0.99);
  s.tpot_bound_99 = bound_of(result, tpot_s, 0.99);
  s.e2e_bound_99 = bound_of(result, e2e_s, 0.99);
  s.e2e_bound_90 = bound_of(result, e2e_s, 0.90);
}

void take_generator(const RunResult& result, Summary& s) {
  std::vector<double> late;
  std::size_t waited = 0;
  for (const RequestRecord& record : result.records) {
    if (record.started == kNever) continue;
    late.push_back(std::max(0.0, to_seconds(record.late())));
    waited += record.eligible > record.scheduled;
  }
  s.waited_share = late.empty() ? 0 : static_cast<double>(waited) / static_cast<double>(late.size());
  s.late = Stat::of(std::move(late));
  for (const LoopUsage& usage : result.workers) {
    if (usage.wall_s <= 0) continue;
    const double spin = std::min(usage.spun_s, usage.cpu_s);
    s.cpu_share = std::max(s.cpu_share, (usage.cpu_s - spin) / usage.wall_s);
    s.spin_share = std::max(s.spin_share, spin / usage.wall_s);
    s.run_queue_share = std::max(s.run_queue_share, usage.run_queue_s / usage.wall_s);
  }
  s.read_lag_p50 = result.read_lag_p50;
  s.read_lag_p99 = result.read_lag_p99;
  s.read_lag_max = result.read_lag_max;
  s.connections_opened = result.connections_opened;
  s.resent = result.resent;
}

void judge(const RunResult& result, const MetricOptions& options, Summary& s) {
  const auto invalid = [&](std::string reason) {
    s.valid = false;
    s.reasons.push_back(std::move(reason));
  };
  const double basis = s.ttft.count > 0 ? s.ttft.at(50) : s.e2e.at(50);
  const double limit = std::max(to_seconds(options.max_late), 0.01 * basis);
  if (s.late.at(99) > limit)
    invalid(fmt::format("requests were sent late by the generator itself: p99 {}, limit {}", format_duration(s.late.at(99)),
                        format_duration(limit)));
  if (s.read_lag_p99 > limit)
    invalid(fmt::format("answers waited for the generator to read them: p99 {}, limit {}", format_duration(s.read_lag_p99),
                        format_duration(limit)));
  if (s.cpu_share > kBusy)
    invalid(fmt::format("the generator's thread was busy {:.0f} % of the time: more --threads, or a lower rate", 100 * s.cpu_share));
  if (result.open_loop && s.waited_share == 0 && s.requests > 100 && s.sent_rate < (1 - kMissingRate) * s.offered_rate)
    invalid(fmt::format("{:.1f} requests/s were due but {:.1f} were sent", s.offered_rate, s.sent_rate));
  if (const std::size_t local = s.outcomes[static_cast<std::size_t>(Outcome::kLocal)])
    invalid(fmt::format("{} requests failed on the generator's own machine: {}", local, result.first_error));
  if (s.ok == 0) invalid("no request was answered");
  if (result.interrupted) invalid("the run was interrupted");
  if (s.run_queue_share > 0.02)
    s.notes.push_back(fmt::format("the generator waited for a processor {:.1f} % of the time: something else runs on this machine",
                                  100 * s.run_queue_share));
  if (s.waited_share > 0)
    s.notes.push_back(
        fmt::format("{:.1f} % of the requests waited for a free connection; that time counts in their latencies", 100 * s.waited_share));
  if (s.ok < s.requests)
    s.notes.push_back(fmt::format("{} of {} requests failed; latencies are of the others", s.requests - s.ok, s.requests));
  if (!s.tokens_by_server && s.ok > 0) s.notes.push_back("the server told no usage: tokens are counted as events with content");
  if (s.ok > 0 && s.ok < 100) s.notes.push_back("fewer than 100 answers: a p99 is then hardly more than the longest");
}

}  // namespace

Result<Slo> Slo::parse(std::string_view text) {
  Slo slo;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t separator = part.find_first_of("=:");
    const auto found =
        std::find_if(std::begin(kSloNames), std::end(kSloNames), [&](const SloName& n) { return n.name == part.substr(0, separator); });
    if (separator == std::string_view::npos || found == std::end(kSloNames))
      return fail(ErrorCode::kInvalidArgument, "'{}': an objective is written as ttft=500ms; there are ttft, tpot, itl and e2e", part);
    WEIR_ASSIGN(slo.*(found->member), parse_seconds(part.substr(separator + 1), 1e-3));
  }
  return slo;
}

std::string Slo::description() const {
  std::string out;
  for (const SloName& name : kSloNames)
    if (name.name != "e2el" && this->*(name.member))
      out += fmt::format("{}{} ≤ {}", out.empty() ? "" : ", ", name.name, format_duration(*(this->*(name.member))));
  return out;
}

double Stat::at(double p) const {
  const auto found = std::find(kPercentiles.begin(), kPercentiles.end(), p);
  WEIR_CHECK(found != kPercentiles.end());
  return percentiles[static_cast<std::size_t>(found - kPercentiles.begin())];
}

Stat Stat::of(std::vector<double> samples) {
  Stat stat;
  stat.count = samples.size();
  if (samples.empty()) return stat;
  std::sort(samples.begin(), samples.end());
  stat.mean = mean_of(samples);
  stat.deviation = deviation_of(samples);
  stat.min = samples.front();
  stat.max = samples.back();
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) stat.percentiles[i] = percentile(samples, kPercentiles[i]);
  return stat;
}

double ttft_s(const RequestRecord& record) { return record.first_token == kNever ? -1 : to_seconds(record.first_token - record.scheduled); }

double tpot_s(const RequestRecord& record) {
  if (record.first_token == kNever || record.events < 2 || record.tokens() < 2) return -1;
  return to_seconds(record.last_token - record.first_token) / static_cast<double>(record.tokens() - 1);
}

double e2e_s(const RequestRecord& record) { return record.done == kNever ? -1 : to_seconds(record.done - record.scheduled); }

bool is_good(const RequestRecord& record, const Slo& slo) {
  if (record.outcome != Outcome::kOk) return false;
  if (slo.ttft_s && !(ttft_s(record) >= 0 && ttft_s(record) <= *slo.ttft_s)) return false;
  if (slo.tpot_s && tpot_s(record) > *slo.tpot_s) return false;
  if (slo.itl_s && !record.gaps.empty() && to_seconds(*std::max_element(record.gaps.begin(), record.gaps.end())) > *slo.itl_s) return false;
  return !slo.e2e_s || e2e_s(record) <= *slo.e2e_s;
}

Summary summarize(const RunResult& result, const MetricOptions& options) {
  Summary s;
  s.first_error = result.first_error;
  s.interrupted = result.interrupted;
  count_outcomes(result, options.slo, s);
  take_rates(result, s);
  take_latencies(result, s);
  take_generator(result, s);
  s.steady = find_steady(result, options);
  s.stability = find_stability(result, options);
  judge(result, options, s);
  return s;
}

}  // namespace weir::loadgen
