// SPDX-License-Identifier: Apache-2.0
// What scheduling costs beside the model: plan() and complete() of a step, the books of the KV cache included.
#include <benchmark/benchmark.h>

#include <vector>

#include "scheduler/scheduler.h"

namespace weir::scheduler {
namespace {

// Requests of `prompt` tokens with answers of `answer` tokens, as many at once as may run; each that ends is followed by the next.
class Service {
 public:
  Service(std::int32_t running, std::int32_t prompt, std::int32_t answer, std::int32_t waiting, std::vector<kvcache::GroupLayout> groups)
      : prompt_(prompt),
        answer_(answer),
        waiting_(waiting),
        cache_(layout(std::move(groups))),
        scheduler_({.token_budget = 1024 + running, .max_running = running, .max_waiting = waiting + 1}, cache_, first_come(), clock_) {}

  void step() {
    while (scheduler_.stats().waiting < waiting_) submit();
    const StepPlan& plan = scheduler_.plan();
    results_.clear();
    for (const Row& row : plan.rows) {
      const bool ends = row.logits > 0 && row.first_position + 1 >= prompt_ + answer_ - 1;
      results_.push_back({std::span(&token_, row.logits > 0 ? 1 : 0), ends});
      ended_ += ends ? 1 : 0;
    }
    token_ = (token_ * 31 + 7) & 0xffff;
    scheduler_.complete(results_, std::chrono::milliseconds(20));
  }

  std::int64_t ended() const { return ended_; }
  double streams() const { return static_cast<double>(results_.size()); }

 private:
  static kvcache::CacheOptions layout(std::vector<kvcache::GroupLayout> groups) {
    kvcache::CacheOptions options;
    options.groups = std::move(groups);
    return options;
  }
  void submit() {
    Request request;
    request.prompt.resize(static_cast<std::size_t>(prompt_));
    for (std::size_t i = 0; i < request.prompt.size(); ++i) request.prompt[i] = static_cast<TokenId>((next_ * 7919 + i) & 0xffff);
    request.max_tokens = answer_;
    ++next_;
    static_cast<void>(scheduler_.submit(std::move(request)));
  }

  std::int32_t prompt_, answer_, waiting_;
  FakeClock clock_;
  kvcache::Cache cache_;
  Scheduler scheduler_;
  std::vector<RowResult> results_;
  TokenId token_ = 1;
  std::uint64_t next_ = 0;
  std::int64_t ended_ = 0;
};

void steps(benchmark::State& state, std::int32_t prompt, std::int32_t answer, std::vector<kvcache::GroupLayout> groups) {
  const auto running = static_cast<std::int32_t>(state.range(0));
  Service service(running, prompt, answer, running, std::move(groups));
  for (int i = 0; i < 600; ++i) service.step();
  double rows = 0;
  for (auto _ : state) {
    service.step();
    rows += service.streams();
  }
  state.counters["rows/step"] = benchmark::Counter(rows, benchmark::Counter::kAvgIterations);
}

void streams(benchmark::State& state) { steps(state, 32, 2000, {{40'000, 0}}); }
void chat(benchmark::State& state) { steps(state, 256, 256, {{40'000, 0}}); }
void chat_short_of_blocks(benchmark::State& state) { steps(state, 256, 256, {{static_cast<std::int32_t>(state.range(0)) * 10, 0}}); }
void chat_with_windowed_layers(benchmark::State& state) { steps(state, 256, 256, {{40'000, 0}, {10'000, 128}}); }
BENCHMARK(streams)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK(chat)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK(chat_short_of_blocks)->Arg(256)->Unit(benchmark::kMicrosecond);
BENCHMARK(chat_with_windowed_layers)->Arg(256)->Unit(benchmark::kMicrosecond);

void a_million_requests(benchmark::State& state) {
  for (auto _ : state) {
    Service service(256, 64, 32, 64, {{10'000, 0}});
    while (service.ended() < 1'000'000) service.step();
  }
}
BENCHMARK(a_million_requests)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace weir::scheduler
