// SPDX-License-Identifier: Apache-2.0
// Golden sequences of Anthropic's events, and messages that say the same.
#include <gtest/gtest.h>

#include "api/anthropic_messages.h"
#include "api/translation_testing.h"

namespace weir::api {
namespace {

using namespace testing;

GenerationRequest request(std::string_view fields) {
  auto parsed = parse_anthropic_message(R"({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}])" +
                                        std::string(fields) + "}");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : GenerationRequest();
}

Answer streamed(std::string_view fields, const std::vector<ChoiceDelta>& deltas) {
  const auto writer = make_anthropic_writer(request(R"(, "stream": true)" + std::string(fields)));
  return run(*writer, true, deltas);
}

json::Object whole(std::string_view fields, const std::vector<ChoiceDelta>& deltas) {
  const auto writer = make_anthropic_writer(request(fields));
  return parsed(run(*writer, false, deltas).document);
}

constexpr std::string_view kStart =
    R"(message_start {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}
ping {"type":"ping"}
)";

TEST(AnthropicWriterTest, AStreamedText) {
  EXPECT_EQ(streamed("", {text("Hel"), text("lo"), ended(Ending::kStop)}).lines(),
            std::string(kStart) +
                R"(content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}
content_block_stop {"type":"content_block_stop","index":0}
message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5}}
message_stop {"type":"message_stop"}
)");
}

TEST(AnthropicWriterTest, ThinkingThenATextThenCalls) {
  const std::vector<ChoiceDelta> deltas = {
      thought("h"),           thought("m"),           text("I look."),          call(0, "call_a", "add", R"({"x")"),
      call(0, "", "", ":1}"), call(1, "", "now", ""), ended(Ending::kToolCalls)};
  EXPECT_EQ(
      streamed("", deltas).lines(),
      std::string(kStart) +
          R"(content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"unsigned_msg_1"}}
content_block_stop {"type":"content_block_stop","index":0}
content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}
content_block_stop {"type":"content_block_stop","index":1}
content_block_start {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_a","name":"add","input":{}}}
content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}
content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}
content_block_stop {"type":"content_block_stop","index":2}
content_block_start {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1_1","name":"now","input":{}}}
content_block_stop {"type":"content_block_stop","index":3}
message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5}}
message_stop {"type":"message_stop"}
)");
  EXPECT_EQ(
      text_of(whole("", deltas).at("content")),
      R"([{"type":"thinking","thinking":"hm","signature":"unsigned_msg_1"},{"type":"text","text":"I look."},)"
      R"({"type":"tool_use","id":"call_a","name":"add","input":{"x":1}},{"type":"tool_use","id":"toolu_1_1","name":"now","input":{}}])");
}

TEST(AnthropicWriterTest, WhyItStopped) {
  const auto reason = [](const ChoiceDelta& end) {
    const json::Object message = whole("", {text("a"), end});
    return text_of(json::Array{message.at("stop_reason"), message.at("stop_sequence")});
  };
  EXPECT_EQ(reason(ended(Ending::kStop)), R"(["end_turn",null])");
  EXPECT_EQ(reason(ended(Ending::kStop, "END")), R"(["stop_sequence","END"])");
  EXPECT_EQ(reason(ended(Ending::kToolCalls)), R"(["tool_use",null])");
  EXPECT_EQ(reason(ended(Ending::kCancelled)), R"(["pause_turn",null])");
  ChoiceDelta full = ended(Ending::kLength);
  full.end->finish.generated = 10;
  EXPECT_EQ(reason(full), R"(["max_tokens",null])");
  full.end->finish.generated = 7;  // of 10: the context was full
  EXPECT_EQ(reason(full), R"(["model_context_window_exceeded",null])");
}

TEST(AnthropicWriterTest, AnErrorInTheMiddleIsTheLastEvent) {
  const auto writer = make_anthropic_writer(request(R"(, "stream": true)"));
  Answer answer;
  const Sink sink = answer.sink();
  writer->begin(context(), sink);
  writer->add(text("Hel"), sink);
  writer->error_event({.status = 503, .message = "draining"}, sink);
  EXPECT_EQ(answer.events.back().name, "error");
  EXPECT_EQ(answer.events.back().data, R"({"type":"error","error":{"type":"overloaded_error","message":"draining"}})");
}

TEST(AnthropicWriterTest, AnAnswerThatFailedIsAnError) {
  ChoiceDelta end = ended(Ending::kFailed);
  end.end->error = ApiError{.status = 504, .message = "too late"};
  const std::string error = R"({"type":"error","error":{"type":"timeout_error","message":"too late"}})";
  EXPECT_EQ(streamed("", {text("a"), end}).events.back().data, error);
  const auto writer = make_anthropic_writer(request(""));
  EXPECT_EQ(run(*writer, false, {end}).document, error);
}

TEST(AnthropicWriterTest, ACallThatIsCutIsNoCallInAMessage) {
  const json::Object message = whole("", {call(0, "c", "add", R"({"x": "unfini)"), ended(Ending::kLength)});
  EXPECT_EQ(text_of(message.at("content")), R"([{"type":"text","text":"add {\"x\": \"unfini"}])");
}

TEST(AnthropicWriterTest, ThinkingThatIsNotToBeShown) {
  const json::Object message =
      whole(R"(, "thinking": {"type": "adaptive", "display": "omitted"})", {thought("secret"), text("a"), ended(Ending::kStop)});
  EXPECT_EQ(text_of(message.at("content")),
            R"([{"type":"thinking","thinking":"","signature":"unsigned_msg_1"},{"type":"text","text":"a"}])");
}

TEST(AnthropicWriterTest, CachedTokensCountApartForThoseWhoMarkTheCache) {
  const auto usage = [](std::string_view fields) { return text_of(whole(fields, {ended(Ending::kStop)}).at("usage")); };
  EXPECT_EQ(usage(""), R"({"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5})");
  EXPECT_EQ(usage(R"(, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}])"),
            R"({"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":2,"output_tokens":5})");
  EXPECT_EQ(usage(R"(, "system": "about \"cache_control\"")"),
            R"({"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5})");
}

TEST(AnthropicWriterTest, ErrorsHaveTheirTypes) {
  const auto type = [](int status) {
    return std::string(parsed(anthropic_error_document({.status = status, .message = "m"})).at("error").at("type").as_string());
  };
  EXPECT_EQ(type(400), "invalid_request_error");
  EXPECT_EQ(type(401), "authentication_error");
  EXPECT_EQ(type(403), "permission_error");
  EXPECT_EQ(type(404), "not_found_error");
  EXPECT_EQ(type(413), "request_too_large");
  EXPECT_EQ(type(422), "invalid_request_error");
  EXPECT_EQ(type(429), "rate_limit_error");
  EXPECT_EQ(type(500), "api_error");
  EXPECT_EQ(type(503), "overloaded_error");
  EXPECT_EQ(type(504), "timeout_error");
}

}  // namespace
}  // namespace weir::api
