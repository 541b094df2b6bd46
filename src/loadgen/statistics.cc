// SPDX-License-Identifier: Apache-2.0
#include "loadgen/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "loadgen/random.h"

namespace weir::loadgen {

double percentile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return 0;
  const double position = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

double mean_of(std::span<const double> samples) {
  return samples.empty() ? 0 : std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double deviation_of(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const double mean = mean_of(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

std::size_t block_length(std::size_t samples) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(std::cbrt(static_cast<double>(samples)))));
}

std::optional<Interval> bootstrap(std::span<const double> in_time_order, const std::function<double(std::span<const double>)>& statistic,
                                  double confidence, std::size_t block, int rounds, std::uint64_t seed) {
  const std::size_t count = in_time_order.size();
  if (count < 8 || rounds < 2) return std::nullopt;
  block = std::clamp<std::size_t>(block, 1, count / 2);
  Random random(seed, kBootstrapStream);
  std::vector<double> sample(count), results;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t filled = 0; filled < count;) {
      std::size_t from = random.below(count);  // blocks wrap around, so that the ends are drawn as often as the middle
      for (std::size_t i = 0; i < block && filled < count; ++i, from = from + 1 == count ? 0 : from + 1)
        sample[filled++] = in_time_order[from];
    }
    std::sort(sample.begin(), sample.end());
    results.push_back(statistic(sample));
  }
  std::sort(results.begin(), results.end());
  const double tail = (1 - confidence) * 50;
  return Interval{percentile(results, tail), percentile(results, 100 - tail)};
}

KolmogorovSmirnov kolmogorov_smirnov(std::vector<double> samples, const std::function<double(double)>& cdf) {
  KolmogorovSmirnov result;
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double expected = cdf(samples[i]);
    result.distance = std::max({result.distance, expected - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - expected});
  }
  // Stephens' form of the limit distribution (1970), good from n = 5 on.
  const double lambda = (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) * result.distance;
  if (lambda < 0.2) return result;  // the sum below is 1 to all digits there, and converges badly
  double sum = 0;
  for (int k = 1; k <= 100; ++k) sum += (k % 2 ? 2 : -2) * std::exp(-2 * lambda * lambda * k * k);
  result.p_value = std::clamp(sum, 0.0, 1.0);
  return result;
}

namespace {

double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double value = d;
  for (int m = 1; m <= 10000; ++m) {
    for (const bool even : {true, false}) {
      const double numerator =
          even ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)) : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 + numerator * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + numerator / c;
      if (std::abs(c) < kTiny) c = kTiny;
      value *= c * d;
    }
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return value;
}

double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);  // std::lgamma writes a global
}

}  // namespace

double incomplete_beta(double x, double a, double b) {
  WEIR_CHECK(a > 0 && b > 0);
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double incomplete_gamma(double a, double x) {
  WEIR_CHECK(a > 0);
  if (x <= 0) return 0;
  const double front = std::exp(a * std::log(x) - x - log_gamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < 10000 && term > sum * 1e-16; ++n) sum += term *= x / (a + n);
    return front * sum;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
  for (int n = 1; n < 10000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    value *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return 1 - front * value;
}

std::int64_t early_stopping_minimum(double percentile, std::int64_t over, double confidence) {
  WEIR_CHECK(percentile > 0 && percentile < 1 && over >= 0);
  const auto enough = [&](std::int64_t h) {
    return incomplete_beta(percentile, static_cast<double>(h), static_cast<double>(over + 1)) <= 1 - confidence;
  };
  std::int64_t high = 1;
  while (!enough(high)) high *= 2;
  std::int64_t low = high / 2;  // too few, or zero
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high + over;
}

std::optional<EarlyStopping> early_stopping_estimate(std::span<const double> sorted, double percentile, double confidence) {
  const auto n = static_cast<std::int64_t>(sorted.size());
  const auto fits = [&](std::int64_t t) { return early_stopping_minimum(percentile, t, confidence) <= n; };
  if (!fits(1)) return std::nullopt;
  std::int64_t low = 1, high = 2;
  while (fits(high)) low = high, high *= 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return EarlyStopping{low, sorted[static_cast<std::size_t>(n - low)]};
}

}  // namespace weir::loadgen
