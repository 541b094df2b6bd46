// SPDX-License-Identifier: Apache-2.0
// Golden sequences of events, as the types of OpenAI's clients name them, and documents that say the same.
#include <gtest/gtest.h>

#include "api/openai_responses.h"
#include "api/translation_testing.h"

namespace weir::api {
namespace {

using namespace testing;

ResponsesRequest request(std::string_view fields, const ResponsesState& state = {}) {
  auto parsed = parse_response_request(R"({"model": "m", "input": "hi")" + std::string(fields) + "}", state);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : ResponsesRequest();
}

Answer streamed(std::string_view fields, const std::vector<ChoiceDelta>& deltas) {
  const auto writer = make_responses_writer(request(R"(, "stream": true)" + std::string(fields)), {});
  return run(*writer, true, deltas);
}

json::Object whole(std::string_view fields, const std::vector<ChoiceDelta>& deltas) {
  const auto writer = make_responses_writer(request(fields), {});
  return parsed(run(*writer, false, deltas).document);
}

// Events with their response object shortened to its status and its number of items.
std::string shortened(const Answer& answer) {
  std::string all;
  for (const Event& event : answer.events) {
    json::Value value = event.json();
    json::Object& object = value.as_object();
    EXPECT_EQ(text_of(object.at("type")), "\"" + event.name + "\"");
    if (json::Value* response = object.if_contains("response")) {
      const json::Object& inner = response->as_object();
      *response = json::Array{inner.at("status"), inner.at("output").as_array().size()};
    }
    object.stable_erase(object.find("type"));
    all += event.name + " " + text_of(object) + "\n";
  }
  return all;
}

TEST(ResponsesWriterTest, AStreamedText) {
  const Answer answer = streamed("", {text("Hel"), text("lo"), ended(Ending::kStop)});
  EXPECT_EQ(shortened(answer),
            R"(response.created {"sequence_number":0,"response":["in_progress",0]}
response.in_progress {"sequence_number":1,"response":["in_progress",0]}
response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"msg_1_0","type":"message","role":"assistant","content":[],"status":"in_progress"}}
response.content_part.added {"sequence_number":3,"item_id":"msg_1_0","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
response.output_text.delta {"sequence_number":4,"item_id":"msg_1_0","output_index":0,"content_index":0,"delta":"Hel","logprobs":[]}
response.output_text.delta {"sequence_number":5,"item_id":"msg_1_0","output_index":0,"content_index":0,"delta":"lo","logprobs":[]}
response.output_text.done {"sequence_number":6,"item_id":"msg_1_0","output_index":0,"content_index":0,"text":"Hello","logprobs":[]}
response.content_part.done {"sequence_number":7,"item_id":"msg_1_0","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}}
response.output_item.done {"sequence_number":8,"output_index":0,"item":{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}],"status":"completed"}}
response.completed {"sequence_number":9,"response":["completed",1]}
)");
}

TEST(ResponsesWriterTest, AStreamsLastEventHoldsWhatTheDocumentSays) {
  const std::vector<ChoiceDelta> deltas = {thought("hm"), text("Hello"), ended(Ending::kStop)};
  const Answer answer = streamed("", deltas);
  EXPECT_EQ(text_of(answer.events.back().json().as_object().at("response")), text_of(whole("", deltas)));
}

