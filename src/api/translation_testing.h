// SPDX-License-Identifier: Apache-2.0
// For tests of dialects: answers piece by piece as serving gives them, and what a writer makes of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/response_writer.h"

namespace weir::api::testing {

inline ChoiceDelta text(std::string content) { return {.parsed = {.content = std::move(content)}}; }
inline ChoiceDelta thought(std::string reasoning) { return {.parsed = {.reasoning = std::move(reasoning)}}; }
inline ChoiceDelta call(std::int32_t index, std::string id, std::string name, std::string arguments) {
  ChoiceDelta delta;
  delta.parsed.tool_calls.push_back({index, std::move(id), std::move(name), std::move(arguments)});
  return delta;
}
inline ChoiceDelta ended(Ending ending, std::string stop_text = {}) {
  ChoiceDelta delta;
  delta.end = ChoiceEnd{.ending = ending, .stop_text = std::move(stop_text)};
  return delta;
}

inline AnswerContext context(std::string model = "m") {
  AnswerContext context{.id = "1", .model = std::move(model), .created = 1'700'000'000};
  context.prompts.push_back({.tokens = {1, 2, 3}, .text = "abc"});
  return context;
}

struct Event {
  std::string name, data;
  json::Value json() const {
    auto value = json::parse(data, "an event");
    EXPECT_TRUE(value.has_value()) << data;
    return value ? std::move(*value) : json::Value();
  }
};

// Runs a whole answer through a writer: the events, and the document where there are none.
struct Answer {
  std::vector<Event> events = {};
  std::string document = {};
  Sink sink() {
    return [this](std::string_view data, std::string_view name) { events.push_back({std::string(name), std::string(data)}); };
  }
  // "name data" line by line, as they come.
  std::string lines() const {
    std::string all;
    for (const Event& event : events) all += (event.name.empty() ? "" : event.name + " ") + event.data + "\n";
    return all;
  }
};

inline const Usage kUsage{.prompt_tokens = 3, .completion_tokens = 5, .cached_tokens = 2, .reasoning_tokens = 0};
inline const Timings kTimes{.queue_ms = 1, .prefill_ms = 2, .decode_ms = 3.5, .ttft_ms = 3, .total_ms = 6.5};

inline Answer run(ResponseWriter& writer, bool stream, const std::vector<ChoiceDelta>& deltas, const AnswerContext& about = context(),
                  const Usage& usage = kUsage) {
  Answer answer;
  const Sink sink = answer.sink();
  writer.begin(about, sink);
  for (const ChoiceDelta& delta : deltas) writer.add(delta, sink);
  writer.end(usage, kTimes, sink);
  if (stream) return answer;
  EXPECT_TRUE(answer.events.empty());
  answer.document = writer.document();
  return answer;
}

inline json::Object parsed(std::string_view text) {
  auto value = json::parse(text, "a document");
  EXPECT_TRUE(value.has_value() && value->is_object()) << text;
  return value && value->is_object() ? std::move(value->get_object()) : json::Object();
}

inline std::string text_of(const json::Value& value) { return boost::json::serialize(value); }

// A request that is wrong, and the field that the error names.
struct BadRequest {
  std::string_view body, param, in_message = "";
};

}  // namespace weir::api::testing
