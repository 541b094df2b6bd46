// SPDX-License-Identifier: Apache-2.0
// Requests to /v1/responses: what they come to as a chat, what is refused and how the field is named, and conversations that go on.
#include <gtest/gtest.h>

#include "api/openai_responses.h"
#include "api/translation_testing.h"

namespace weir::api {
namespace {

using namespace testing;

ResponsesState with_store(std::string tenant = "t") { return {std::make_shared<ResponseStore>(), std::move(tenant)}; }

ResponsesRequest request(std::string_view body, const ResponsesState& state = {}) {
  auto parsed = parse_response_request(body, state);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : ResponsesRequest();
}

std::string messages(std::string_view body, const ResponsesState& state = {}) { return text_of(request(body, state).generation.messages); }

// Answers a request and keeps it under the id.
json::Object answer(ResponsesRequest made, const ResponsesState& state, std::string id, const std::vector<ChoiceDelta>& deltas) {
  const auto writer = make_responses_writer(made, state);
  AnswerContext about = context();
  about.id = std::move(id);
  return parsed(run(*writer, false, deltas, about).document);
}

TEST(ResponsesRequestTest, ATextIsTheUsersMessage) {
  EXPECT_EQ(messages(R"({"input": "hi"})"), R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(messages(R"({"input": "hi", "instructions": "be brief"})"),
            R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"}])");
}

TEST(ResponsesRequestTest, MessagesOfPartsAndRoles) {
  EXPECT_EQ(messages(R"({"instructions": "one", "input": [
      {"role": "developer", "content": "two"},
      {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
      {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
       "content": [{"type": "output_text", "text": "c", "annotations": [], "logprobs": []}]},
      {"role": "system", "content": "three"}]})"),
            R"([{"role":"system","content":"one\n\ntwo"},{"role":"user","content":"a\nb"},{"role":"assistant","content":"c"},)"
            R"({"role":"system","content":"three"}])");
}

TEST(ResponsesRequestTest, ReasoningTextAndCallsThatFollowAreOneTurn) {
  EXPECT_EQ(messages(R"({"input": [
      {"role": "user", "content": "weather?"},
      {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
      {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
      {"type": "function_call", "call_id": "c2", "name": "time", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c2", "output": "noon"},
      {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "sunny"}]},
      {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": null},
      {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thanks"}]})"),
            R"([{"role":"user","content":"weather?"},)"
            R"({"role":"assistant","reasoning_content":"hm","content":"I look.","tool_calls":[)"
            R"({"type":"function","id":"c1","function":{"name":"weather","arguments":{"city":"Rome"}}},)"
            R"({"type":"function","id":"c2","function":{"name":"time","arguments":{}}}]},)"
            R"({"role":"tool","tool_call_id":"c2","content":"noon","name":"time"},)"
            R"({"role":"tool","tool_call_id":"c1","content":"sunny","name":"weather"},)"
            R"({"role":"assistant","reasoning_content":"so","content":"Sunny."},{"role":"user","content":"Thanks"}])");
}

TEST(ResponsesRequestTest, WhatTheEngineIsTold) {
  const GenerationRequest made =
      request(R"({"model": "m", "input": "hi", "max_output_tokens": 7, "temperature": 0, "top_p": 0.5, "top_logprobs": 3, "stream": true,
                  "seed": 5, "stop": ["x"], "truncation": "auto", "reasoning": {"effort": "low"},
                  "text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "object"}}}})")
          .generation;
  EXPECT_EQ(made.model, "m");
  EXPECT_TRUE(made.chat && made.stream && made.max_tokens_given);
  EXPECT_EQ(made.options.max_tokens, 7);
  EXPECT_EQ(made.options.sampling.temperature, 0);
  EXPECT_EQ(made.options.sampling.top_p, 0.5F);
  EXPECT_EQ(made.options.sampling.logprobs, 3);
  EXPECT_EQ(made.options.sampling.seed, 5u);
  EXPECT_EQ(made.options.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(made.truncate_prompt, 0);
  EXPECT_EQ(text_of(made.template_arguments), R"({"reasoning_effort":"low","enable_thinking":true})");
  ASSERT_TRUE(made.options.grammar.has_value());
  EXPECT_EQ(made.options.grammar->kind, grammar::GrammarKind::kJsonSchema);
  EXPECT_EQ(made.options.grammar->text, R"({"type":"object"})");

  const GenerationRequest plain =
      request(R"({"input": "hi", "include": ["reasoning.encrypted_content"], "truncation": "disabled"})").generation;
  EXPECT_EQ(plain.options.sampling.temperature, 1);
  EXPECT_FALSE(plain.given.temperature);
  EXPECT_EQ(plain.options.sampling.logprobs, -1);
  EXPECT_FALSE(plain.truncate_prompt.has_value());
  EXPECT_FALSE(plain.options.grammar.has_value());
}

TEST(ResponsesRequestTest, ToolsAndTheChoiceOfThem) {
  const std::string tools = R"("tools": [{"type": "function", "name": "a", "description": "A", "parameters": {"type": "object"},
                                          "strict": true}, {"type": "function", "name": "b"}])";
  const auto choice = [&](const std::string& value) {
    return request(R"({"input": "hi", "tool_choice": )" + value + ", " + tools + "}").generation;
  };
  const GenerationRequest automatic = request(R"({"input": "hi", "parallel_tool_calls": false, )" + tools + "}").generation;
  ASSERT_EQ(automatic.tools.size(), 2u);
  EXPECT_TRUE(automatic.tools[0].strict);
  EXPECT_FALSE(automatic.tools[1].strict);
  EXPECT_EQ(text_of(automatic.tools[0].as_given),
            R"({"type":"function","function":{"name":"a","description":"A","parameters":{"type":"object"},"strict":true}})");
  EXPECT_EQ(automatic.tool_choice.kind, ToolChoice::Kind::kAuto);
  EXPECT_FALSE(automatic.tool_choice.parallel);

  EXPECT_EQ(choice(R"("none")").tool_choice.kind, ToolChoice::Kind::kNone);
  EXPECT_EQ(choice(R"("required")").tool_choice.kind, ToolChoice::Kind::kRequired);
  const GenerationRequest named = choice(R"({"type": "function", "name": "b"})");
  EXPECT_EQ(named.tool_choice.kind, ToolChoice::Kind::kNamed);
  EXPECT_EQ(named.tool_choice.name, "b");
  const GenerationRequest allowed =
      choice(R"({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]})");
  EXPECT_EQ(allowed.tool_choice.kind, ToolChoice::Kind::kRequired);
  ASSERT_EQ(allowed.tools.size(), 1u);
  EXPECT_EQ(allowed.tools[0].name, "b");
}

TEST(ResponsesRequestTest, WrongRequestsNameTheField) {
  const BadRequest cases[] = {
      {R"({})", "input", "missing"},
      {R"({"input": []})", "input", "empty"},
      {R"({"input": 5})", "input"},
      {R"({"input": [{"type": "reasoning", "summary": []}]})", "input"},
      {R"({"input": [5]})", "input[0]"},
      {R"({"input": [{}]})", "input[0].role"},
      {R"({"input": [{"role": "root", "content": "x"}]})", "input[0].role"},
      {R"({"input": [{"role": "user"}]})", "input[0].content"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]})", "input[0].content[0].type",
       "text only"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_text"}]}]})", "input[0].content[0].text"},
      {R"({"input": [{"role": "user", "content": "x", "colour": 1}]})", "input[0].colour"},
      {R"({"input": [{"type": "web_search_call", "id": "x"}]})", "input[0].type"},
      {R"({"input": [{"type": "item_reference", "id": "x"}]})", "input[0].type", "previous_response_id"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]})", "input[0].arguments"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f g", "arguments": "{}"}]})", "input[0].name"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]})", "input[0].call_id"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                     {"type": "function_call_output", "call_id": "c", "output": "x"},
                     {"type": "function_call_output", "call_id": "c", "output": "y"}]})",
       "input[2].call_id"},
      {R"({"input": "x", "model": 5})", "model"},
      {R"({"input": "x", "messages": []})", "messages"},
      {R"({"input": "x", "max_output_tokens": 0})", "max_output_tokens"},
      {R"({"input": "x", "max_output_tokens": 1e300})", "max_output_tokens"},
      {R"({"input": "x", "temperature": -1})", "temperature"},
      {R"({"input": "x", "top_logprobs": 21})", "top_logprobs"},
      {R"({"input": "x", "metadata": {"a": 1}})", "metadata.a"},
      {R"({"input": "x", "tools": [{"type": "web_search"}]})", "tools[0].type", "web_search"},
      {R"({"input": "x", "tools": [{"type": "function"}]})", "tools[0].name"},
      {R"({"input": "x", "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]})", "tools[1]", "another tool"},
      {R"({"input": "x", "tool_choice": "required"})", "tool_choice"},
      {R"({"input": "x", "tool_choice": {"type": "function", "name": "a"}})", "tool_choice.name"},
      {R"({"input": "x", "tool_choice": {"type": "file_search"}})", "tool_choice.type"},
      {R"({"input": "x", "text": {"format": {"type": "xml"}}})", "text.format.type"},
      {R"({"input": "x", "text": {"format": {"type": "json_schema", "name": "n"}}})", "text.format.schema"},
      {R"({"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": []}}})", "text.format.schema"},
      {R"({"input": "x", "text": {"verbosity": "high"}})", "text.verbosity"},
      {R"({"input": "x", "reasoning": {"effort": "huge"}})", "reasoning.effort"},
      {R"({"input": "x", "include": ["everything"]})", "include[0]"},
      {R"({"input": "x", "truncation": "middle"})", "truncation"},
      {R"({"input": "x", "background": true})", "background"},
      {R"({"input": "x", "conversation": "conv_1"})", "conversation"},
      {R"({"input": "x", "n": 2})", "n"},
  };
  for (const BadRequest& bad : cases) {
    const auto parsed = parse_response_request(bad.body, {});
    ASSERT_FALSE(parsed.has_value()) << bad.body;
    EXPECT_EQ(parsed.error().status, 400) << bad.body;
    EXPECT_EQ(parsed.error().param, bad.param) << bad.body;
    EXPECT_TRUE(parsed.error().message.contains(bad.in_message)) << parsed.error().message;
  }
  for (const std::string_view body : {"", "[]", "{", "{\"input\": \"\xff\"}", R"({"input": "a", "input": "b"})"}) {
    const auto parsed = parse_response_request(body, {});
    ASSERT_FALSE(parsed.has_value()) << body;
    EXPECT_EQ(parsed.error().status, 400);
  }
}