TEST(ResponsesWriterTest, ReasoningComesBeforeTheText) {
  const Answer answer = streamed("", {thought("hm"), thought("m"), text("Yes"), ended(Ending::kStop)});
  EXPECT_EQ(shortened(answer),
            R"(response.created {"sequence_number":0,"response":["in_progress",0]}
response.in_progress {"sequence_number":1,"response":["in_progress",0]}
response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[],"content":[],"encrypted_content":null,"status":"in_progress"}}
response.content_part.added {"sequence_number":3,"item_id":"rs_1_0","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}}
response.reasoning_text.delta {"sequence_number":4,"item_id":"rs_1_0","output_index":0,"content_index":0,"delta":"hm"}
response.reasoning_text.delta {"sequence_number":5,"item_id":"rs_1_0","output_index":0,"content_index":0,"delta":"m"}
response.reasoning_text.done {"sequence_number":6,"item_id":"rs_1_0","output_index":0,"content_index":0,"text":"hmm"}
response.content_part.done {"sequence_number":7,"item_id":"rs_1_0","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":"hmm"}}
response.output_item.done {"sequence_number":8,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hmm"}],"encrypted_content":null,"status":"completed"}}
response.output_item.added {"sequence_number":9,"output_index":1,"item":{"id":"msg_1_1","type":"message","role":"assistant","content":[],"status":"in_progress"}}
response.content_part.added {"sequence_number":10,"item_id":"msg_1_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
response.output_text.delta {"sequence_number":11,"item_id":"msg_1_1","output_index":1,"content_index":0,"delta":"Yes","logprobs":[]}
response.output_text.done {"sequence_number":12,"item_id":"msg_1_1","output_index":1,"content_index":0,"text":"Yes","logprobs":[]}
response.content_part.done {"sequence_number":13,"item_id":"msg_1_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}}
response.output_item.done {"sequence_number":14,"output_index":1,"item":{"id":"msg_1_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}],"status":"completed"}}
response.completed {"sequence_number":15,"response":["completed",2]}
)");
}

TEST(ResponsesWriterTest, ReasoningIsTheSummaryWhereOneIsAskedFor) {
  const Answer answer = streamed(R"(, "reasoning": {"summary": "auto"})", {thought("hm"), ended(Ending::kLength)});
  EXPECT_EQ(shortened(answer),
            R"(response.created {"sequence_number":0,"response":["in_progress",0]}
response.in_progress {"sequence_number":1,"response":["in_progress",0]}
response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[],"encrypted_content":null,"status":"in_progress"}}
response.reasoning_summary_part.added {"sequence_number":3,"item_id":"rs_1_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
response.reasoning_summary_text.delta {"sequence_number":4,"item_id":"rs_1_0","output_index":0,"summary_index":0,"delta":"hm"}
response.reasoning_summary_text.done {"sequence_number":5,"item_id":"rs_1_0","output_index":0,"summary_index":0,"text":"hm"}
response.reasoning_summary_part.done {"sequence_number":6,"item_id":"rs_1_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"hm"}}
response.output_item.done {"sequence_number":7,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null,"status":"incomplete"}}
response.incomplete {"sequence_number":8,"response":["incomplete",1]}
)");
}

TEST(ResponsesWriterTest, CallsOneAfterTheOther) {
  const Answer answer = streamed("", {call(0, "call_a", "add", ""), call(0, "", "", R"({"x")"), call(0, "", "", ":1}"),
                                      call(1, "call_b", "sub", "{}"), ended(Ending::kToolCalls)});
  EXPECT_EQ(shortened(answer),
            R"(response.created {"sequence_number":0,"response":["in_progress",0]}
response.in_progress {"sequence_number":1,"response":["in_progress",0]}
response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"fc_1_0","type":"function_call","call_id":"call_a","name":"add","arguments":"","status":"in_progress"}}
response.function_call_arguments.delta {"sequence_number":3,"item_id":"fc_1_0","output_index":0,"delta":"{\"x\""}
response.function_call_arguments.delta {"sequence_number":4,"item_id":"fc_1_0","output_index":0,"delta":":1}"}
response.function_call_arguments.done {"sequence_number":5,"item_id":"fc_1_0","output_index":0,"name":"add","arguments":"{\"x\":1}"}
response.output_item.done {"sequence_number":6,"output_index":0,"item":{"id":"fc_1_0","type":"function_call","call_id":"call_a","name":"add","arguments":"{\"x\":1}","status":"completed"}}
response.output_item.added {"sequence_number":7,"output_index":1,"item":{"id":"fc_1_1","type":"function_call","call_id":"call_b","name":"sub","arguments":"","status":"in_progress"}}
response.function_call_arguments.delta {"sequence_number":8,"item_id":"fc_1_1","output_index":1,"delta":"{}"}
response.function_call_arguments.done {"sequence_number":9,"item_id":"fc_1_1","output_index":1,"name":"sub","arguments":"{}"}
response.output_item.done {"sequence_number":10,"output_index":1,"item":{"id":"fc_1_1","type":"function_call","call_id":"call_b","name":"sub","arguments":"{}","status":"completed"}}
response.completed {"sequence_number":11,"response":["completed",2]}
)");
}

