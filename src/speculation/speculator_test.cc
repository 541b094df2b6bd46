// SPDX-License-Identifier: Apache-2.0
#include "speculation/speculator.h"

#include <gtest/gtest.h>

#include <numeric>

#include "speculation/test_target.h"

namespace weir::speculation {
namespace {

// A text, and the same one with every twentieth token replaced, some removed and some added.
struct EditTask {
  Tokens prompt = random_tokens(1, 400, 5'000);
  Tokens answer;
  EditTask() {
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      if (i % 60 == 59) continue;
      answer.push_back(i % 20 == 13 ? static_cast<TokenId>(6'000 + i) : prompt[i]);
      if (i % 70 == 69) answer.insert(answer.end(), {7'000, 7'001, 7'002});
    }
    prompt.push_back(9'999);
  }
  Target target() const { return script(prompt, answer); }
};

// Pairs come again, longer pieces hardly ever, and nothing follows from them.
Target text_that_does_not_repeat() { return script(Tokens(10, 1), random_tokens(3, 5'000, 60)); }

std::vector<std::pair<const char*, StepTime>> machines() {
  return {{"memory bound", memory_bound()}, {"compute bound", compute_bound()}, {"in groups", in_groups()}};
}

TEST(Speculator, AnEditedCopyIsMuchFaster) {
  const EditTask task;
  const Target target = task.target();
  for (const auto& [time, least] : {std::pair{memory_bound(), 4.0}, {in_groups(), 2.5}}) {
    Speculator speculator = with_look_up();
    const Outcome outcome = run_alone(speculator, target, task.prompt, task.answer.size(), time);
    EXPECT_EQ(outcome.tokens, plain(target, task.prompt, task.answer.size()));
    EXPECT_GE(outcome.speedup, least);
  }
}

TEST(Speculator, WhereRowsAreNotFreeItHardlyGuesses) {
  const EditTask task;
  Speculator speculator = with_look_up();
  const StepTime dear = [](std::int64_t rows) { return 0.010 * (1 + 1.2 * static_cast<double>(rows - 1)); };
  EXPECT_GE(run_alone(speculator, task.target(), task.prompt, task.answer.size(), dear).speedup, 0.98);
}

TEST(Speculator, TextThatDoesNotRepeatLosesAtMostTwoPercent) {
  const Tokens prompt(10, 1);
  for (const Target& target : {text_that_does_not_repeat(), markov(4, 300, 40), markov(5, 40, 5)}) {
    for (const auto& [name, time] : machines()) {
      Speculator speculator = with_look_up();
      EXPECT_GE(run_alone(speculator, target, prompt, 128, time, 0).speedup, 0.98) << name << ", from a cold start";
      for (const std::size_t answer : {32, 128, 2'000}) {
        const Outcome outcome = run_alone(speculator, target, prompt, answer, time, static_cast<std::int64_t>(answer));
        EXPECT_EQ(outcome.tokens, plain(target, prompt, answer));
        EXPECT_GE(outcome.speedup, 0.98) << name << ", " << answer << " tokens";
      }
    }
  }
}

// What follows a repeat is always something else: the look-up is wrong whenever it speaks.
TEST(Speculator, AnAdversaryGainsLittle) {
  Tokens text;
  for (TokenId i = 0; i < 600; ++i) text.insert(text.end(), {1, 2, 3, 4, 5, 6, 1'000 + i});
  for (const auto& [name, time] : machines()) {
    Speculator speculator = with_look_up();
    Tokens wrong = text;
    for (std::size_t i = 6; i < wrong.size(); i += 7) std::swap(wrong[i], wrong[i - i % 3]);
    EXPECT_GE(run_alone(speculator, script(Tokens(5, 9), wrong), Tokens(5, 9), wrong.size(), time).speedup, 0.97) << name;
  }
}

TEST(Speculator, TurnsOffWhenACopyEndsAndOnWhenItBegins) {
  const Tokens source = random_tokens(8, 300, 5'000), fresh = random_tokens(9, 600, 5'000);
  Tokens answer = fresh;
  answer.insert(answer.end(), source.begin(), source.end());
  answer.insert(answer.end(), fresh.rbegin(), fresh.rend());
  const Target target = script(source, answer);
  Speculator speculator = with_look_up();
  const StepTime time = in_groups();
  std::vector<Stream> streams = {{SeqId(0), &target, source, source.size() + answer.size()}};
  const auto seconds_until = [&](std::size_t tokens) {
    const std::size_t before = streams[0].tokens.size();
    double seconds = 0;
    while (streams[0].tokens.size() < source.size() + tokens) seconds += step(speculator, streams, time);
    return seconds / (static_cast<double>(streams[0].tokens.size() - before) * time(1));
  };
  EXPECT_LE(seconds_until(600), 1.02);
  EXPECT_LE(seconds_until(900), 0.5);
  EXPECT_LE(seconds_until(1'500), 1.04);
}

TEST(Speculator, ABatchGetsTheTokensOfEachAlone) {
  const EditTask task;
  const Target copy = task.target(), chain = markov(5, 40, 5), other = text_that_does_not_repeat();
  for (const auto& [name, time] : machines()) {
    Speculator speculator = with_look_up();
    std::vector<Stream> streams;
    for (std::int64_t i = 0; i < 9; ++i) {
      const Target& target = i % 3 == 0 ? copy : i % 3 == 1 ? chain : other;
      const Tokens prompt = i % 3 == 0 ? task.prompt : Tokens(10, 1);
      streams.push_back({SeqId(i), &target, prompt, prompt.size() + 200 + static_cast<std::size_t>(i)});
    }
    double waited = 0, without = 0;  // by all streams together
    const auto running = [&] { return std::ranges::count_if(streams, [](const Stream& s) { return s.tokens.size() < s.end; }); };
    for (auto left = running(); left > 0; left = running()) waited += static_cast<double>(left) * step(speculator, streams, time);
    for (std::int64_t i = 0; i < 209; ++i) {
      const std::int64_t left = std::min<std::int64_t>(9, 209 - i);
      without += static_cast<double>(left) * time(left);
    }
    EXPECT_LE(waited, without * 1.02) << name;
    for (const Stream& s : streams)
      EXPECT_EQ(s.tokens, plain(*s.target, Tokens(s.tokens.begin(), s.tokens.begin() + (s.id.value % 3 == 0 ? 401 : 10)),
                                200 + static_cast<std::size_t>(s.id.value)))
          << name << ", stream " << s.id.value;
  }
}

TEST(Speculator, SameCallsSameGuesses) {
  const Target chain = markov(5, 40, 5);
  std::vector<std::int64_t> drafted;
  for (int run = 0; run < 2; ++run) {
    Speculator speculator = with_look_up();
    std::vector<Stream> streams = {{SeqId(1), &chain, Tokens(10, 1), 500}, {SeqId(2), &chain, Tokens(12, 3), 500}};
    for (int i = 0; i < 100; ++i) {
      step(speculator, streams, memory_bound());
      drafted.push_back(speculator.stats().drafted);
    }
  }
  EXPECT_TRUE(std::equal(drafted.begin(), drafted.begin() + 100, drafted.begin() + 100));
  EXPECT_GT(drafted[99], 0);
}

// A sequence in the middle of a copy, and what would be guessed next.
class InACopy : public ::testing::Test {
 protected:
  InACopy() {
    for (const std::int64_t rows : {1, 1, 2, 3, 4, 6, 8, 12}) speculator.calibrate(rows, Duration(1'000'000 + rows * 1'000));
    tokens = source;
    tokens.insert(tokens.end(), source.begin(), source.begin() + 50);
  }
  std::span<const Draft> propose(std::int32_t most, const Speculator::Filter& filter = {}) {
    const SequenceView view{SeqId(4), tokens, most};
    return speculator.propose({&view, 1}, 0, filter);
  }
  Tokens source = random_tokens(2, 100, 5'000), tokens;
  Speculator speculator = with_look_up();
};

TEST_F(InACopy, GuessesWhatTheSourceSays) {
  const auto drafts = propose(100);
  ASSERT_EQ(drafts.size(), 1u);
  EXPECT_EQ(drafts[0].sequence, SeqId(4));
  ASSERT_GE(drafts[0].guesses.size(), 4u);
  EXPECT_TRUE(std::ranges::equal(drafts[0].guesses, std::span(source).subspan(50, drafts[0].guesses.size())));
}

TEST_F(InACopy, NoMoreThanAreOfUse) {
  ASSERT_EQ(propose(2).size(), 1u);
  EXPECT_EQ(propose(2)[0].guesses.size(), 2u);
  EXPECT_TRUE(propose(0).empty());
  EXPECT_TRUE(propose(-3).empty());
}

TEST_F(InACopy, AFixedLengthDoesNotAskWhetherItPays) {
  SpeculatorOptions options;
  options.fixed_length = 3;
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<LookupSource>());
  speculator = Speculator(options, std::move(sources));
  for (const std::int64_t rows : {1, 2, 4, 8}) speculator.calibrate(rows, std::chrono::milliseconds(rows * rows));
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(propose(100).size(), 1u);
    ASSERT_EQ(propose(100)[0].guesses.size(), 3u);
    EXPECT_EQ(propose(2)[0].guesses.size(), 2u);
    const Verified wrong{SeqId(4), 3, 0};
    speculator.completed({.decode_rows = 4, .elapsed = std::chrono::milliseconds(16), .verified = {&wrong, 1}});
    tokens.push_back(static_cast<TokenId>(10'000 + i));
    tokens.insert(tokens.end(), source.begin(), source.begin() + 20);
  }
}

TEST_F(InACopy, AGrammarCutsTheGuesses) {
  const auto drafts = propose(100, [](SeqId, std::span<const TokenId>) { return std::size_t{3}; });
  ASSERT_EQ(drafts.size(), 1u);
  EXPECT_EQ(drafts[0].guesses.size(), 3u);
  EXPECT_TRUE(propose(100, [](SeqId, std::span<const TokenId>) { return std::size_t{0}; }).empty());
}

TEST_F(InACopy, TokensTakenBackAndASequenceForgotten) {
  propose(100);
  tokens.resize(130);
  ASSERT_EQ(propose(100).size(), 1u);
  EXPECT_EQ(propose(100)[0].guesses.front(), source[30]);
  speculator.forget(SeqId(4));
  speculator.forget(SeqId(4));
  tokens.resize(1);
  EXPECT_TRUE(propose(100).empty());
}

// The stream waits for the whole step, so a few more rows pay although each costs its full time.
TEST_F(InACopy, BesideALargeChunkRowsAreCheap) {
  for (int i = 0; i < 30; ++i) speculator.calibrate(512, std::chrono::milliseconds(512));
  const SequenceView view{SeqId(4), tokens, 100};
  const auto drafts = speculator.propose({&view, 1}, 511);
  ASSERT_EQ(drafts.size(), 1u);
  EXPECT_GE(drafts[0].guesses.size(), 8u);
}

TEST(Speculator, WithoutSourcesOrSequencesThereIsNothingToDo) {
  Speculator none({}, {});
  const Tokens tokens = {1, 2, 1, 2};
  const SequenceView view{SeqId(1), tokens, 5};
  EXPECT_TRUE(none.propose({&view, 1}).empty());
  EXPECT_TRUE(with_look_up().propose({}).empty());
}

// Two sources: one that knows the text and takes time, and one that fails.
class Oracle final : public DraftSource {
 public:
  Oracle(Tokens text, double step_s, bool broken) : text_(std::move(text)), step_s_(step_s), broken_(broken) {}
  void offer(std::span<const SequenceView> views, std::span<Offer> offers) override {
    for (std::size_t i = 0; i < views.size(); ++i) offers[i] = {1, 8};
  }
  Status draft(std::span<const SequenceView> views, std::span<const Wish> wishes, std::span<std::vector<TokenId>> guesses) override {
    if (broken_) return fail(ErrorCode::kExhausted, "no room");
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const auto next = views[wishes[i].view].tokens.size();
      for (std::size_t k = 0; k < static_cast<std::size_t>(wishes[i].length) && next + k < text_.size(); ++k)
        guesses[i].push_back(text_[next + k]);
    }
    asked += static_cast<int>(wishes.size());
    return {};
  }
  double seconds(std::int64_t, std::int32_t length) const override { return step_s_ * length; }
  bool free() const override { return false; }
  void forget(SeqId) override {}
  int asked = 0;

 private:
  Tokens text_;
  double step_s_;
  bool broken_;
};

double with_oracle(double step_s, bool broken) {
  const Tokens prompt(10, 1), answer = random_tokens(3, 400, 5'000);
  Tokens text = prompt;
  text.insert(text.end(), answer.begin(), answer.end());
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<LookupSource>());
  sources.push_back(std::make_unique<Oracle>(text, step_s, broken));
  Speculator speculator({}, std::move(sources));
  return run_alone(speculator, script(prompt, answer), prompt, answer.size(), memory_bound()).speedup;
}

TEST(Speculator, AnotherSourceIsUsedWhenItPays) {
  EXPECT_GE(with_oracle(0.0005, false), 3.0) << "its own time is not in this figure";
  EXPECT_GE(with_oracle(0.02, false), 0.995) << "drafting takes twice as long as decoding";
  EXPECT_GE(with_oracle(0.0005, true), 0.995) << "errors cost the guesses only";
}

}  // namespace
}  // namespace weir::speculation
