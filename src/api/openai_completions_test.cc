// SPDX-License-Identifier: Apache-2.0
// Text completions: what they take, and what they write; above all legacy logprobs, which evaluation harnesses read.
#include "api/openai_completions.h"

#include "api/test_answers.h"

namespace weir::api {
namespace {

using testing::context_of;
using testing::ended;
using testing::expect_json;
using testing::logprob;
using testing::parsed;
using testing::piece;
using testing::run;

GenerationRequest good(std::string_view body) {
  auto request = parse_completion(body);
  EXPECT_TRUE(request.has_value()) << body << ": " << request.error().message;
  return request ? std::move(*request) : GenerationRequest{};
}

void expect_refused(std::string_view body, std::string_view param, std::string_view message_part) {
  const auto request = parse_completion(body);
  ASSERT_FALSE(request.has_value()) << body;
  EXPECT_EQ(request.error().status, 400);
  EXPECT_EQ(request.error().param, param) << body;
  EXPECT_NE(request.error().message.find(message_part), std::string::npos) << request.error().message;
}

TEST(CompletionRequest, PromptsAreTextsOrIdsOrListsOfThem) {
  EXPECT_EQ(good(R"({"prompt": "Hi"})").prompts, (std::vector<PromptInput>{"Hi"}));
  EXPECT_EQ(good(R"({"prompt": ["a", "b"]})").prompts, (std::vector<PromptInput>{"a", "b"}));
  EXPECT_EQ(good(R"({"prompt": [1, 2]})").prompts, (std::vector<PromptInput>{std::vector<TokenId>{1, 2}}));
  EXPECT_EQ(good(R"({"prompt": [[1], [2, 3]]})").prompts, (std::vector<PromptInput>{std::vector<TokenId>{1}, std::vector<TokenId>{2, 3}}));
  expect_refused(R"({})", "prompt", "is missing");
  expect_refused(R"({"prompt": []})", "prompt", "empty");
  expect_refused(R"({"prompt": [[]]})", "prompt[0]", "empty");
  expect_refused(R"({"prompt": [1, "a"]})", "prompt[1]", "an integer");
  expect_refused(R"({"prompt": ["a", 1]})", "prompt[1]", "a text or a list");
  expect_refused(R"({"prompt": [1, -2]})", "prompt[1]", "at least 0");
  expect_refused(R"({"prompt": [2147483648]})", "prompt[0]", "at most 2147483647");
  expect_refused(R"({"prompt": {"a": 1}})", "prompt", "an object");
}

TEST(CompletionRequest, DefaultsAreOpenAis) {
  const GenerationRequest r = good(R"({"prompt": "Hi"})");
  EXPECT_FALSE(r.chat);
  EXPECT_EQ(r.options.max_tokens, 16);
  EXPECT_FALSE(r.max_tokens_given);
  EXPECT_EQ(r.options.sampling.temperature, 1);
  EXPECT_FALSE(r.echo);
  EXPECT_TRUE(r.add_special);
  EXPECT_EQ(r.options.sampling.logprobs, -1);
}

// The request of lm-eval's local-completions for a log-likelihood, as it comes over the wire.
TEST(CompletionRequest, LmEvalsLikelihood) {
  const GenerationRequest r =
      good(R"({"model": "m", "prompt": [[5, 6, 7], [8]], "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": true})");
  EXPECT_EQ(r.prompts.size(), 2u);
  EXPECT_EQ(r.options.sampling.temperature, 0);
  EXPECT_EQ(r.options.max_tokens, 1);
  EXPECT_EQ(r.options.sampling.logprobs, 1);
  EXPECT_EQ(r.options.prompt_logprobs, 1);
  EXPECT_EQ(r.prompt_logprobs_shown, -1);
  EXPECT_TRUE(r.echo);
  EXPECT_FALSE(r.options.prompt_only);
}

TEST(CompletionRequest, NoTokensMeansThePromptOnly) {
  const GenerationRequest r = good(R"({"prompt": "Hi", "max_tokens": 0, "echo": true, "logprobs": 0, "prompt_logprobs": 2})");
  EXPECT_TRUE(r.options.prompt_only);
  EXPECT_EQ(r.options.prompt_logprobs, 2);
  EXPECT_EQ(r.prompt_logprobs_shown, 2);
}

TEST(CompletionRequest, WhatCannotBeDoneIsSaid) {
  EXPECT_EQ(good(R"({"prompt": "a", "n": 2, "best_of": 5})").best_of, 5);
  EXPECT_EQ(good(R"({"prompt": "a", "n": 2, "best_of": 2, "stream": true})").best_of, 0);
  EXPECT_EQ(good(R"({"prompt": "a", "suffix": null})").prompts.size(), 1u);
  expect_refused(R"({"prompt": "a", "suffix": "b"})", "suffix", "not supported");
  expect_refused(R"({"prompt": "a", "n": 3, "best_of": 2})", "best_of", "below the 3 of n");
  expect_refused(R"({"prompt": "a", "best_of": 2, "stream": true})", "best_of", "streamed");
  expect_refused(R"({"prompt": "a", "logprobs": true})", "logprobs", "an integer");
  expect_refused(R"({"prompt": "a", "logprobs": 101})", "logprobs", "at most 100");
  expect_refused(R"({"prompt": "a", "stream": true, "echo": true, "logprobs": 1, "n": 2})", "echo", "streamed");
  expect_refused(R"({"prompt": "a", "messages": []})", "messages", "not a field");
  std::string many = R"({"n": 128, "prompt": ["a")";
  for (int i = 0; i < 32; ++i) many += R"(, "a")";
  expect_refused(many + "]}", "n", "4096 are allowed");
}

constexpr const char* kHead = R"({"id": "cmpl-7", "object": "text_completion", "created": 1700000000, "model": "m",
  "system_fingerprint": "fp", "choices": [)";
constexpr const char* kUsage = R"(, "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5,
  "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}})";

TEST(CompletionDocument, EchoWithLogprobsIsWhatHarnessesRead) {
  const auto writer = make_completion_writer(good(R"({"prompt": [0, 2, 3], "echo": true, "logprobs": 1, "max_tokens": 2})"));
  ChoiceDelta first;
  first.prompt_logprobs = {logprob(2, -1, {{6, -0.5}})};
  ChoiceDelta second = piece("é", {4, 5});
  second.prompt_logprobs = {logprob(3, -0.25, {{3, -0.25}})};
  second.logprobs = {logprob(4, -2, {{4, -2}}), logprob(5, -3, {{4, -1}})};
  const auto ran = run(*writer, context_of({{.tokens = {0, 2, 3}, .text = "Hello world"}}), {first, second, ended(Ending::kLength)},
                       {.prompt_tokens = 3, .completion_tokens = 2}, false);
  expect_json(ran.document, std::string(kHead) + R"({"index": 0, "text": "Hello worldé", "logprobs": {
      "tokens": ["<s>", "Hello", "Ġworld", "Ã", "©"],
      "token_logprobs": [null, -1.0, -0.25, -2.0, -3.0],
      "top_logprobs": [null, {"!": -0.5, "Hello": -1.0}, {"Ġworld": -0.25}, {"Ã": -2.0}, {"Ã": -1.0, "©": -3.0}],
      "text_offset": [0, 0, 5, 11, 12]}, "finish_reason": "length", "stop_reason": null}])" +
                                kUsage);
}

