// SPDX-License-Identifier: Apache-2.0
#include "mlperf/warm_up.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace weir::mlperf {
namespace {

class Sink final : public AnswerSink {
 public:
  void first_token(std::uint64_t, std::string_view) override {}
  void finished(std::uint64_t, std::string_view, std::int64_t tokens) override {
    const std::lock_guard lock(mutex_);
    least_ = least_ < 0 ? tokens : std::min(least_, tokens);
    ++ended_;
    changed_.notify_one();
  }
  void failed(std::uint64_t, bool, const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = reason;
    ++ended_;
    changed_.notify_one();
  }

  // Until so many samples in all have ended.
  Status wait(std::size_t count, Duration patience, const std::function<bool()>& keep_going) {
    const TimePoint until = steady_clock().now() + patience;
    std::unique_lock lock(mutex_);
    while (ended_ < count) {
      if (!keep_going()) return fail(ErrorCode::kCancelled, "interrupted");
      if (steady_clock().now() > until) return fail(ErrorCode::kDeadline, "no answer to the first sample");
      changed_.wait_for(lock, std::chrono::milliseconds(50));
    }
    if (failure_) return fail(ErrorCode::kNetwork, "a first sample failed: {}", *failure_);
    return {};
  }
  std::int64_t least() const { return least_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;
  std::int64_t least_ = -1;
  std::optional<std::string> failure_;
};

}  // namespace

Result<WarmUp> warm_up(AnswerSource& source, std::size_t samples, int queries, int width, Duration patience,
                       const std::function<bool()>& keep_going) {
  // Never freed when given up on: the source may still tell it something.
  auto sink = std::make_unique<Sink>();
  double fastest = 0;
  std::size_t next = 0;
  for (int q = 0; q < queries; ++q) {
    std::vector<Asked> asked;
    for (int i = 0; i < width; ++i, ++next) asked.push_back({.id = next, .sample = next % samples});
    const TimePoint start = steady_clock().now();
    source.ask(asked, *sink);
    if (auto status = sink->wait(next, patience, keep_going); !status) {
      if (status.error().code != ErrorCode::kNetwork) (void)sink.release();
      return std::unexpected(std::move(status.error()));
    }
    const double elapsed = to_seconds(steady_clock().now() - start);
    fastest = q == 0 ? elapsed : std::min(fastest, elapsed);
  }
  return WarmUp{.fastest_s = fastest, .least_tokens = sink->least()};
}

}  // namespace weir::mlperf
