// SPDX-License-Identifier: Apache-2.0
// Where a run is steady, and how sure its figures are there. The warm-up ends where MSER-5 (White, Simulation 69, 1997) puts it on the
// latencies in the order of their arrivals; the drain begins a median latency before the last arrival, since what arrives later ends in an
// emptying server. Requests are cut by when they arrived, never by when they ended: that would drop the slow ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "loadgen/metrics.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kFewest = 100, kBatch = 5, kMostSamples = 20000;

// How many samples to drop: the fewest whose rest has, but for a twentieth, the least standard error of its mean that can be had, or one
// below a thousandth of the mean. All are too few when that takes more than half of them.
std::optional<std::size_t> warm_up_length(const std::vector<double>& values) {
  std::vector<double> batches;
  for (std::size_t i = 0; i + kBatch <= values.size(); i += kBatch) batches.push_back(mean_of(std::span(values).subspan(i, kBatch)));
  const std::size_t n = batches.size();
  std::vector<double> errors(n, std::numeric_limits<double>::infinity());
  double sum = 0, squares = 0;
  for (std::size_t cut = n; cut-- > 0;) {  // from the end, so that both sums grow
    sum += batches[cut];
    squares += batches[cut] * batches[cut];
    const auto left = static_cast<double>(n - cut);
    if (left >= 5) errors[cut] = std::sqrt(std::max(0.0, squares / left - (sum / left) * (sum / left)) / left);
  }
  const double small = std::max(1.05 * *std::min_element(errors.begin(), errors.end()), 1e-3 * sum / static_cast<double>(n));
  const auto best =
      static_cast<std::size_t>(std::find_if(errors.begin(), errors.end(), [&](double e) { return e <= small; }) - errors.begin());
  if (best > n / 2) return std::nullopt;
  return best * kBatch;
}

using Samples = std::vector<double>;

// Of very many samples every k-th is drawn from, and the interval narrowed by the root of what was left out.
Estimate estimate(const Samples& in_time_order, double p, const MetricOptions& options) {
  const auto statistic = [p](std::span<const double> sorted) { return p < 0 ? mean_of(sorted) : percentile(sorted, p); };
  Samples sorted = in_time_order;
  std::sort(sorted.begin(), sorted.end());
  Estimate out{.value = statistic(sorted), .interval = {}};
  const std::size_t stride = in_time_order.size() / kMostSamples + 1;
  Samples thin;
  for (std::size_t i = 0; i < in_time_order.size(); i += stride) thin.push_back(in_time_order[i]);
  const int rounds = static_cast<int>(std::clamp<std::size_t>(2'000'000 / std::max<std::size_t>(thin.size(), 1), 100, 1000));
  out.interval = bootstrap(thin, statistic, options.confidence, block_length(thin.size()), rounds, options.seed);
  if (out.interval && stride > 1) {
    std::sort(thin.begin(), thin.end());
    const double of_thin = statistic(thin), narrow = 1 / std::sqrt(static_cast<double>(stride));
    out.interval = Interval{out.value + (out.interval->low - of_thin) * narrow, out.value + (out.interval->high - of_thin) * narrow};
  }
  return out;
}

// Rates come from equal slices of the steady time, which are then the samples. Answers come a latency after their requests, so that time is
// later by `shift`.
Estimate rate_estimate(const RunResult& result, const Steady& steady, Duration shift, bool tokens, const MetricOptions& options) {
  constexpr std::size_t kSlices = 30;
  Samples slices(kSlices, 0);
  const double length = to_seconds(steady.to - steady.from) / kSlices;
  const auto add = [&](Duration at, double value) {
    at -= shift;
    if (at < steady.from || at >= steady.to) return;
    slices[std::min(kSlices - 1, static_cast<std::size_t>(to_seconds(at - steady.from) / length))] += value / length;
  };
  for (const RequestRecord& record : result.records) {
    if (record.outcome != Outcome::kOk) continue;
    if (!tokens || record.first_token == kNever) {
      add(record.done, tokens ? static_cast<double>(record.tokens()) : 1);
      continue;
    }
    // Each event stands for its share of the tokens, when it came.
    const double each = static_cast<double>(record.tokens()) / static_cast<double>(std::max<std::int64_t>(record.events, 1));
    Duration at = record.first_token;
    add(at, each);
    for (const Duration gap : record.gaps) add(at += gap, each);
  }
  return estimate(slices, -1, options);
}

}  // namespace

