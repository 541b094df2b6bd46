// SPDX-License-Identifier: Apache-2.0
// From records to figures. Latencies count from the scheduled moment; percentiles are exact; what can be doubted comes with an interval;
// and when the generator itself was in the way, the result says that it is not valid, and why.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "loadgen/records.h"
#include "loadgen/statistics.h"

namespace weir::loadgen {

// A request is good when it holds all that are set.
struct Slo {
  std::optional<double> ttft_s, tpot_s, itl_s, e2e_s;  // itl: the longest gap
  static Result<Slo> parse(std::string_view text);     // "ttft=500ms,tpot=50ms"
  bool any() const { return ttft_s || tpot_s || itl_s || e2e_s; }
  std::string description() const;
};

struct MetricOptions {
  Slo slo;
  double confidence = 0.95;
  std::uint64_t seed = 1;
  double stability = 0.10;  // Perf Analyzer's -s
  Duration stability_window = std::chrono::seconds(5);
  double stability_percentile = -1;  // -1: the mean
  int max_trials = 10;
  Duration max_late = std::chrono::milliseconds(1);  // p99; or 1 % of the median time to first token, if that is longer
  bool streaming = true;
};

inline constexpr std::array<double, 11> kPercentiles = {1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99};

// Seconds, or what the name says.
struct Stat {
  std::size_t count = 0;
  double mean = 0, deviation = 0, min = 0, max = 0;
  std::array<double, kPercentiles.size()> percentiles{};
  double at(double p) const;  // one of kPercentiles

  static Stat of(std::vector<double> samples);
};

struct Estimate {
  double value = 0;
  std::optional<Interval> interval;
};

// The part of a run in which neither its beginning nor its end shows.
struct Steady {
  bool found = false;
  std::string why_not;
  Duration from{}, to{};  // by scheduled time
  std::size_t requests = 0, warm_up = 0, drained = 0;
  Estimate ttft_mean, ttft_p50, ttft_p99, tpot_mean, tpot_p50, tpot_p99, e2e_mean, e2e_p50, e2e_p99;
  Estimate request_rate, output_tokens_per_s;  // 0: the run is too short beside its latencies
};

// Perf Analyzer's rule: the last three windows' throughput and latency within 1 + s of one another.
struct Stability {
  enum class State { kStable, kUnstable, kTooShort } state = State::kTooShort;
  int windows = 0;  // until it was, or in all
};

struct Summary {
  std::size_t requests = 0, ok = 0, good = 0;
  std::array<std::size_t, kOutcomes> outcomes{};
  std::vector<std::pair<int, std::size_t>> statuses;  // of errors
  std::string first_error;

  double length_s = 0;                     // first scheduled to last answer
  double offered_rate = 0, sent_rate = 0;  // a second, over the time of the arrivals
  double request_rate = 0, goodput = 0;    // answers, and good ones, over length_s
  double output_tokens_per_s = 0, total_tokens_per_s = 0;
  std::int64_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0;
  bool tokens_by_server = false, prompt_known = false, cached_known = false;

  Stat ttft, itl, tpot, e2e, per_user;  // per_user: tokens/s that one user sees, 1 / TPOT
  Stat ttft_sent, e2e_sent;             // the same from the moment of sending: what tools report that forget the wait
  Stat queue, prefill, decode;          // as the server says
  Stat output_length, prompt_length;    // tokens
  std::optional<EarlyStopping> ttft_bound_99, tpot_bound_99, e2e_bound_99, e2e_bound_90;  // MLPerf's, confidence 0.99

  Stat late;                                                  // by the generator's own fault
  double waited_share = 0;                                    // of requests that the cap on connections delayed
  double cpu_share = 0, spin_share = 0, run_queue_share = 0;  // of a worker's thread, the worst worker
  double read_lag_p50 = 0, read_lag_p99 = 0, read_lag_max = 0;
  std::uint64_t connections_opened = 0, resent = 0;

  Steady steady;
  Stability stability;
  bool valid = true, interrupted = false;
  std::vector<std::string> reasons;  // why it is not valid
  std::vector<std::string> notes;    // what a reader should know
};

double ttft_s(const RequestRecord& record);  // -1: none
double tpot_s(const RequestRecord& record);  // -1: fewer than two tokens
double e2e_s(const RequestRecord& record);
bool is_good(const RequestRecord& record, const Slo& slo);

Summary summarize(const RunResult& result, const MetricOptions& options);
Steady find_steady(const RunResult& result, const MetricOptions& options);
Stability find_stability(const RunResult& result, const MetricOptions& options);

}  // namespace weir::loadgen
