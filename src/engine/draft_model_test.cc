// SPDX-License-Identifier: Apache-2.0
// A draft model on the real one: drafted by itself, every guess must be right, greedy and sampled, through rollbacks and in batches.
#include "engine/draft_model.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/gguf_reader.h"

namespace weir::engine {
namespace {

LoadedModel load() {
  auto loaded = load_model(testing::smollm2_path(), {.threads = 2, .isa = ""});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(*loaded);
}

// The answer that plain decoding gives.
std::vector<TokenId> answer(LoadedModel& loaded, std::vector<TokenId> tokens, std::size_t count, const sampling::SamplingParams& params) {
  Runner runner(*loaded.model, {.max_tokens = 512});
  const SeqId id = runner.open(static_cast<std::int32_t>(tokens.size())).value();
  sampling::Sampler sampler(params);
  auto logits = runner.prefill(id, tokens, 64).value();
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(sampler.sample(logits.row_span(0), tokens.size()).value());
    const Piece pieces[] = {{id, {&tokens.back(), 1}, Outputs::kLast}};
    logits = runner.step(pieces).value();
  }
  return tokens;
}

std::vector<std::vector<TokenId>> draft(DraftModel& source, std::span<const speculation::SequenceView> views, std::int32_t length) {
  std::vector<speculation::Offer> offers(views.size());
  source.offer(views, offers);
  std::vector<speculation::Wish> wishes;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (offers[i].most > 0) wishes.push_back({i, std::min(length, offers[i].most)});
  }
  std::vector<std::vector<TokenId>> drafted(wishes.size()), guesses(views.size());
  const Status status = source.draft(views, wishes, drafted);
  EXPECT_TRUE(status) << status.error().message;
  for (std::size_t i = 0; i < wishes.size(); ++i) guesses[wishes[i].view] = drafted[i];
  return guesses;
}

class DraftModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WEIR_REQUIRE_CACHED(testing::smollm2_path());
    target_ = load();
  }
  std::unique_ptr<DraftModel> make(const DraftModelOptions& options) {
    auto made = DraftModel::make(load(), *target_.tokenizer, options);
    if (!made) throw std::runtime_error(made.error().message);
    return std::move(*made);
  }
  std::vector<TokenId> ids(const char* text) { return target_.tokenizer->encode(text); }
  LoadedModel target_;
};

TEST_F(DraftModelTest, OfTheTargetItselfIsAlwaysRight) {
  const auto source = make({.max_tokens = 1024, .max_sequences = 2, .catch_up = 512});
  const sampling::SamplingParams sampled{.temperature = 0.8f, .top_k = 40, .seed = 9};
  const auto first = ids("Once upon a time, in a small village by the sea,"), second = ids("The capital of France is");
  const auto greedy_text = answer(target_, first, 14, {}), sampled_text = answer(target_, second, 14, sampled);
  source->set_sampling(SeqId(7), sampled);
  // After each draft some tokens are accepted and others were never said: the memory goes back and forth.
  for (const auto& [a, b] : {std::pair<std::size_t, std::size_t>{0, 0}, {5, 1}, {6, 9}, {2, 3}, {9, 9}}) {
    const speculation::SequenceView views[] = {
        {SeqId(3), std::span(greedy_text).first(first.size() + a), 5, static_cast<std::int32_t>(first.size())},
        {SeqId(7), std::span(sampled_text).first(second.size() + b), 4, static_cast<std::int32_t>(second.size())}};
    const auto guesses = draft(*source, views, 5);
    EXPECT_TRUE(std::ranges::equal(guesses[0], std::span(greedy_text).subspan(first.size() + a, 5))) << "greedy, at " << a;
    EXPECT_TRUE(std::ranges::equal(guesses[1], std::span(sampled_text).subspan(second.size() + b, 4))) << "sampled, at " << b;
  }
  EXPECT_GT(source->seconds(2, 4), source->seconds(2, 2));
}

TEST_F(DraftModelTest, AnotherTextOfTheSameLengthIsNoticed) {
  const auto source = make({.max_tokens = 256, .max_sequences = 1, .catch_up = 64});
  auto prompt = ids("Water boils at");
  const auto one = answer(target_, prompt, 4, {});
  prompt.front() = ids("Snow").front();
  const auto other = answer(target_, prompt, 4, {});
  for (const auto& text : {one, other, one}) {
    const speculation::SequenceView view{SeqId(1), std::span(text).first(text.size() - 4), 4, static_cast<std::int32_t>(text.size()) - 4};
    EXPECT_TRUE(std::ranges::equal(draft(*source, {&view, 1}, 4)[0], std::span(text).last(4)));
  }
}

TEST_F(DraftModelTest, ALongPromptIsReadInSeveralCallsAndMemoryIsBounded) {
  const auto source = make({.max_tokens = 64, .max_sequences = 2, .catch_up = 8});
  const std::int64_t all = source->free_tokens();
  const auto text = answer(target_, ids("Once upon a time, in a small village by the sea, there"), 2, {});
  const std::size_t prompt = text.size() - 2;
  ASSERT_GT(prompt, 8u);
  const speculation::SequenceView views[] = {
      {SeqId(1), std::span(text).first(prompt), 2}, {SeqId(2), std::span(text).first(1), 0}, {SeqId(3), {}, 4}};
  EXPECT_TRUE(draft(*source, views, 2)[0].empty()) << "eight tokens of the prompt";
  for (std::size_t read = 16; read < prompt; read += 8) EXPECT_TRUE(draft(*source, views, 2)[0].empty());
  EXPECT_TRUE(std::ranges::equal(draft(*source, views, 2)[0], std::span(text).last(2)));
  const std::vector<TokenId> large(200, 5);
  const speculation::SequenceView too_large{SeqId(4), large, 4};
  EXPECT_TRUE(draft(*source, {&too_large, 1}, 2)[0].empty());
  source->forget(SeqId(1));
  source->forget(SeqId(99));
  EXPECT_EQ(source->free_tokens(), all);
}

TEST_F(DraftModelTest, TokensThatItDoesNotKnowGetNoGuesses) {
  const auto source = make({.max_tokens = 256, .max_sequences = 1, .catch_up = 64});
  const std::vector<TokenId> tokens = {1, 2, 1'000'000};
  const speculation::SequenceView view{SeqId(1), tokens, 4};
  EXPECT_TRUE(draft(*source, {&view, 1}, 4)[0].empty());
}

TEST_F(DraftModelTest, AnotherVocabularyIsRefusedWithTheFirstDifference) {
  const auto path = testing::cached_path("vocabs/ggml-vocab-gpt-2.gguf");
  WEIR_REQUIRE_CACHED(path);
  const auto other = load_tokenizer(path);
  ASSERT_TRUE(other) << other.error().message;
  const auto made = DraftModel::make(load(), **other, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(made.error().message.find("49152 tokens instead of 50257"), std::string::npos) << made.error().message;
  EXPECT_TRUE(check_same_vocabulary(*target_.tokenizer, *target_.tokenizer));
}

TEST_F(DraftModelTest, SettingsThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(DraftModel::make(load(), *target_.tokenizer, {.max_tokens = 0}));
  EXPECT_FALSE(DraftModel::make(load(), *target_.tokenizer, {.max_sequences = 0}));
  EXPECT_FALSE(DraftModel::make(load(), *target_.tokenizer, {.catch_up = -1}));
}

}  // namespace
}  // namespace weir::engine
