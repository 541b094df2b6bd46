// SPDX-License-Identifier: Apache-2.0
// For tests: clients with random wishes around a StepLoop, without threads and with a clock that stands still. They read slowly,
// cancel, drop their streams and ask for several answers, while steps fail; each checks what it is told against what it would get
// alone, and that it is told its end exactly once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/step_loop.h"

namespace weir::engine {

// Makes steps take time, and some fail: with an error, or with an exception before or after the work.
class UnreliableExecutor final : public StepExecutor {
 public:
  UnreliableExecutor(StepExecutor& inner, FakeClock& clock) : inner_(inner), clock_(clock) {}
  std::int32_t vocabulary() const override { return inner_.vocabulary(); }
  Result<kernels::ConstMatrix> run(const scheduler::StepPlan& plan, std::span<const RowContext> contexts) override {
    const std::int32_t now = fail_every > 0 ? static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(fail_every)) : 9;
    if (now == 0) throw std::runtime_error("a fault before the work");
    clock_.advance(std::chrono::microseconds(1000 + 20 * plan.decode_positions + 100 * plan.prefill_positions));
    const auto logits = inner_.run(plan, contexts);
    if (now == 1) throw std::bad_alloc();
    if (now < 5) return fail(ErrorCode::kInternal, "a step that fails");
    return logits;
  }

  std::int32_t fail_every = 0;  // 0 = never

 private:
  StepExecutor& inner_;
  FakeClock& clock_;
  std::mt19937_64 random_{99};
};

// What a request must get.
struct Alone {
  std::vector<CompletionEvent> answers;  // tokens, text, reason of each
  std::vector<double> prompt_logprobs;
};

class TestClient {
 public:
  TestClient(CompletionRequest r, Alone a, std::unique_ptr<CompletionStream> s)
      : request(std::move(r)), alone_(std::move(a)), stream_(std::move(s)), got_(static_cast<std::size_t>(request.answers)) {}

  // Takes up to `most` events.
  void read(std::size_t most = SIZE_MAX) {
    for (std::size_t i = 0; i < most && stream_; ++i) {
      auto event = stream_->next();
      if (!event) return;
      ASSERT_FALSE(ended_) << "an event behind the last";
      const auto number = static_cast<std::size_t>(event->answer);
      ASSERT_LT(number, got_.size());
      ASSERT_FALSE(got_[number].finish) << "an event behind the end of answer " << number;
      ASSERT_TRUE(event->finish || !event->tokens.empty() || !event->text.empty());
      ended_ = event->last;
      append_event(got_[number], std::move(*event));
    }
  }
  void cancel() {
    cancelled_ = true;
    stream_->cancel();
  }
  void drop() {
    stream_.reset();
    ended_ = true;
  }
  bool dropped() const { return stream_ == nullptr; }
  bool ended() const { return ended_; }
  bool cancelled() const { return cancelled_; }

  // After the last event. True when every answer is whole.
  bool check(bool steps_fail) const {
    bool whole = true;
    for (std::size_t i = 0; i < got_.size(); ++i) whole &= check_answer(got_[i], alone_.answers[i], steps_fail);
    for (std::size_t i = 0; i < got_[0].prompt_logprobs.size(); ++i)
      EXPECT_EQ(got_[0].prompt_logprobs[i].token.logprob, alone_.prompt_logprobs.at(i));
    if (whole && request.prompt_logprobs >= 0) {
      EXPECT_EQ(got_[0].prompt_logprobs.size(), request.prompt.size() - 1);
    }
    return whole;
  }
  const std::vector<CompletionEvent>& got() const { return got_; }

  CompletionRequest request;
  std::int64_t since = 0;  // the step in which it came

 private:
  bool check_answer(const CompletionEvent& got, const CompletionEvent& alone, bool steps_fail) const {
    EXPECT_TRUE(got.finish);
    if (!got.finish) return false;
    const Finish& finish = *got.finish;
    EXPECT_EQ(finish.generated, static_cast<std::int64_t>(got.tokens.size()));
    EXPECT_EQ(finish.timeline.tokens.size(), got.tokens.size());
    EXPECT_LE(finish.accepted, finish.drafted);
    EXPECT_TRUE(std::ranges::is_sorted(finish.timeline.tokens));
    if (request.sampling.logprobs >= 0) {
      EXPECT_EQ(got.logprobs.size(), got.tokens.size());
    }
    if (finish.reason == FinishReason::kStop || finish.reason == FinishReason::kLength) {
      EXPECT_EQ(got.tokens, alone.tokens);
      EXPECT_EQ(got.text, alone.text);
      EXPECT_EQ(finish.reason, alone.finish->reason);
      EXPECT_EQ(finish.stop_text, alone.finish->stop_text);
      return true;
    }
    EXPECT_TRUE(got.tokens.size() <= alone.tokens.size() &&
                std::ranges::equal(got.tokens, std::span(alone.tokens).first(got.tokens.size())));
    if (finish.reason == FinishReason::kCancelled) {
      const bool timed = request.time_limit > Duration::zero() || request.queue_limit > Duration::zero();
      EXPECT_TRUE(cancelled_ || (timed && finish.error && finish.error->code == ErrorCode::kDeadline));
    } else if (alone.finish->reason == FinishReason::kFailed && got.tokens == alone.tokens) {
      EXPECT_EQ(finish.error->code, alone.finish->error->code);
    } else {
      EXPECT_TRUE(finish.error && (steps_fail || finish.error->code == ErrorCode::kExhausted)) << finish.error->message;
    }
    return false;
  }

