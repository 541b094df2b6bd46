// SPDX-License-Identifier: Apache-2.0
// Chat completions as they are written: every event of a stream, and documents.
#include "api/openai_chat.h"
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

GenerationRequest request_of(std::string_view members) {
  auto request = parse_chat_completion(R"({"messages": [{"role": "user", "content": "Hi"}])" + std::string(members) + "}");
  EXPECT_TRUE(request.has_value()) << request.error().message;
  return request ? std::move(*request) : GenerationRequest{};
}

constexpr const char* kHead =
    R"("id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1700000000, "model": "m", "system_fingerprint": "fp")";

std::string chunk(std::string_view delta, std::string_view rest = R"("logprobs": null, "finish_reason": null)",
                  std::string_view tail = "") {
  return "{" + std::string(kHead) + R"(, "choices": [{"index": 0, "delta": )" + std::string(delta) + ", " + std::string(rest) + "}]" +
         std::string(tail) + "}";
}

void expect_events(const std::vector<std::string>& got, const std::vector<std::string>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (wanted[i] == "[DONE]") {
      EXPECT_EQ(got[i], "[DONE]");
    } else {
      expect_json(got[i], wanted[i]);
    }
  }
}

TEST(ChatStream, RoleContentFinishUsageAndDoneAreEventsOfTheirOwn) {
  const GenerationRequest request = request_of(R"(, "stream": true, "stream_options": {"include_usage": true})");
  const auto writer = make_chat_writer(request);
  ChoiceDelta last = piece(" wörld\n\"", {3, 1});
  last.end = ChoiceEnd{.ending = Ending::kStop, .stop_text = "##"};
  const auto ran = run(*writer, context_of({{.tokens = {0, 2}, .text = "Hi"}}), {piece("Hello", {2}), last},
                       {.prompt_tokens = 2, .completion_tokens = 3, .cached_tokens = 1}, true);
  const std::string_view null_usage = R"(, "usage": null)", plain = R"("logprobs": null, "finish_reason": null)";
  expect_events(ran.events,
                {chunk(R"({"role": "assistant", "content": ""})", plain, null_usage), chunk(R"({"content": "Hello"})", plain, null_usage),
                 chunk(R"({"content": " wörld\n\""})", plain, null_usage),
                 chunk("{}", R"("logprobs": null, "finish_reason": "stop", "stop_reason": "##")", null_usage),
                 "{" + std::string(kHead) + R"(, "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5,
                   "prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 0}}})",
                 "[DONE]"});
}

TEST(ChatStream, ReasoningAndCallsComeInTheirOwnFields) {
  const auto writer = make_chat_writer(request_of(R"(, "stream": true)"));
  ChoiceDelta first;
  first.parsed.reasoning = "Hm.";
  first.parsed.content = "I call.";
  ChoiceDelta second;
  second.parsed.tool_calls = {{.index = 0, .id = "c1", .name = "f", .arguments = ""}, {.index = 0, .arguments = "{\"x\":"}};
  ChoiceDelta third;
  third.parsed.tool_calls = {{.index = 0, .arguments = "1}"}};
  third.end = ChoiceEnd{.ending = Ending::kToolCalls};
  const auto ran = run(*writer, context_of({{.tokens = {0}, .text = ""}}), {first, second, third}, {}, true);
  expect_events(
      ran.events,
      {chunk(R"({"role": "assistant", "content": ""})"), chunk(R"({"reasoning_content": "Hm."})"), chunk(R"({"content": "I call."})"),
       chunk(R"({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]})"),
       chunk(R"({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\":"}}]})"),
       chunk(R"({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})"),
       chunk("{}", R"("logprobs": null, "finish_reason": "tool_calls", "stop_reason": null)"), "[DONE]"});
}

TEST(ChatStream, LogprobsAndIdsOfTokensWithoutTextWaitForTheNextEvent) {
  const auto writer = make_chat_writer(request_of(R"(, "stream": true, "logprobs": true, "top_logprobs": 1, "return_token_ids": true)"));
  ChoiceDelta half;  // half of a character: no text yet
  half.tokens = {4};
  half.logprobs = {logprob(4, -1, {{4, -1}, {2, -2}})};
  ChoiceDelta rest = piece("é", {5});
  rest.logprobs = {logprob(5, -0.5, {{2, -0.25}})};
  const auto ran = run(*writer, context_of({{.tokens = {0, 2}, .text = "Hi"}}), {half, rest, ended(Ending::kLength)}, {}, true);
  expect_events(
      ran.events,
      {chunk(R"({"role": "assistant", "content": ""})", R"("logprobs": null, "finish_reason": null)", R"(, "prompt_token_ids": [0, 2])"),
       chunk(R"({"content": "é"})", R"("logprobs": {"content": [
           {"token": "\ufffd", "logprob": -1.0, "bytes": [195], "top_logprobs": [{"token": "\ufffd", "logprob": -1.0, "bytes": [195]}]},
           {"token": "\ufffd", "logprob": -0.5, "bytes": [169],
            "top_logprobs": [{"token": "Hello", "logprob": -0.25, "bytes": [72, 101, 108, 108, 111]}]}],
           "refusal": null}, "finish_reason": null, "token_ids": [4, 5])"),
       chunk("{}", R"("logprobs": null, "finish_reason": "length", "stop_reason": null, "token_ids": [])"), "[DONE]"});
}