TEST(ResponsesRequestTest, AConversationGoesOnFromAResponseThatIsKept) {
  const ResponsesState state = with_store();
  answer(request(R"({"input": "weather?", "instructions": "first only", "tools": [{"type": "function", "name": "weather"}]})", state),
         state, "1", {thought("hm"), call(0, "c1", "weather", R"({"city":"Rome"})"), ended(Ending::kToolCalls)});
  const std::string second = R"({"previous_response_id": "resp_1",
      "input": [{"type": "function_call_output", "call_id": "c1", "output": "sunny"}]})";
  const json::Object shown = answer(request(second, state), state, "2", {text("Sunny."), ended(Ending::kStop)});
  EXPECT_EQ(shown.at("previous_response_id").as_string(), "resp_1");
  EXPECT_TRUE(shown.at("instructions").is_null());

  EXPECT_EQ(messages(R"({"previous_response_id": "resp_2", "input": "Thanks", "instructions": "now"})", state),
            R"([{"role":"system","content":"now"},{"role":"user","content":"weather?"},)"
            R"({"role":"assistant","reasoning_content":"hm","tool_calls":[)"
            R"({"type":"function","id":"c1","function":{"name":"weather","arguments":{"city":"Rome"}}}]},)"
            R"({"role":"tool","tool_call_id":"c1","content":"sunny","name":"weather"},{"role":"assistant","content":"Sunny."},)"
            R"({"role":"user","content":"Thanks"}])");

  // The first may go: the second holds all.
  EXPECT_TRUE(delete_stored_response(state, "resp_1").has_value());
  EXPECT_TRUE(messages(R"({"previous_response_id": "resp_2", "input": "Thanks"})", state).contains("weather?"));
  // The answer to the call is given already.
  EXPECT_FALSE(parse_response_request(R"({"previous_response_id": "resp_2",
      "input": [{"type": "function_call_output", "call_id": "c1", "output": "rain"}]})",
                                      state)
                   .has_value());
}

