// SPDX-License-Identifier: Apache-2.0
#include "speculation/speculator.h"

#include <gtest/gtest.h>

#include <numeric>

#include "speculation/test_target.h"

namespace weir::speculation {
namespace {

// A text, and the same one with every twentieth token replaced, one removed and some added.
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
};

// Natural text as a look-up sees it: most pairs never come again, some do and go on otherwise.
Target text_that_does_not_repeat() { return script(Tokens(10, 1), random_tokens(3, 5'000, 60)); }

TEST(Speculator, AnEditedCopyIsMuchFaster) {
  const EditTask task;
  const Target target = script(task.prompt, task.answer);
  for (const auto& [time, least] : {std::pair{memory_bound(), 4.0}, {in_groups(), 2.0}}) {
    Speculator speculator = with_look_up();
    const Outcome outcome = run_alone(speculator, target, task.prompt, task.answer.size(), time);
    EXPECT_EQ(outcome.tokens, plain(target, task.prompt, task.answer.size()));
    EXPECT_GE(outcome.speedup, least);
    std::printf("edited copy: %.2fx\n", outcome.speedup);
  }
}

TEST(Speculator, WhereRowsAreNotFreeItStaysOff) {
  const EditTask task;
  const Target target = script(task.prompt, task.answer);
  Speculator speculator = with_look_up();
  const Outcome outcome = run_alone(speculator, target, task.prompt, task.answer.size(), compute_bound());
  EXPECT_GE(outcome.speedup, 0.98);
  EXPECT_LE(speculator.stats().drafted, 10);
}

TEST(Speculator, TextThatDoesNotRepeatLosesLittle) {
  const Tokens prompt(10, 1);
  int kind = 0;
  for (const Target& target : {text_that_does_not_repeat(), markov(4, 300, 40), markov(5, 40, 5)}) {
    for (const StepTime& time : {memory_bound(), compute_bound(), in_groups()}) {
      for (const std::size_t answer : {32, 128, 2'000}) {
        Speculator speculator = with_look_up();
        const Outcome outcome = run_alone(speculator, target, prompt, answer, time);
        EXPECT_EQ(outcome.tokens, plain(target, prompt, answer));
        EXPECT_GE(outcome.speedup, 0.98) << "kind " << kind << " answer " << answer;
        std::printf("kind %d answer %zu: %.3f (%ld of %ld)\n", kind, answer, outcome.speedup, speculator.stats().right,
                    speculator.stats().drafted);
      }
    }
    ++kind;
  }
}

}  // namespace
}  // namespace weir::speculation
