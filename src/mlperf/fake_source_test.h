// SPDX-License-Identifier: Apache-2.0
// An AnswerSource of programmed delays, for tests: nothing is computed, so what LoadGen should say is known.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "mlperf/answer_source.h"

namespace weir::mlperf {

struct FakeAnswer {
  Duration first{}, rest{};  // until the first token, and from it to the end
  std::int64_t tokens = 2;
  std::string data = "answer", first_data = "a";
  std::string failure = {};
};

class FakeSource final : public AnswerSource {
 public:
  // `number` counts the samples asked so far, from 0.
  using Program = std::function<FakeAnswer(std::uint64_t number, std::size_t sample)>;
  explicit FakeSource(Program program) : program_(std::move(program)), thread_([this] { run(); }) {}
  ~FakeSource() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  const std::string& name() const override { return name_; }
  void ask(std::span<const Asked> asked, AnswerSink& sink) override {
    {
      const std::lock_guard lock(mutex_);
      for (const Asked& a : asked) {
        FakeAnswer answer = program_(number_++, a.sample);
        due_.emplace(steady_clock().now() + answer.first, Step{a.id, &sink, std::move(answer), false});
      }
    }
    changed_.notify_one();
  }

 private:
  struct Step {
    std::uint64_t id;
    AnswerSink* sink;
    FakeAnswer answer;
    bool end;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (due_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const TimePoint next = due_.begin()->first;
      if (next > steady_clock().now()) {
        changed_.wait_for(lock, next - steady_clock().now());
        continue;
      }
      Step step = std::move(due_.extract(due_.begin()).mapped());
      lock.unlock();
      if (step.end) {
        step.sink->finished(step.id, step.answer.data, step.answer.tokens);
        lock.lock();
      } else if (!step.answer.failure.empty()) {
        step.sink->failed(step.id, false, step.answer.failure);
        lock.lock();
      } else {
        step.sink->first_token(step.id, step.answer.first_data);
        const TimePoint end = steady_clock().now() + step.answer.rest;
        step.end = true;
        lock.lock();
        due_.emplace(end, std::move(step));
      }
    }
  }

  const std::string name_ = "fake";
  Program program_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<TimePoint, Step> due_;
  std::uint64_t number_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace weir::mlperf
