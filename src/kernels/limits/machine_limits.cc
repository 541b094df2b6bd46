// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/machine_limits.h"

#include <algorithm>

#include "base/system_memory.h"

namespace weir::kernels {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kAssumedFree = 1024 * kMiB;  // when the system does not tell

std::vector<int> thread_counts(int threads) { return threads > 1 ? std::vector{1, threads} : std::vector{1}; }

Status cancelled() { return fail(ErrorCode::kCancelled, "interrupted"); }

Status measure_reads(MachineLimits& limits, Effort effort, const std::function<bool()>& keep_going) {
  for (const int threads : thread_counts(limits.threads)) {
    for (ReadPoint point : read_points(limits.caches, threads, available_memory().value_or(kAssumedFree), effort)) {
      for (const Pages pages : {Pages::kOrdinary, Pages::kHuge}) {
        if (!keep_going()) return cancelled();
        point.pages = pages;
        WEIR_ASSIGN(point.bytes_per_s, measure_read({.threads = threads,
                                                     .bytes_per_thread = point.bytes_per_thread,
                                                     .pages = pages,
                                                     .seconds = effort == Effort::kQuick ? 0.05 : 0.3}));
        limits.reads.push_back(point);
      }
    }
  }
  return {};
}

Status measure_peaks(MachineLimits& limits, Effort effort, const std::function<bool()>& keep_going) {
  for (const int threads : thread_counts(limits.threads)) {
    for (const MultiplyAddLoop& loop : multiply_add_loops()) {
      if (!loop.usable) continue;
      if (!keep_going()) return cancelled();
      limits.peaks.push_back(measure_multiply_add(loop, threads, effort == Effort::kQuick ? 0.03 : 0.2));
    }
  }
  return {};
}

}  // namespace

json::Object spread_json(const Spread& spread, double unit) {
  return {{"median", spread.median * unit}, {"min", spread.min * unit}, {"max", spread.max * unit}};
}

std::vector<ReadPoint> read_points(const CacheSizes& caches, int threads, std::uint64_t free_memory, Effort effort) {
  const auto count = static_cast<std::uint64_t>(std::max(threads, 1));
  const std::uint64_t most = free_memory / 8 / count;
  std::vector<ReadPoint> points;
  const auto add = [&](const char* where, std::uint64_t bytes) {
    if (bytes >= 4096 && bytes <= most)
      points.push_back({.where = where, .bytes_per_thread = bytes, .threads = threads, .bytes_per_s = {}});
  };
  add("L2", caches.l2 / 2);
  const std::uint64_t sharing = std::min(count, static_cast<std::uint64_t>(caches.l3_processors));
  const std::uint64_t in_l3 = caches.l3 / 2 / sharing;
  if (in_l3 > caches.l2) add("L3", in_l3);
  add("90 MiB", 90 * kMiB);
  // Four times the last level's size, so that hits in it do not count, and no more than is needed to see that.
  const std::uint64_t large = std::max(4 * caches.l3, (effort == Effort::kQuick ? 192 : 512) * kMiB);
  add(kDram, std::min(large, most));
  return points;
}

Result<MachineLimits> measure_machine(int threads, Effort effort, const std::function<bool()>& keep_going) {
  MachineLimits limits;
  limits.threads = std::max(threads, 1);
  limits.caches = read_cache_sizes();
  WEIR_TRY(measure_reads(limits, effort, keep_going));
  WEIR_TRY(measure_peaks(limits, effort, keep_going));
  for (const int count : thread_counts(limits.threads)) limits.hand_overs.push_back(measure_hand_over(count));
  if (!keep_going()) return std::unexpected(cancelled().error());
  limits.pairs = measure_core_sharing(effort == Effort::kQuick ? 4 : 32);
  return limits;
}

Limits limits_of(const MachineLimits& machine) {
  Limits limits;
  limits.threads = machine.threads;
  for (const ReadPoint& r : machine.reads) {
    if (r.where != kDram || r.threads != machine.threads) continue;
    limits.working_set = std::max(limits.working_set, r.bytes_per_thread * static_cast<std::uint64_t>(r.threads));
    merge_limits(limits, {.read = {r.bytes_per_s.max, pages_name(r.pages)}, .arithmetic = {}});
  }
  for (const Peak& p : machine.peaks)
    if (p.threads == machine.threads) merge_limits(limits, {.read = {}, .arithmetic = {{p.arithmetic, {p.ops_per_s.max, p.name}}}});
  return limits;
}

json::Object to_json(const MachineLimits& limits) {
  json::Array reads, peaks, hand_overs, pairs;
  for (const ReadPoint& r : limits.reads)
    reads.push_back(json::Object{{"where", r.where},
                                 {"bytes_per_thread", r.bytes_per_thread},
                                 {"threads", r.threads},
                                 {"pages", r.pages == Pages::kHuge ? "2 MiB" : "ordinary"},
                                 {"gb_per_s", spread_json(r.bytes_per_s, 1e-9)}});
  for (const Peak& p : limits.peaks)
    peaks.push_back(json::Object{{"name", p.name},
                                 {"arithmetic", arithmetic_name(p.arithmetic)},
                                 {"threads", p.threads},
                                 {"gop_per_s", spread_json(p.ops_per_s, 1e-9)}});
  for (const HandOver& h : limits.hand_overs)
    hand_overs.push_back(
        json::Object{{"threads", h.threads}, {"spinning_ns", spread_json(h.spinning_s, 1e9)}, {"parked_ns", spread_json(h.parked_s, 1e9)}});
  for (const PairSpeed& p : limits.pairs)
    pairs.push_back(
        json::Object{{"processors", json::Array{p.first, p.second}}, {"speed_of_one", p.speed}, {"shares_core", p.shares_core()}});
  return {{"threads", limits.threads},
          {"caches", json::Object{{"l1", limits.caches.l1},
                                  {"l2", limits.caches.l2},
                                  {"l3", limits.caches.l3},
                                  {"l3_processors", limits.caches.l3_processors},
                                  {"known", limits.caches.known}}},
          {"reads", std::move(reads)},
          {"peaks", std::move(peaks)},
          {"hand_over", std::move(hand_overs)},
          {"pairs", std::move(pairs)}};
}

}  // namespace weir::kernels
