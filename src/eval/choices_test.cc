// SPDX-License-Identifier: Apache-2.0
#include "eval/choices.h"

#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/testing.h"

namespace weir::eval {
namespace {

Result<std::vector<ChoiceTask>> read(std::string_view text) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(write_file_atomically(folder.path() / "tasks.jsonl", text));
  return read_choice_tasks(folder.path() / "tasks.jsonl");
}

TEST(Choices, ReadsTasksAndNamesTheLineOfABadOne) {
  const auto tasks =
      read("{\"context\": \"a\", \"choices\": [\" b\", \" c\"], \"answer\": 1}\n\n{\"context\": \"d\", \"choices\": [\"e\"]}");
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ(tasks->at(0).answer, 1);
  EXPECT_EQ(tasks->at(1).answer, -1);
  for (const char* bad : {"{}", "[]", "{\"context\": \"a\", \"choices\": []}", "{\"context\": \"a\", \"choices\": [1]}", "nonsense",
                          "{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": 1}", "{\"context\": \"a\", \"choices\": [\"\"]}"}) {
    const auto refused = read("{\"context\": \"d\", \"choices\": [\"e\"]}\n" + std::string(bad));
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_NE(refused.error().message.find("tasks.jsonl:2"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(read("\n").has_value());
}

TEST(Choices, TheModelKnowsSomeOfTheAnswers) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  auto loaded = engine::load_model(testing::smollm2_path(), {.threads = 2, .isa = ""}).value();
  const auto tasks = read_choice_tasks(testing::data_path("eval/choices.jsonl")).value();
  const auto result = score_choices(loaded, tasks);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->answered, static_cast<std::int64_t>(tasks.size()));
  EXPECT_GT(result->accuracy, 0.7);
  EXPECT_LT(result->accuracy, 1.0001);
  for (const ChoiceScores& task : result->tasks) {
    for (const auto& choice : task.choices) EXPECT_LT(choice.logprob, 0);
  }
}

TEST(Choices, SpacesBetweenContextAndChoiceMayStandOnEitherSide) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  auto loaded = engine::load_model(testing::smollm2_path(), {.threads = 2, .isa = ""}).value();
  const ChoiceTask tasks[] = {{"The capital of France is", {" Paris"}, 0}, {"The capital of France is ", {"Paris"}, 0}, {"", {"Paris"}, 0}};
  const auto result = score_choices(loaded, tasks).value();
  EXPECT_EQ(result.tasks[0].choices[0].logprob, result.tasks[1].choices[0].logprob);
  EXPECT_NE(result.tasks[0].choices[0].logprob, result.tasks[2].choices[0].logprob);
}

}  // namespace
}  // namespace weir::eval
