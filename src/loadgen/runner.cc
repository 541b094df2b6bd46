// SPDX-License-Identifier: Apache-2.0
#include "loadgen/runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "loadgen/statistics.h"
#include "loadgen/worker.h"

namespace weir::loadgen {
namespace {

Status check(const LoadPlan& plan, const RunOptions& options) {
  if (plan.conversations.empty()) return fail(ErrorCode::kInvalidArgument, "there is nothing to send");
  for (const Conversation& conversation : plan.conversations)
    if (conversation.turns.empty()) return fail(ErrorCode::kInvalidArgument, "a conversation has no turns");
  if (plan.arrivals.empty() && plan.users < 1) return fail(ErrorCode::kInvalidArgument, "neither arrivals nor users");
  if (plan.arrivals.empty() && plan.closed_requests < 1 && plan.closed_length <= Duration::zero())
    return fail(ErrorCode::kInvalidArgument, "how many requests, or for how long?");
  if (options.threads < 1 || options.threads > 256) return fail(ErrorCode::kInvalidArgument, "1 to 256 threads");
  if (options.max_concurrency > 0 && options.max_concurrency < options.threads)
    return fail(ErrorCode::kInvalidArgument, "fewer requests at a time than threads");
  return {};
}

}  // namespace

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<RunResult> run(const LoadPlan& plan, const Target& target, const RunOptions& options, Progress& progress) {
  WEIR_TRY(check(plan, options));
  raise_file_limit();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < options.threads; ++i) {
    WEIR_ASSIGN(auto worker, Worker::make(plan, target, options, progress, i, options.threads));
    WEIR_TRY(worker->warm_up());
    workers.push_back(std::move(worker));
  }
  if (options.watcher) options.watcher->before_start();
  const TimePoint start = steady_clock().now() + std::chrono::milliseconds(2);
  if (options.watcher) options.watcher->started(start);
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&worker, start] { worker->run(start); });
  for (std::thread& thread : threads) thread.join();
  if (options.watcher) options.watcher->ended();

  RunResult result;
  result.open_loop = !plan.arrivals.empty();
  result.prompts = plan.conversations.size();
  std::vector<float> lags;
  for (auto& worker : workers) worker->take_results(result, lags);
  std::stable_sort(result.records.begin(), result.records.end(), [](const auto& a, const auto& b) { return a.scheduled < b.scheduled; });
  for (const RequestRecord& record : result.records) result.length = std::max(result.length, record.done);
  result.offered = static_cast<std::int64_t>(result.records.size());
  std::vector<double> sorted(lags.begin(), lags.end());
  std::sort(sorted.begin(), sorted.end());
  result.read_lag_p50 = percentile(sorted, 50);
  result.read_lag_p99 = percentile(sorted, 99);
  result.read_lag_max = percentile(sorted, 100);
  return result;
}

std::string_view outcome_name(Outcome outcome) {
  static constexpr std::string_view kNames[kOutcomes] = {"ok",  "http_error", "stream_error", "malformed", "connect",
                                                         "cut", "timeout",    "local",        "unfinished"};
  return kNames[static_cast<std::size_t>(outcome)];
}

}  // namespace weir::loadgen