TEST(ResponsesWriterTest, AnAnswerThatIsCutIsIncomplete) {
  const json::Object answer = whole(R"(, "max_output_tokens": 5)", {text("Hel"), ended(Ending::kLength)});
  EXPECT_EQ(answer.at("status").as_string(), "incomplete");
  EXPECT_EQ(text_of(answer.at("incomplete_details")), R"({"reason":"max_output_tokens"})");
  EXPECT_EQ(answer.at("output").at(0).at("status").as_string(), "incomplete");
  EXPECT_EQ(answer.at("max_output_tokens").as_int64(), 5);
}

TEST(ResponsesWriterTest, AnErrorInTheMiddleEndsWithAFailedResponse) {
  const auto writer = make_responses_writer(request(R"(, "stream": true)"), {});
  Answer answer;
  const Sink sink = answer.sink();
  writer->begin(context(), sink);
  writer->add(text("Hel"), sink);
  writer->error_event({.status = 504, .type = "server_error", .code = "timeout", .message = "took too long"}, sink);
  const std::string all = shortened(answer);
  EXPECT_TRUE(all.ends_with(
      R"(response.output_item.done {"sequence_number":7,"output_index":0,"item":{"id":"msg_1_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hel","annotations":[],"logprobs":[]}],"status":"incomplete"}}
response.failed {"sequence_number":8,"response":["failed",1]}
)")) << all;
  EXPECT_EQ(text_of(answer.events.back().json().at("response").at("error")), R"({"code":"server_error","message":"took too long"})");
}

TEST(ResponsesWriterTest, AnErrorBeforeTheResponseBeganIsAnErrorEvent) {
  const auto writer = make_responses_writer(request(R"(, "stream": true)"), {});
  Answer answer;
  writer->error_event({.status = 400, .type = "invalid_request_error", .code = "c", .message = "m", .param = "input"}, answer.sink());
  EXPECT_EQ(answer.lines(), R"(error {"type":"error","sequence_number":0,"code":"c","message":"m","param":"input"})"
                            "\n");
}

TEST(ResponsesWriterTest, AChoiceThatFailedFailsTheResponse) {
  ChoiceDelta end = ended(Ending::kFailed);
  end.end->error = ApiError{.status = 429, .message = "the queue is full"};
  const Answer answer = streamed("", {text("a"), end});
  EXPECT_EQ(answer.events.back().name, "response.failed");
  EXPECT_EQ(text_of(answer.events.back().json().at("response").at("error")),
            R"({"code":"rate_limit_exceeded","message":"the queue is full"})");
}

TEST(ResponsesWriterTest, AnEmptyAnswerIsAnEmptyMessage) {
  const json::Object answer = whole("", {ended(Ending::kStop)});
  ASSERT_EQ(answer.at("output").as_array().size(), 1u);
  EXPECT_EQ(answer.at("output").at(0).at("content").at(0).at("text").as_string(), "");
}

TEST(ResponsesWriterTest, TheDocumentRepeatsWhatWasAsked) {
  const json::Object answer =
      whole(R"(, "instructions": "be brief", "metadata": {"a": "b"}, "temperature": 0.7, "top_p": null, "user": "u1",
               "tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": true}],
               "tool_choice": {"type": "function", "name": "add"}, "parallel_tool_calls": false, "truncation": "auto",
               "reasoning": {"effort": "low"}, "text": {"format": {"type": "json_object"}}, "store": false)",
            {text("{}"), ended(Ending::kStop)});
  EXPECT_EQ(answer.at("id").as_string(), "resp_1");
  EXPECT_EQ(answer.at("object").as_string(), "response");
  EXPECT_EQ(answer.at("created_at").as_int64(), 1'700'000'000);
  EXPECT_EQ(answer.at("completed_at").as_int64(), 1'700'000'001);
  EXPECT_EQ(answer.at("instructions").as_string(), "be brief");
  EXPECT_EQ(text_of(answer.at("metadata")), R"({"a":"b"})");
  EXPECT_EQ(text_of(answer.at("temperature")), "7E-1");
  EXPECT_TRUE(answer.at("top_p").is_null());
  EXPECT_EQ(answer.at("user").as_string(), "u1");
  EXPECT_EQ(text_of(answer.at("tools")),
            R"([{"type":"function","name":"add","description":null,"parameters":{"type":"object"},"strict":true}])");
  EXPECT_EQ(text_of(answer.at("tool_choice")), R"({"type":"function","name":"add"})");
  EXPECT_FALSE(answer.at("parallel_tool_calls").as_bool());
  EXPECT_EQ(answer.at("truncation").as_string(), "auto");
  EXPECT_EQ(text_of(answer.at("reasoning")), R"({"effort":"low","summary":null})");
  EXPECT_EQ(text_of(answer.at("text")), R"({"format":{"type":"json_object"},"verbosity":"medium"})");
  EXPECT_FALSE(answer.at("store").as_bool());
  EXPECT_TRUE(answer.at("error").is_null());
  EXPECT_EQ(text_of(answer.at("usage")),
            R"({"input_tokens":3,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":0},"output_tokens":5,)"
            R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":8})");
}

