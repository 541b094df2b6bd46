// SPDX-License-Identifier: Apache-2.0
#include "loadgen/compare.h"

#include <algorithm>
#include <cmath>

#include "loadgen/random.h"

namespace weir::loadgen {
namespace {

struct Latency {
  std::string_view name;
  const Stat Summary::* stat;
};
constexpr Latency kLatencies[] = {{"ttft", &Summary::ttft}, {"itl", &Summary::itl}, {"tpot", &Summary::tpot}, {"e2e", &Summary::e2e}};

struct Rate {
  std::string_view name;
  double Summary::* value;
};
constexpr Rate kRates[] = {{"output_tokens_per_s", &Summary::output_tokens_per_s},
                           {"total_tokens_per_s", &Summary::total_tokens_per_s},
                           {"request_rate", &Summary::request_rate},
                           {"goodput", &Summary::goodput}};

const double* percentile_named(std::string_view name) {
  for (const double& p : kPercentiles)
    if (name == fmt::format("p{:g}", p)) return &p;
  return nullptr;
}

const char* verdict_text(PairedRatio::Verdict verdict) {
  switch (verdict) {
    case PairedRatio::Verdict::kSame: return "no difference shown";
    case PairedRatio::Verdict::kBetter: return "B is better";
    case PairedRatio::Verdict::kWorse: return "B is worse, within the threshold";
    case PairedRatio::Verdict::kRegression: return "REGRESSION";
    case PairedRatio::Verdict::kUnknown: return "unknown: no values";
  }
  return "";
}

const char* verdict_name(PairedRatio::Verdict verdict) {
  constexpr const char* kNames[] = {"same", "better", "worse", "regression", "unknown"};
  return kNames[static_cast<int>(verdict)];
}

}  // namespace

Result<ComparedMetric> parse_metric(std::string_view name) {
  for (const Rate& rate : kRates)
    if (rate.name == name) return ComparedMetric{std::string(name), true};
  for (const Latency& latency : kLatencies) {
    if (!name.starts_with(latency.name) || name.size() <= latency.name.size() || name[latency.name.size()] != '_') continue;
    const std::string_view which = name.substr(latency.name.size() + 1);
    if (which == "mean" || which == "max" || percentile_named(which)) return ComparedMetric{std::string(name), false};
  }
  return fail(ErrorCode::kInvalidArgument,
              "'{}' is no metric: there are ttft, itl, tpot and e2e with _mean, _p50, _p90, _p99, _max …, and output_tokens_per_s, "
              "total_tokens_per_s, request_rate, goodput",
              name);
}

double value_of(const ComparedMetric& metric, const Summary& summary) {
  for (const Rate& rate : kRates)
    if (rate.name == metric.name) return summary.*rate.value;
  for (const Latency& latency : kLatencies) {
    if (!std::string_view(metric.name).starts_with(fmt::format("{}_", latency.name))) continue;
    const Stat& stat = summary.*latency.stat;
    const std::string_view which = std::string_view(metric.name).substr(latency.name.size() + 1);
    if (stat.count == 0) return 0;
    if (const double* p = percentile_named(which)) return stat.at(*p);
    return which == "mean" ? stat.mean : stat.max;
  }
  return 0;
}

double student_quantile(double p, double degrees) {
  if (p < 0.5) return -student_quantile(1 - p, degrees);
  // P(T > t) = I_{v/(v+t²)}(v/2, 1/2) / 2, which only falls with t.
  const auto upper = [&](double t) { return incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5) / 2; };
  double low = 0, high = 1;
  while (upper(high) > 1 - p && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (upper(middle) > 1 - p ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<bool> a_first_order(std::size_t rounds, std::uint64_t seed) {
  std::vector<bool> order;
  for (std::size_t i = 0; i < rounds; ++i) order.push_back(i % 2 == 0);
  Random random(seed, kOrderStream);
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::size_t j = random.below(i);
    const bool held = order[i - 1];
    order[i - 1] = order[j];
    order[j] = held;
  }
  return order;
}

PairedRatio paired_ratio(const ComparedMetric& metric, std::span<const double> a, std::span<const double> b, double threshold,
                         double confidence) {
  PairedRatio out{.metric = metric};
  std::vector<double> logs;
  double log_a = 0, log_b = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(a[i] > 0) || !(b[i] > 0)) continue;
    logs.push_back(std::log(b[i] / a[i]));
    log_a += std::log(a[i]);
    log_b += std::log(b[i]);
  }
  out.rounds = logs.size();
  if (logs.empty()) return out;
  const auto n = static_cast<double>(logs.size());
  const double mean = mean_of(logs);
  out.a = std::exp(log_a / n);
  out.b = std::exp(log_b / n);
  out.ratio = std::exp(mean);
  if (logs.size() < 2) {
    out.interval = {0, INFINITY};
  } else {
    const double half = student_quantile(0.5 + confidence / 2, n - 1) * deviation_of(logs) / std::sqrt(n);
    out.interval = {std::exp(mean - half), std::exp(mean + half)};
  }
  const double worse = metric.higher_is_better ? 1 / out.ratio - 1 : out.ratio - 1;
  const bool differs = out.interval.low > 1 || out.interval.high < 1;
  using Verdict = PairedRatio::Verdict;
  out.verdict = !differs ? Verdict::kSame : worse <= 0 ? Verdict::kBetter : worse > threshold ? Verdict::kRegression : Verdict::kWorse;
  return out;
}

std::string to_text(const PairedRatio& r, double threshold) {
  const double unit = r.metric.higher_is_better ? 1 : 1e3;
  return fmt::format("{:<22}{:>12.3f}{:>12.3f}   B/A {:.4f} ({:.4f}..{:.4f})   {}{}\n", r.metric.name + (unit == 1 ? "" : ", ms"),
                     r.a * unit, r.b * unit, r.ratio, r.interval.low, r.interval.high, verdict_text(r.verdict),
                     r.verdict == PairedRatio::Verdict::kRegression ? fmt::format(" beyond {:.1f} %", 100 * threshold) : std::string());
}

json::Object to_json(const PairedRatio& r) {
  json::Object out{{"metric", r.metric.name},           {"rounds", r.rounds}, {"a", r.a}, {"b", r.b}, {"ratio", r.ratio},
                   {"verdict", verdict_name(r.verdict)}};
  if (std::isfinite(r.interval.high)) out["interval"] = json::Array{r.interval.low, r.interval.high};
  return out;
}

}  // namespace weir::loadgen