  Alone alone_;
  std::unique_ptr<CompletionStream> stream_;
  std::vector<CompletionEvent> got_;
  bool ended_ = false, cancelled_ = false;
};

struct ServiceSetup {
  kvcache::CacheOptions cache;
  scheduler::SchedulerOptions scheduler = {.token_budget = 24, .max_running = 6, .max_waiting = 12, .max_waiting_tokens = 300};
  std::unique_ptr<scheduler::Policy> policy = scheduler::first_come();
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::function<CompletionRequest(std::mt19937_64&)> wish;
  std::function<Alone(const CompletionRequest&)> alone;
  std::function<std::optional<grammar::Matcher>(const CompletionRequest&)> matcher = {};
  std::unique_ptr<speculation::Speculator> speculator;
  std::size_t clients = 14;
  std::int32_t fail_every = 0;
  std::uint64_t seed = 1;
};

class TestService {
 public:
  // The executor sees what `scheduler` says of a sequence's tokens.
  TestService(ServiceSetup setup, const std::function<std::unique_ptr<StepExecutor>(const scheduler::Scheduler&)>& make)
      : setup_(std::move(setup)),
        random_(setup_.seed),
        cache_(setup_.cache),
        scheduler_(setup_.scheduler, cache_, std::move(setup_.policy), clock_),
        model_(make(scheduler_)),
        executor_(*model_, clock_),
        loop_(executor_, scheduler_, cache_, setup_.tokenizer, clock_) {
    executor_.fail_every = setup_.fail_every;
    if (setup_.speculator) loop_.speculate(std::move(setup_.speculator));
  }

  void step() {
    if (below(4) == 0 && clients_.size() < setup_.clients) submit();
    if (!clients_.empty() && below(30) == 0) any().cancel();
    if (!clients_.empty() && below(60) == 0) any().drop();
    std::erase_if(clients_, [](const TestClient& c) { return c.dropped(); });
    run();
    if (below(500) == 0) cache_.clear();
    for (TestClient& c : clients_) {
      if (c.cancelled()) {
        ASSERT_NO_FATAL_FAILURE(c.read());
        ASSERT_TRUE(c.ended()) << "a cancelled request goes on";
      } else if (below(6) == 0) {  // often much more comes than the channel holds
        ASSERT_NO_FATAL_FAILURE(c.read(1 + below(20)));
      }
    }
    settle();
    for (const kvcache::PoolStats& p : cache_.stats().pools) ASSERT_EQ(p.used + p.cached + p.free, p.capacity);
  }

  // Until everything has ended.
  void finish() {
    executor_.fail_every = 0;
    for (int i = 0; i < 20'000 && loop_.open_requests() > 0; ++i) run();
    ASSERT_EQ(loop_.open_requests(), 0);
    EXPECT_TRUE(scheduler_.idle());
    for (TestClient& c : clients_) c.read();
    settle();
    EXPECT_TRUE(clients_.empty()) << "streams without a last event";
    for (const kvcache::PoolStats& p : cache_.stats().pools) EXPECT_EQ(p.used, 0);
    cache_.clear();
    EXPECT_EQ(cache_.stats().nodes, 0);
    EXPECT_EQ(scheduler_.stats().waiting_tokens, 0);
  }

  ServiceStats stats() const {
    ServiceStats stats;
    loop_.fill(stats);
    return stats;
  }
  std::int64_t whole = 0;         // requests that ended with all they asked for
  std::int64_t longest_stay = 0;  // in steps

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  TestClient& any() { return *std::next(clients_.begin(), static_cast<std::ptrdiff_t>(below(clients_.size()))); }

  void run() {
    ++steps_;
    try {
      loop_.step();
    } catch (const std::exception& e) {
      loop_.recover({ErrorCode::kInternal, e.what()});
      ASSERT_EQ(loop_.open_requests(), 0);
    }
  }

  void submit() {
    CompletionRequest request = setup_.wish(random_);
    auto channel = std::make_shared<CompletionChannel>(notice_, nullptr);
    clients_.emplace_back(request, setup_.alone(request), make_stream(channel));
    clients_.back().since = steps_;
    std::optional<grammar::Matcher> matcher;
    if (setup_.matcher) matcher = setup_.matcher(request);
    const std::int64_t limit = request.prompt_only ? 0 : request.max_tokens;
    std::string salt = request.tenant + request.cache_salt;
    loop_.admit({.request = std::move(request),
                 .channel = std::move(channel),
                 .matcher = std::move(matcher),
                 .adapter = {},
                 .salt = std::move(salt),
                 .limit = limit,
                 .queued = clock_.now()});
  }

  void settle() {
    std::erase_if(clients_, [this](const TestClient& c) {
      if (!c.ended()) return false;
      longest_stay = std::max(longest_stay, steps_ - c.since);
      whole += c.check(setup_.fail_every > 0) ? 1 : 0;
      return true;
    });
  }

  ServiceSetup setup_;
  std::mt19937_64 random_;
  FakeClock clock_;
  kvcache::Cache cache_;
  scheduler::Scheduler scheduler_;
  std::unique_ptr<StepExecutor> model_;
  UnreliableExecutor executor_;
  StepLoop loop_;
  std::shared_ptr<Notice> notice_ = std::make_shared<Notice>();
  std::list<TestClient> clients_;
  std::int64_t steps_ = 0;
};

}  // namespace weir::engine