Steady find_steady(const RunResult& result, const MetricOptions& options) {
  Steady steady;
  std::vector<const RequestRecord*> ok;
  Samples e2e;
  for (const RequestRecord& record : result.records)
    if (record.outcome == Outcome::kOk) ok.push_back(&record), e2e.push_back(e2e_s(record));
  if (ok.size() < kFewest) {
    steady.why_not = "fewer than 100 answers";
    return steady;
  }
  const auto cut = warm_up_length(e2e);
  if (!cut) {
    steady.why_not = "latencies still change in the second half";
    return steady;
  }
  steady.from = ok[*cut]->scheduled;
  const Duration last = result.records.back().scheduled, drain = Duration(static_cast<std::int64_t>(Stat::of(e2e).at(50) * 1e9));
  steady.to = last - std::min(drain, (last - steady.from) / 4);
  Samples ttft, tpot, kept;
  for (const RequestRecord* record : ok) {
    if (record->scheduled < steady.from) ++steady.warm_up;
    if (record->scheduled >= steady.to) ++steady.drained;
    if (record->scheduled < steady.from || record->scheduled >= steady.to) continue;
    ++steady.requests;
    kept.push_back(e2e_s(*record));
    if (const double value = ttft_s(*record); value >= 0) ttft.push_back(value);
    if (const double value = tpot_s(*record); value >= 0) tpot.push_back(value);
  }
  if (steady.requests < kFewest / 2 || steady.to <= steady.from) {
    steady.why_not = "too few answers between warm-up and drain";
    return steady;
  }
  steady.found = true;
  const auto three = [&](const Samples& samples, Estimate& mean, Estimate& p50, Estimate& p99) {
    mean = estimate(samples, -1, options);
    p50 = estimate(samples, 50, options);
    p99 = estimate(samples, 99, options);
  };
  three(ttft, steady.ttft_mean, steady.ttft_p50, steady.ttft_p99);
  three(tpot, steady.tpot_mean, steady.tpot_p50, steady.tpot_p99);
  three(kept, steady.e2e_mean, steady.e2e_p50, steady.e2e_p99);
  if (last - steady.to < drain) return steady;  // too short to say what rate it settles at
  steady.request_rate = rate_estimate(result, steady, drain, false, options);
  steady.output_tokens_per_s = rate_estimate(result, steady, drain, true, options);
  return steady;
}

Stability find_stability(const RunResult& result, const MetricOptions& options) {
  Stability out;
  struct Window {
    double rate = 0;
    Samples latencies;
    double latency = 0;
  };
  const Duration last = result.records.empty() ? Duration::zero() : result.records.back().scheduled;
  const auto count = static_cast<std::size_t>(last / std::max(options.stability_window, Duration(1)));  // whole windows with load
  std::vector<Window> windows(std::min<std::size_t>(count, 100000));
  for (const RequestRecord& record : result.records) {
    if (record.outcome != Outcome::kOk) continue;
    const auto index = static_cast<std::size_t>(record.done / options.stability_window);
    if (index < windows.size()) windows[index].latencies.push_back(e2e_s(record));
  }
  for (Window& window : windows) {
    window.rate = static_cast<double>(window.latencies.size());
    std::sort(window.latencies.begin(), window.latencies.end());
    window.latency =
        options.stability_percentile < 0 ? mean_of(window.latencies) : percentile(window.latencies, options.stability_percentile);
  }
  if (windows.size() < 3) return out;
  out.state = Stability::State::kUnstable;
  const std::size_t trials = std::min(windows.size(), static_cast<std::size_t>(std::max(options.max_trials, 3)));
  out.windows = static_cast<int>(trials);
  for (std::size_t end = 3; end <= trials; ++end) {
    double least_rate = 1e300, most_rate = 0, least = 1e300, most = 0;
    for (std::size_t i = end - 3; i < end; ++i) {
      least_rate = std::min(least_rate, windows[i].rate);
      most_rate = std::max(most_rate, windows[i].rate);
      least = std::min(least, windows[i].latency);
      most = std::max(most, windows[i].latency);
    }
    if (least_rate <= 0 || most_rate > (1 + options.stability) * least_rate || most > (1 + options.stability) * least) continue;
    out.state = Stability::State::kStable;
    out.windows = static_cast<int>(end);
    break;
  }
  return out;
}

}  // namespace weir::loadgen