TEST(ResponsesWriterTest, WhatWasCutFromThePromptIsReported) {
  const auto writer = make_responses_writer(request(R"(, "truncation": "auto")"), {});
  AnswerContext about = context();
  about.prompts[0].dropped_tokens = 17;
  const json::Object answer = parsed(run(*writer, false, {text("a"), ended(Ending::kStop)}, about).document);
  EXPECT_EQ(answer.at("usage").at("input_tokens_details").at("truncated_tokens").as_int64(), 17);
}

TEST(ResponsesWriterTest, LogprobsAreThoseOfTheText) {
  const auto entry = [](TokenId id, double logprob) { return sampling::TokenLogprobs{.token = {id, logprob}, .rank = 1, .top = {}}; };
  ChoiceDelta thinking = thought("hm");
  thinking.logprobs = {entry(1, -1)};
  ChoiceDelta held;  // the parser waits for more
  held.logprobs = {entry(2, -2)};
  ChoiceDelta shown = text("Yes");
  shown.logprobs = {entry(3, -3)};
  const Answer answer = streamed(R"(, "include": ["message.output_text.logprobs"])", {thinking, held, shown, ended(Ending::kStop)});
  const auto logprobs_of = [](const json::Value& list) {
    std::vector<double> numbers;
    for (const json::Value& one : list.as_array()) numbers.push_back(one.at("logprob").to_number<double>());
    return numbers;
  };
  std::vector<std::vector<double>> seen;
  for (const Event& event : answer.events)
    if (event.name == "response.output_text.delta" || event.name == "response.output_text.done")
      seen.push_back(logprobs_of(event.json().at("logprobs")));
  EXPECT_EQ(seen, (std::vector<std::vector<double>>{{-2, -3}, {-2, -3}}));
}

TEST(ResponsesWriterTest, BadUtf8FromAModelIsStillJson) {
  const Answer answer = streamed("", {text("\xff\"\n"), ended(Ending::kStop)});
  for (const Event& event : answer.events) event.json();
}

}  // namespace
}  // namespace weir::api