TEST(ChatStream, ContinuousUsageCountsTokensSoFar) {
  const auto writer = make_chat_writer(request_of(R"(, "stream": true, "stream_options": {"continuous_usage_stats": true})"));
  const auto ran = run(*writer, context_of({{.tokens = {0, 2}, .text = "Hi"}}), {piece("a", {2}), piece("b", {3, 3})}, {}, true);
  ASSERT_EQ(ran.events.size(), 5u);
  EXPECT_EQ(parsed(ran.events[1]).at("usage").at("completion_tokens").as_int64(), 1);
  EXPECT_EQ(parsed(ran.events[2]).at("usage").at("completion_tokens").as_int64(), 3);
  EXPECT_EQ(parsed(ran.events[2]).at("usage").at("total_tokens").as_int64(), 5);
}

TEST(ChatStream, AnErrorIsTheLastEventBeforeDone) {
  const auto writer = make_chat_writer(request_of(R"(, "stream": true)"));
  std::vector<std::string> events;
  const Sink sink = [&](std::string_view data, std::string_view) { events.emplace_back(data); };
  writer->begin(context_of({{.tokens = {0}, .text = ""}}), sink);
  writer->error_event({.status = 500, .type = "server_error", .code = "c", .message = "m"}, sink);
  expect_events(events, {R"({"error": {"message": "m", "type": "server_error", "param": null, "code": "c"}})", "[DONE]"});
}

TEST(ChatDocument, HoldsAllChoices) {
  const auto writer = make_chat_writer(request_of(R"(, "n": 2, "logprobs": true)"));
  ChoiceDelta a = piece("Hel", {2}), b = piece("lo"), other;
  a.logprobs = {logprob(2, -std::numeric_limits<double>::infinity())};
  a.parsed.reasoning = "R";
  b.end = ChoiceEnd{.ending = Ending::kStop};
  other.choice = 1;
  other.parsed.tool_calls = {{.index = 0, .id = "c", .name = "f", .arguments = "{"}, {.index = 0, .arguments = "}"}};
  other.end = ChoiceEnd{.ending = Ending::kToolCalls};
  const auto ran = run(*writer, context_of({{.tokens = {0, 2}, .text = "Hi"}}, 2), {a, other, b},
                       {.prompt_tokens = 2, .completion_tokens = 4, .reasoning_tokens = 1}, false);
  EXPECT_TRUE(ran.events.empty());
  expect_json(ran.document, R"({"id": "chatcmpl-7", "object": "chat.completion", "created": 1700000000, "model": "m",
    "system_fingerprint": "fp", "choices": [
      {"index": 0, "message": {"role": "assistant", "content": "Hello", "reasoning_content": "R", "refusal": null},
       "logprobs": {"content": [{"token": "Hello", "logprob": -9999.0, "bytes": [72, 101, 108, 108, 111], "top_logprobs": []}],
                    "refusal": null}, "finish_reason": "stop", "stop_reason": null},
      {"index": 1, "message": {"role": "assistant", "content": null, "refusal": null,
         "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
       "logprobs": null, "finish_reason": "tool_calls", "stop_reason": null}],
    "usage": {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6, "prompt_tokens_details": {"cached_tokens": 0},
      "completion_tokens_details": {"reasoning_tokens": 1}}})");
}

TEST(ChatDocument, PromptLogprobsAndTimingsOnRequest) {
  const auto writer = make_chat_writer(request_of(R"(, "prompt_logprobs": 1, "timings": true)"));
  ChoiceDelta delta = piece("x", {2});
  delta.prompt_logprobs = {logprob(2, -0.5, {{3, -0.25}})};
  delta.prompt_logprobs[0].rank = 2;
  delta.end = ChoiceEnd{};
  Timings times{.queue_ms = 1, .prefill_ms = 2, .decode_ms = 4, .ttft_ms = 3, .total_ms = 7, .prompt_tokens = 2, .generated_tokens = 3};
  times.energy_j = 0.5;
  times.energy_source = "estimate";
  const auto ran = run(*writer, context_of({{.tokens = {0, 2}, .text = "Hi"}}), {delta}, {}, false, times);
  const json::Value document = parsed(ran.document);
  EXPECT_EQ(document.at("prompt_logprobs"), parsed(R"([null, {"2": {"logprob": -0.5, "rank": 2, "decoded_token": "Hello"},
                                                              "3": {"logprob": -0.25, "rank": 1, "decoded_token": " world"}}])"));
  EXPECT_EQ(document.at("timings").at("decode_tokens_per_s").to_number<double>(), 500);
  EXPECT_EQ(document.at("timings").at("prefill_tokens_per_s").to_number<double>(), 1000);
  EXPECT_EQ(document.at("timings").at("energy_estimate_j").to_number<double>(), 0.5);
}

// Whatever the pieces, a stream's contents put together are the document's.
TEST(ChatStream, PutTogetherIsTheDocument) {
  const std::string text = "Grüße, \"Welt\"\n\t\\ 漢字 🙂";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::vector<ChoiceDelta> deltas;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = std::min(at + size, text.size());
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      deltas.push_back(piece(text.substr(at, end - at)));
      at = end;
    }
    deltas.push_back(ended(Ending::kStop));
    const auto writer = make_chat_writer(request_of(R"(, "stream": true)"));
    std::string together;
    for (const std::string& event : run(*writer, context_of({{.tokens = {0}, .text = ""}}), deltas, {}, true).events) {
      if (event == "[DONE]") continue;
      const json::Value value = parsed(event);
      const json::Object& delta = value.at("choices").at(0).at("delta").as_object();
      if (const auto* content = delta.if_contains("content")) together += std::string(content->as_string());
    }
    EXPECT_EQ(together, text);
    const auto whole = make_chat_writer(request_of(""));
    const auto ran = run(*whole, context_of({{.tokens = {0}, .text = ""}}), deltas, {}, false);
    const json::Value document = parsed(ran.document);
    EXPECT_EQ(document.at("choices").at(0).at("message").at("content").as_string(), text);
  }
}

}  // namespace
}  // namespace weir::api
