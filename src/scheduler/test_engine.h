// SPDX-License-Identifier: Apache-2.0
// For tests: an engine around the scheduler without a model. The next token is a function of everything that the row could see, so
// that a wrong block, a wrong phase or a lost row changes the answer; alone() says what the answer must be.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kvcache/test_memory.h"
#include "scheduler/scheduler.h"

namespace weir::scheduler {

constexpr TokenId kVocabulary = 6;
constexpr TokenId kEnd = 0, kOpens = 3, kForced = 4;  // after kOpens a grammar forces two kForced

// Appends a sampled token and what it forces. True when the answer ends.
inline bool append(std::vector<TokenId>& tokens, TokenId token, std::size_t most) {
  tokens.push_back(token);
  for (int i = 0; i < 2 && token == kOpens && tokens.size() < most; ++i) tokens.push_back(kForced);
  return token == kEnd || tokens.size() >= most;
}

// Prompt (or its fork) and answer, as if there were nothing else in the world.
inline std::vector<TokenId> alone(std::vector<TokenId> tokens, std::size_t prompt, std::size_t max_tokens, bool phases_differ) {
  if (max_tokens == 0 || (tokens.size() > prompt && tokens.back() == kEnd) || tokens.size() >= prompt + max_tokens) return tokens;
  const auto size = static_cast<std::int64_t>(prompt);
  while (!append(tokens, kvcache::next_token(kvcache::contents(tokens, size, phases_differ).back(), kVocabulary), prompt + max_tokens)) {
  }
  return tokens;
}

inline Request prompt_of(std::size_t tokens, std::int32_t max_tokens = 8, TokenId first = 1) {
  Request request;
  for (std::size_t i = 0; i < tokens; ++i) request.prompt.push_back(first + static_cast<TokenId>(i));
  request.max_tokens = max_tokens;
  return request;
}

// A prompt whose answer is at least as long as asked for. They are searched, since the model is a hash.
inline Request talkative(std::size_t tokens, std::int32_t max_tokens, TokenId first = 1) {
  for (;; first += 1000) {
    Request request = prompt_of(tokens, max_tokens, first);
    const auto answer = alone(request.prompt, tokens, static_cast<std::size_t>(max_tokens), true);
    if (answer.size() == tokens + static_cast<std::size_t>(max_tokens)) return request;
  }
}

class TestEngine {
 public:
  TestEngine(const kvcache::CacheOptions& cache_options, const SchedulerOptions& options, std::unique_ptr<Policy> policy = first_come())
      : cache(cache_options), scheduler(options, cache, std::move(policy), clock), memory_(cache_options) {}

  Result<SeqId> try_submit(Request request) {
    const std::size_t prompt = request.prompt.size(), most = prompt + static_cast<std::size_t>(request.max_tokens);
    std::vector<TokenId> expected =
        alone(request.prompt, prompt, static_cast<std::size_t>(request.max_tokens), cache.options().phases_differ);
    auto id = scheduler.submit(std::move(request));
    if (id) live[*id] = {prompt, most, std::move(expected)};
    return id;
  }

  SeqId submit(Request request) {
    const auto id = try_submit(std::move(request));
    EXPECT_TRUE(id.has_value()) << id.error().message;
    return *id;
  }

