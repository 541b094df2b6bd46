// SPDX-License-Identifier: Apache-2.0
// What samples say, and how sure that is: exact percentiles, bootstrap intervals, Kolmogorov-Smirnov, and the early-stopping rule of
// MLPerf. Pure functions: everything random takes a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weir::loadgen {

// Of sorted samples, p in 0..100, interpolated between neighbours (numpy's default, as vLLM, AIPerf and GenAI-Perf report). 0 when empty.
double percentile(std::span<const double> sorted, double p);
double mean_of(std::span<const double> samples);
double deviation_of(std::span<const double> samples);  // of the sample (n - 1)

struct Interval {
  double low = 0, high = 0;
};

// Percentile bootstrap (Efron) of a statistic of sorted samples. Neighbouring requests share their server's state, so samples are drawn
// in blocks of `block` consecutive ones (moving blocks, Künsch 1989); `in_time_order` holds them so. Nothing below 8 samples.
std::optional<Interval> bootstrap(std::span<const double> in_time_order,
                                  const std::function<double(std::span<const double> sorted)>& statistic, double confidence,
                                  std::size_t block, int rounds, std::uint64_t seed);

// A block length that grows with the cube root of n.
std::size_t block_length(std::size_t samples);

// Largest distance between the samples' distribution and `cdf`, and the chance of at least that much if they do follow it.
struct KolmogorovSmirnov {
  double distance = 0;
  double p_value = 1;
};
KolmogorovSmirnov kolmogorov_smirnov(std::vector<double> samples, const std::function<double(double)>& cdf);

// Regularised incomplete beta I_x(a, b), Lentz's continued fraction.
double incomplete_beta(double x, double a, double b);
// Regularised lower incomplete gamma P(a, x): the distribution function of gamma(a, 1).
double incomplete_gamma(double a, double x);

// MLPerf early stopping: how few samples may prove, with confidence 0.99, that at least `percentile` (0..1) of latencies stay within a
// bound when `over` of those seen did not. The smallest n: the successes h with I_p(h, over + 1) <= 0.01, plus over.
std::int64_t early_stopping_minimum(double percentile, std::int64_t over, double confidence = 0.99);

// The bound that `sorted` proves for that percentile: its t-th highest value for the largest t that n allows. Nothing when there are too
// few.
struct EarlyStopping {
  std::int64_t discarded = 0;  // t
  double estimate = 0;
};
std::optional<EarlyStopping> early_stopping_estimate(std::span<const double> sorted, double percentile, double confidence = 0.99);

}  // namespace weir::loadgen