TEST(CompletionDocument, AnswersToManyPromptsAreInOrder) {
  const auto writer = make_completion_writer(good(R"({"prompt": ["a", "b"], "n": 2, "logprobs": 0, "echo": true, "max_tokens": 1})"));
  std::vector<ChoiceDelta> deltas;
  for (const std::int32_t choice : {3, 1, 0, 2}) {
    ChoiceDelta delta = piece("!", {6});
    delta.choice = choice;
    delta.logprobs = {logprob(6, -choice - 1.0)};
    if (choice % 2 == 0) delta.prompt_logprobs = {logprob(3, -10.0 - choice)};  // in the events of a prompt's first answer
    delta.end = ChoiceEnd{.ending = Ending::kLength};
    deltas.push_back(std::move(delta));
  }
  const auto ran = run(*writer, context_of({{.tokens = {2, 3}, .text = "Hello world"}, {.tokens = {2, 3}, .text = "Hello world"}}, 2),
                       deltas, {}, false);
  const json::Value document = parsed(ran.document);
  for (std::int64_t i = 0; i < 4; ++i) {
    const json::Value& choice = document.at("choices").at(static_cast<std::size_t>(i));
    EXPECT_EQ(choice.at("index").as_int64(), i);
    EXPECT_EQ(choice.at("text").as_string(), "Hello world!");
    EXPECT_EQ(choice.at("logprobs").at("token_logprobs").at(1).as_double(), i < 2 ? -10.0 : -12.0);
    EXPECT_EQ(choice.at("logprobs").at("token_logprobs").at(2).as_double(), -static_cast<double>(i) - 1);
    EXPECT_EQ(choice.at("logprobs").at("text_offset").at(2).as_int64(), 11);
  }
}

TEST(CompletionDocument, KeysNameOneTokenOnly) {
  const auto writer = make_completion_writer(good(R"({"prompt": "a", "logprobs": 2})"));
  ChoiceDelta delta = piece("!", {7});
  delta.logprobs = {logprob(7, -2, {{6, -1}, {7, -2}})};  // both are written "!"
  delta.end = ChoiceEnd{};
  const auto ran = run(*writer, context_of({{.tokens = {2}, .text = "Hello"}}), {delta}, {}, false);
  const json::Value document = parsed(ran.document);
  EXPECT_EQ(document.at("choices").at(0).at("logprobs").at("top_logprobs").at(0), parsed(R"({"!": -1.0, "token_id:7": -2.0})"));
  EXPECT_EQ(document.at("choices").at(0).at("logprobs").at("tokens"), parsed(R"(["token_id:7"])"));
}