  // One whole step; step_time for the step and 1 ms for each prefilled position. The plan stays readable.
  const StepPlan& step() {
    const StepPlan& plan = scheduler.plan();
    kvcache::apply(plan.memory, memory_, nullptr);
    memory_.begin_step();
    std::vector<std::vector<TokenId>> tokens;
    std::vector<RowResult> results;
    for (const Row& row : plan.rows) tokens.push_back(run(row));
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      const Live& l = live.at(plan.rows[i].sequence);
      const bool full = plan.rows[i].logits > 0 && before(plan.rows[i]) + tokens[i].size() >= l.most;
      results.push_back({tokens[i], full || (!tokens[i].empty() && tokens[i].back() == kEnd)});
    }
    finished.clear();
    std::map<SeqId, std::vector<TokenId>> said;
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      const auto known = scheduler.tokens(plan.rows[i].sequence);
      if (results[i].finished)
        (said[plan.rows[i].sequence] = {known.begin(), known.end()})
            .insert(said[plan.rows[i].sequence].end(), tokens[i].begin(), tokens[i].end());
    }
    const Duration elapsed = step_time + std::chrono::milliseconds(plan.prefill_positions);
    clock.advance(elapsed);
    scheduler.complete(results, elapsed);
    for (auto& [id, answer] : said) end(id, std::move(answer));
    for (const SeqId id : plan.expired) live.erase(id);
    ++steps;
    return plan;
  }

  // A step whose rows come to nothing.
  const StepPlan& fail_step() {
    const StepPlan& plan = scheduler.plan();
    kvcache::apply(plan.memory, memory_, nullptr);
    for (const SeqId id : plan.expired) live.erase(id);
    scheduler.abandon();
    return plan;
  }

  // Until nothing is left to do.
  void drain(int most_steps = 100'000) {
    while (!scheduler.idle() && most_steps-- > 0) ASSERT_NO_FATAL_FAILURE(step());
    ASSERT_TRUE(scheduler.idle()) << "requests are left over";
  }

  // Another answer from the `back`th last token on.
  SeqId fork(SeqId parent, TokenId other, std::size_t back = 1) {
    const auto known = scheduler.tokens(parent);
    const Live& l = live.at(parent);
    if (known.size() < l.prompt + back) return {};
    std::vector<TokenId> tokens(known.begin(), known.end() - static_cast<std::ptrdiff_t>(back));
    const auto keep = static_cast<std::int64_t>(tokens.size());
    const bool ends = append(tokens, other, l.most);
    if (ends) return {};
    const auto id = scheduler.fork(parent, keep, std::span(tokens).subspan(static_cast<std::size_t>(keep)));
    if (!id) return {};
    live[*id] = {l.prompt, l.most, alone(tokens, l.prompt, l.most - l.prompt, cache.options().phases_differ)};
    return *id;
  }

  bool cancel(SeqId id) {
    live.erase(id);
    return scheduler.cancel(id);
  }

  Duration step_time = std::chrono::milliseconds(1);
  FakeClock clock;
  kvcache::Cache cache;
  Scheduler scheduler;
  struct Live {
    std::size_t prompt = 0, most = 0;
    std::vector<TokenId> expected;
  };
  std::map<SeqId, Live> live;
  std::vector<SeqId> finished;  // in the last step
  std::int64_t steps = 0, ended = 0;

 private:
  // Tokens known before the row's result.
  static std::size_t before(const Row& row) {
    return static_cast<std::size_t>(row.first_position) + row.tokens.size() - static_cast<std::size_t>(row.drafted);
  }

  std::vector<TokenId> run(const Row& row) {
    const Live& l = live.at(row.sequence);
    const auto known = scheduler.tokens(row.sequence).first(static_cast<std::size_t>(row.first_position));
    std::vector<TokenId> tokens(known.begin(), known.end());
    tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    const auto first = static_cast<std::size_t>(row.first_position);
    EXPECT_EQ(row.phase == Phase::kPrefill, tokens.size() <= l.prompt);
    EXPECT_TRUE(row.phase == Phase::kPrefill || first >= l.prompt) << "a row of both phases";
    memory_.run(*row.memory, tokens, static_cast<std::int64_t>(l.prompt), row.first_position);
    std::vector<TokenId> result;
    if (row.logits == 0 || before(row) < scheduler.tokens(row.sequence).size() || l.most == l.prompt) return result;
    // What the logits after each right guess say.
    const auto all = kvcache::contents(tokens, static_cast<std::int64_t>(l.prompt), cache.options().phases_differ);
    const auto guesses = row.tokens.last(static_cast<std::size_t>(row.drafted));
    for (;;) {
      const std::size_t at = before(row) + result.size();
      std::vector<TokenId> whole(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at));
      const bool ends = append(whole, kvcache::next_token(all[at - 1], kVocabulary), l.most);
      result.insert(result.end(), whole.begin() + static_cast<std::ptrdiff_t>(at), whole.end());
      if (ends || result.size() > guesses.size() || !std::ranges::equal(result, guesses.first(result.size()))) return result;
    }
  }

  void end(SeqId id, std::vector<TokenId> answer) {
    EXPECT_EQ(answer, live.at(id).expected) << "sequence " << id.value;
    live.erase(id);
    finished.push_back(id);
    ++ended;
  }

  kvcache::TestMemory memory_;
};

inline kvcache::CacheOptions blocks_of_4(std::int32_t blocks) {
  kvcache::CacheOptions options;
  options.block_tokens = 4;
  options.groups = {{blocks, 0}};
  return options;
}

}  // namespace weir::scheduler
