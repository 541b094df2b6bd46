// SPDX-License-Identifier: Apache-2.0
// For tests: runs a writer over deltas and gives back what it made.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/fields.h"
#include "api/response_writer.h"
#include "api/test_tokenizer.h"

namespace weir::api::testing {

inline AnswerContext context_of(std::vector<AnswerContext::Prompt> prompts, std::int32_t choices_per_prompt = 1) {
  return {.id = "7",
          .model = "m",
          .created = 1700000000,
          .system_fingerprint = "fp",
          .tokenizer = std::make_shared<TestTokenizer>(),
          .prompts = std::move(prompts),
          .choices_per_prompt = choices_per_prompt};
}

struct Ran {
  std::vector<std::string> events;
  std::string document;
};

inline Ran run(ResponseWriter& writer, const AnswerContext& context, const std::vector<ChoiceDelta>& deltas, const Usage& usage,
               bool stream, const Timings& timings = {}) {
  Ran ran;
  const Sink sink = [&](std::string_view data, std::string_view event) {
    EXPECT_EQ(event, "");
    ran.events.emplace_back(data);
  };
  writer.begin(context, sink);
  for (const ChoiceDelta& delta : deltas) writer.add(delta, sink);
  writer.end(usage, timings, sink);
  if (!stream) ran.document = writer.document();
  return ran;
}

inline json::Value parsed(std::string_view text) { return schema(text); }

// Whether the text is this JSON, whatever the order of keys.
inline void expect_json(std::string_view got, std::string_view wanted) {
  const auto value = json::parse(got, "what was written");
  ASSERT_TRUE(value.has_value()) << got;
  EXPECT_EQ(*value, parsed(wanted)) << got;
}

inline ChoiceDelta piece(std::string content, std::vector<TokenId> tokens = {}) {
  ChoiceDelta delta;
  delta.text = content;
  delta.parsed.content = std::move(content);
  delta.tokens = std::move(tokens);
  return delta;
}

inline ChoiceDelta ended(Ending ending, std::int32_t choice = 0) {
  ChoiceDelta delta;
  delta.choice = choice;
  delta.end = ChoiceEnd{.ending = ending};
  return delta;
}

inline sampling::TokenLogprobs logprob(TokenId id, double value, std::vector<sampling::TokenLogprob> top = {}) {
  return {.token = {id, value}, .rank = 1, .top = std::move(top)};
}

}  // namespace weir::api::testing