TEST(ResponsesRequestTest, ResponsesAreTheirTenantsOwn) {
  const ResponsesState state = with_store("alice"), other{state.store, "bob"};
  answer(request(R"({"input": "secret"})", state), state, "1", {text("a"), ended(Ending::kStop)});
  EXPECT_TRUE(stored_response(state, "resp_1").has_value());
  const ApiError unknown = parse_response_request(R"({"previous_response_id": "resp_1", "input": "x"})", other).error();
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.code, "previous_response_not_found");
  EXPECT_EQ(unknown.param, "previous_response_id");
  EXPECT_TRUE(unknown.message.starts_with("Previous response with id 'resp_1' not found")) << unknown.message;
  for (const auto& error : {stored_response(other, "resp_1").error(), delete_stored_response(other, "resp_1").error(),
                            stored_input_items(other, "resp_1", {}).error(), cancel_stored_response(other, "resp_1")})
    EXPECT_EQ(error.status, 404) << error.message;
  EXPECT_TRUE(stored_response(state, "resp_1").has_value());
}

TEST(ResponsesRequestTest, WhatIsNotToBeKeptIsNot) {
  const ResponsesState state = with_store();
  const json::Object no = answer(request(R"({"input": "x", "store": false})", state), state, "1", {text("a"), ended(Ending::kStop)});
  EXPECT_FALSE(no.at("store").as_bool());
  answer(request(R"({"input": "x"})", state), state, "2", {text("a"), ended(Ending::kFailed)});
  EXPECT_EQ(state.store->size(), 0u);
  const json::Object yes = answer(request(R"({"input": "x"})", state), state, "3", {text("a"), ended(Ending::kLength)});
  EXPECT_TRUE(yes.at("store").as_bool());
  EXPECT_EQ(state.store->size(), 1u);
  EXPECT_EQ(parsed(*stored_response(state, "resp_3")), yes);
}

