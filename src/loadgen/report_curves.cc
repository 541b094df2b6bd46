// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_curves.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "loadgen/distribution.h"
#include "loadgen/metrics.h"
#include "loadgen/statistics.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMostWindows = 200, kFewestWindows = 20, kRequestsPerWindow = 8;

json::Array numbers(const std::vector<double>& values) {
  json::Array out;
  out.reserve(values.size());
  for (const double value : values) out.emplace_back(six_digits(value));
  return out;
}

void add_curve(json::Object& out, std::string_view name, std::vector<double> samples) {
  if (samples.empty()) return;
  std::sort(samples.begin(), samples.end());
  std::vector<double> curve;
  for (const double p : curve_quantiles()) curve.push_back(percentile(samples, p));
  out[name] = numbers(curve);
}

// Counts by window, and the time that spans share with each.
class Windows {
 public:
  Windows(double length_s, std::size_t count) : length_(length_s), count_(count) {}

  std::size_t index(Duration at) const {
    const double window = std::floor(to_seconds(at) / length_);
    return static_cast<std::size_t>(std::clamp(window, 0.0, static_cast<double>(count_ - 1)));
  }
  std::vector<double> zeros() const { return std::vector<double>(count_, 0.0); }
  void add(std::vector<double>& rates, Duration at, double value = 1) const { rates[index(at)] += value / length_; }

  // `whole` holds, until settle(), how many more spans cover a window than the one before.
  void cover(std::vector<double>& part, std::vector<double>& whole, Duration from, Duration to) const {
    if (to <= from) return;
    const std::size_t first = index(from), last = index(to);
    const double begin = to_seconds(from) / length_, end = to_seconds(to) / length_;
    if (first == last) {
      part[first] += end - begin;
      return;
    }
    part[first] += static_cast<double>(first + 1) - begin;
    part[last] += end - static_cast<double>(last);
    whole[first + 1] += 1;
    whole[last] -= 1;
  }
  std::vector<double> settle(std::vector<double> part, const std::vector<double>& whole) const {
    double covering = 0;
    for (std::size_t i = 0; i < count_; ++i) part[i] += covering += whole[i];
    return part;
  }

 private:
  double length_;
  std::size_t count_;
};

// Each event stands for its share of the tokens, when it came.
void add_tokens(const Windows& windows, std::vector<double>& rates, const RequestRecord& r) {
  if (r.first_token == kNever) {
    if (r.outcome == Outcome::kOk) windows.add(rates, r.done, static_cast<double>(r.tokens()));
    return;
  }
  const double each = static_cast<double>(r.tokens()) / static_cast<double>(std::max<std::int64_t>(r.events, 1));
  Duration at = r.first_token;
  windows.add(rates, at, each);
  for (const Duration gap : r.gaps) windows.add(rates, at += gap, each);
}

json::Array percentiles(std::vector<std::vector<double>>& windows, double p) {
  json::Array out;
  for (std::vector<double>& samples : windows) {
    std::sort(samples.begin(), samples.end());
    out.push_back(samples.empty() ? json::Value(nullptr) : json::Value(six_digits(percentile(samples, p))));
  }
  return out;
}

}  // namespace

double six_digits(double value) { return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr); }

std::span<const double> curve_quantiles() {
  static const std::vector<double> quantiles = [] {
    std::vector<double> out;
    for (int p = 0; p < 100; ++p) out.push_back(p);
    for (int tenth = 1; tenth < 10; ++tenth) out.push_back(99 + tenth / 10.0);
    out.insert(out.end(), {99.95, 99.99, 100});
    return out;
  }();
  return quantiles;
}

json::Object curves_json(const RunResult& result) {
  std::vector<double> ttft, itl, tpot, e2e;
  const auto keep = [](std::vector<double>& samples, double value) {
    if (value >= 0) samples.push_back(value);
  };
  for (const RequestRecord& record : result.records) {
    if (record.outcome != Outcome::kOk) continue;
    keep(ttft, ttft_s(record));
    keep(tpot, tpot_s(record));
    keep(e2e, e2e_s(record));
    for (const Duration gap : record.gaps) itl.push_back(to_seconds(gap));
  }
  const auto quantiles = curve_quantiles();
  json::Object out{{"quantiles", numbers({quantiles.begin(), quantiles.end()})}};
  add_curve(out, "ttft_s", std::move(ttft));
  add_curve(out, "itl_s", std::move(itl));
  add_curve(out, "tpot_s", std::move(tpot));
  add_curve(out, "e2e_s", std::move(e2e));
  return out;
}

double window_length(double length_s, std::size_t most) {
  const double least = std::max(length_s / static_cast<double>(most), 1e-3);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

json::Object timeline_json(const RunResult& result) {
  const double length = std::max(to_seconds(result.length), 1e-3);
  const double window_s = window_length(length, std::clamp(result.records.size() / kRequestsPerWindow, kFewestWindows, kMostWindows));
  const Windows windows(window_s, static_cast<std::size_t>(std::ceil(length / window_s * (1 - 1e-9))));
  std::vector<double> scheduled = windows.zeros(), sent = scheduled, completed = scheduled, failed = scheduled, tokens = scheduled,
                      part = scheduled, whole = scheduled;
  std::vector<std::vector<double>> ttft(scheduled.size()), e2e(scheduled.size());
  for (const RequestRecord& r : result.records) {
    windows.add(scheduled, r.scheduled);
    if (r.sent != kNever) windows.add(sent, r.sent);
    if (r.done != kNever) windows.add(r.outcome == Outcome::kOk ? completed : failed, r.done);
    if (r.sent != kNever) windows.cover(part, whole, r.sent, r.done == kNever ? result.length : r.done);
    add_tokens(windows, tokens, r);
    if (r.outcome != Outcome::kOk) continue;
    if (const double value = ttft_s(r); value >= 0) ttft[windows.index(r.scheduled)].push_back(value);
    if (const double value = e2e_s(r); value >= 0) e2e[windows.index(r.scheduled)].push_back(value);
  }
  return {{"window_s", window_s},
          {"scheduled_per_s", numbers(scheduled)},
          {"sent_per_s", numbers(sent)},
          {"completed_per_s", numbers(completed)},
          {"failed_per_s", numbers(failed)},
          {"output_tokens_per_s", numbers(tokens)},
          {"in_flight", numbers(windows.settle(std::move(part), whole))},
          {"ttft_p50_s", percentiles(ttft, 50)},
          {"ttft_p99_s", percentiles(ttft, 99)},
          {"e2e_p50_s", percentiles(e2e, 50)},
          {"e2e_p99_s", percentiles(e2e, 99)}};
}

}  // namespace weir::loadgen
