// SPDX-License-Identifier: Apache-2.0
// Log probabilities of given tokens against transformers' (tests/data/arch), whatever the chunks.
#include "engine/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/embedding_test_models.h"

namespace weir::engine {
namespace {

using ::testing::HasSubstr;
using testing::load;

TEST(Scoring, EqualsTheReferencesPromptLogprobs) {
  for (const char* name : {"qwen3", "llama", "gemma2", "mamba2", "phi3"}) {
    const auto folder = weir::testing::data_path(std::string("arch/") + name);
    LoadedModel loaded = load(folder);
    const json::Value golden = json::parse(read_file(folder / "golden.json", 64 << 20).value(), "golden.json").value();
    for (const json::Value& sequence : golden.at("sequences").as_array()) {
      std::vector<TokenId> ids;
      for (const json::Value& id : sequence.at("ids").as_array()) ids.push_back(id.to_number<TokenId>());
      if (ids.size() < 2) continue;
      const auto scores = score_tokens(loaded, ids, {.top_n = 3, .chunk = 16});
      ASSERT_TRUE(scores) << scores.error().message;
      const json::Array& expected = sequence.at("next_logprob").as_array();
      ASSERT_EQ(scores->size(), expected.size());
      for (std::size_t i = 0; i < scores->size(); ++i) {
        EXPECT_NEAR((*scores)[i].token.logprob, expected[i].to_number<double>(), 6e-4) << name << ", position " << i + 1;
        EXPECT_EQ((*scores)[i].token.id, ids[i + 1]);
        EXPECT_EQ((*scores)[i].top.size(), 3u);
      }
    }
  }
}

TEST(Scoring, ChunksChangeNoBit) {
  LoadedModel loaded = load(weir::testing::data_path("arch/qwen3"));
  std::vector<TokenId> ids;
  for (int i = 0; i < 100; ++i) ids.push_back((i * 37) % 260);
  const auto whole = score_tokens(loaded, ids, {.top_n = 2, .chunk = 1000}).value();
  for (const std::int32_t chunk : {1, 7, 64}) {
    const auto pieces = score_tokens(loaded, ids, {.top_n = 2, .chunk = chunk}).value();
    ASSERT_EQ(pieces.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(pieces[i].token.logprob, whole[i].token.logprob) << "chunks of " << chunk << ", position " << i + 1;
      EXPECT_EQ(pieces[i].rank, whole[i].rank);
    }
  }
}

TEST(Scoring, AContinuationIsTheSumOfItsTokens) {
  LoadedModel loaded = load(weir::testing::data_path("arch/llama"));
  const std::vector<TokenId> context = {5, 9, 100, 31};
  std::vector<TokenId> ids = context;
  const auto best_after = [&](std::vector<TokenId> prompt) {
    prompt.push_back(0);
    return score_tokens(loaded, prompt, {.top_n = 1}).value().back().top.front().id;
  };
  std::vector<TokenId> greedy;
  for (int i = 0; i < 3; ++i) {
    greedy.push_back(best_after(ids));
    ids.push_back(greedy.back());
  }
  const auto scores = score_tokens(loaded, ids).value();
  const auto found = score_continuation(loaded, context, greedy).value();
  EXPECT_DOUBLE_EQ(found.logprob, scores[3].token.logprob + scores[4].token.logprob + scores[5].token.logprob);
  EXPECT_TRUE(found.is_greedy);
  EXPECT_EQ(found.tokens, 3);
  greedy[1] = greedy[1] == 7 ? 8 : 7;
  EXPECT_FALSE(score_continuation(loaded, context, greedy).value().is_greedy);
}

TEST(Scoring, RefusesWhatHasNoScore) {
  LoadedModel loaded = load(weir::testing::data_path("arch/llama"));
  const auto says = [&](LoadedModel& model, const std::vector<TokenId>& ids) {
    const auto scores = score_tokens(model, ids);
    return scores ? std::string("accepted") : scores.error().message;
  };
  EXPECT_THAT(says(loaded, {}), HasSubstr("nothing follows"));
  EXPECT_THAT(says(loaded, {4}), HasSubstr("nothing follows"));
  EXPECT_THAT(says(loaded, {4, 264}), HasSubstr("token 1: the id 264"));
  EXPECT_THAT(says(loaded, std::vector<TokenId>(200000, 4)), HasSubstr("at most"));
  LoadedModel encoder = load(weir::testing::data_path("arch/bert"));
  EXPECT_THAT(says(encoder, {4, 5}), HasSubstr("is an encoder"));
  EXPECT_FALSE(score_continuation(loaded, {}, std::vector<TokenId>{4}));
  const auto stopped = score_tokens(loaded, std::vector<TokenId>{4, 5, 6}, {}, [](std::int64_t, const sampling::TokenLogprobs&) -> Status {
    return fail(ErrorCode::kCancelled, "enough");
  });
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace weir::engine