TEST(CompletionDocument, PromptOnlyAndPromptLogprobs) {
  const auto writer = make_completion_writer(
      good(R"({"prompt": "a", "max_tokens": 0, "prompt_logprobs": 0, "return_token_ids": true, "return_tokens_as_token_ids": true})"));
  ChoiceDelta delta;
  delta.prompt_logprobs = {logprob(3, -1, {{2, -0.5}})};
  delta.end = ChoiceEnd{};
  const auto ran = run(*writer, context_of({{.tokens = {2, 3}, .text = "Hello world"}}), {delta}, {}, false);
  const json::Value choice = parsed(ran.document).at("choices").at(0);
  EXPECT_EQ(choice.at("text").as_string(), "");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "length");
  EXPECT_EQ(choice.at("prompt_logprobs"), parsed(R"([null, {"3": {"logprob": -1.0, "rank": 1, "decoded_token": " world"}}])"));
  EXPECT_EQ(choice.at("prompt_token_ids"), parsed("[2, 3]"));
  EXPECT_EQ(choice.at("token_ids"), parsed("[]"));
}

TEST(CompletionStream, TextFinishUsageAndDone) {
  const auto writer =
      make_completion_writer(good(R"({"prompt": "a", "stream": true, "echo": true, "stream_options": {"include_usage": true}})"));
  const auto ran = run(*writer, context_of({{.tokens = {2}, .text = "Hello"}}), {piece(" world", {3}), ended(Ending::kStop)},
                       {.prompt_tokens = 3, .completion_tokens = 2}, true);
  const std::string null_usage = R"(], "usage": null})";
  ASSERT_EQ(ran.events.size(), 5u);
  expect_json(ran.events[0], kHead + std::string(R"({"index": 0, "text": "Hello", "logprobs": null, "finish_reason": null})") + null_usage);
  expect_json(ran.events[1],
              kHead + std::string(R"({"index": 0, "text": " world", "logprobs": null, "finish_reason": null})") + null_usage);
  expect_json(
      ran.events[2],
      kHead + std::string(R"({"index": 0, "text": "", "logprobs": null, "finish_reason": "stop", "stop_reason": null})") + null_usage);
  expect_json(ran.events[3], kHead + std::string("]") + kUsage);
  EXPECT_EQ(ran.events[4], "[DONE]");
}

// MLPerf's reference reads the first key of top_logprobs[0] of every event but [DONE].
TEST(CompletionStream, EachTokenIsAnEventWithItsLogprob) {
  const auto writer = make_completion_writer(good(R"({"prompt": "a", "stream": true, "logprobs": 1, "temperature": 0})"));
  ChoiceDelta two = piece("Hello world", {2, 3});
  two.logprobs = {logprob(2, -1, {{2, -1}}), logprob(3, -2, {{3, -2}})};
  ChoiceDelta last;
  last.tokens = {1};
  last.logprobs = {logprob(1, -0.5, {{1, -0.5}})};
  last.end = ChoiceEnd{.ending = Ending::kStop};
  const auto ran = run(*writer, context_of({{.tokens = {2}, .text = "Hello"}}), {two, last}, {}, true);
  ASSERT_EQ(ran.events.size(), 4u);
  const char* keys[] = {"Hello", "Ġworld", "</s>"};
  const char* texts[] = {"", "Hello world", ""};
  const int offsets[] = {0, 5, 11};
  for (std::size_t i = 0; i < 3; ++i) {
    const json::Value choice = parsed(ran.events[i]).at("choices").at(0);
    EXPECT_EQ(choice.at("logprobs").at("top_logprobs").at(0).as_object().begin()->key(), keys[i]);
    EXPECT_EQ(choice.at("logprobs").at("tokens").as_array().size(), 1u);
    EXPECT_EQ(choice.at("logprobs").at("text_offset").at(0).as_int64(), offsets[i]);
    EXPECT_EQ(choice.at("text").as_string(), texts[i]);
    EXPECT_EQ(choice.at("finish_reason").is_null(), i < 2);
  }
}

TEST(CompletionStream, EchoedLogprobsComeWholeAndFirst) {
  const auto writer = make_completion_writer(good(R"({"prompt": "a", "stream": true, "logprobs": 0, "echo": true})"));
  ChoiceDelta early;  // while the prompt is read, chunk by chunk
  early.prompt_logprobs = {logprob(2, -1)};
  ChoiceDelta token = piece("!", {6});
  token.prompt_logprobs = {logprob(3, -2)};
  token.logprobs = {logprob(6, -3)};
  const auto ran = run(*writer, context_of({{.tokens = {0, 2, 3}, .text = "Hello world"}}), {early, token}, {}, true);
  ASSERT_EQ(ran.events.size(), 3u);
  const json::Value echo = parsed(ran.events[0]).at("choices").at(0);
  EXPECT_EQ(echo.at("text").as_string(), "Hello world");
  EXPECT_EQ(echo.at("logprobs").at("token_logprobs"), parsed("[null, -1.0, -2.0]"));
  const json::Value answer = parsed(ran.events[1]).at("choices").at(0);
  EXPECT_EQ(answer.at("text").as_string(), "!");
  EXPECT_EQ(answer.at("logprobs").at("text_offset"), parsed("[11]"));
}

}  // namespace
}  // namespace weir::api