TEST(ResponsesRequestTest, WhatIsTooLargeToBeKeptIsAnsweredAllTheSame) {
  const ResponsesState state{std::make_shared<ResponseStore>(ResponseStoreLimits{.max_response_bytes = 100}), "t"};
  const json::Object shown = answer(request(R"({"input": "x"})", state), state, "1", {text("a"), ended(Ending::kStop)});
  EXPECT_EQ(shown.at("status").as_string(), "completed");
  EXPECT_FALSE(shown.at("store").as_bool());
}

TEST(ResponsesRequestTest, InputItemsAreListedInPages) {
  const ResponsesState state = with_store();
  answer(request(R"({"input": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "id": "msg_own"},
                               {"role": "user", "content": "c"}]})",
                 state),
         state, "1", {text("d"), ended(Ending::kStop)});
  const json::Object newest = parsed(*stored_input_items(state, "resp_1", {.limit = "2"}));
  EXPECT_EQ(text_of(newest.at("data").at(0)),
            R"({"type":"message","role":"user","content":[{"type":"input_text","text":"c"}],"status":"completed","id":"item_1_2"})");
  EXPECT_EQ(newest.at("first_id").as_string(), "item_1_2");
  EXPECT_EQ(newest.at("last_id").as_string(), "msg_own");
  EXPECT_TRUE(newest.at("has_more").as_bool());
  const json::Object rest = parsed(*stored_input_items(state, "resp_1", {.after = "msg_own"}));
  EXPECT_EQ(rest.at("last_id").as_string(), "item_1_0");
  EXPECT_FALSE(rest.at("has_more").as_bool());
  EXPECT_EQ(parsed(*stored_input_items(state, "resp_1", {.order = "asc"})).at("first_id").as_string(), "item_1_0");
  EXPECT_TRUE(parsed(*stored_input_items(state, "resp_1", {.order = "asc", .after = "item_1_2"})).at("first_id").is_null());

  EXPECT_EQ(stored_input_items(state, "resp_1", {.limit = "0"}).error().param, "limit");
  EXPECT_EQ(stored_input_items(state, "resp_1", {.limit = "1x"}).error().param, "limit");
  EXPECT_EQ(stored_input_items(state, "resp_1", {.order = "up"}).error().param, "order");
  EXPECT_EQ(stored_input_items(state, "resp_1", {.after = "nobody"}).error().param, "after");
}

TEST(ResponsesRequestTest, CancellingIsForTheBackground) {
  const ResponsesState state = with_store();
  answer(request(R"({"input": "x"})", state), state, "1", {text("a"), ended(Ending::kStop)});
  EXPECT_EQ(cancel_stored_response(state, "resp_1").status, 400);
  EXPECT_EQ(cancel_stored_response(state, "resp_2").status, 404);
  EXPECT_EQ(cancel_stored_response({}, "resp_1").status, 404);
}

}  // namespace
}  // namespace weir::api
