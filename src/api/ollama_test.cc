// SPDX-License-Identifier: Apache-2.0
// Ollama's dialect: requests, lines of an answer, what it tells about models.
#include <gtest/gtest.h>

#include "api/ollama_api.h"
#include "api/ollama_options.h"
#include "api/ollama_time.h"
#include "api/translation_testing.h"

namespace weir::api {
namespace {

using namespace testing;
using namespace std::chrono_literals;

OllamaRequest chat(const std::string& fields) {
  auto parsed = parse_ollama_chat(R"({"model": "m", )" + fields + "}");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : OllamaRequest();
}
OllamaRequest generate(const std::string& fields) {
  auto parsed = parse_ollama_generate(R"({"model": "m", )" + fields + "}");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : OllamaRequest();
}

const std::string kHi = R"("messages": [{"role": "user", "content": "hi"}])";

// ---- requests

TEST(OllamaRequestTest, ModelsWithTheTagLatestAreThoseWithout) {
  EXPECT_EQ(ollama_model_name("llama3:latest"), "llama3");
  EXPECT_EQ(ollama_model_name("llama3:8b"), "llama3:8b");
  const auto parsed = parse_ollama_chat(R"({"model": "m:latest", )" + kHi + "}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->generation.model, "m");
  EXPECT_EQ(parsed->model_as_given, "m:latest");
}

TEST(OllamaRequestTest, StreamsUnlessToldOtherwise) {
  EXPECT_TRUE(chat(kHi).generation.stream);
  EXPECT_FALSE(chat(R"("stream": false, )" + kHi).generation.stream);
  EXPECT_TRUE(generate(R"("prompt": "x")").generation.stream);
}

TEST(OllamaRequestTest, OptionsThatChangeTheAnswerReachTheEngine) {
  const GenerationRequest made =
      chat(R"("options": {"num_predict": 9, "temperature": 0, "top_k": 5, "top_p": 0.5, "min_p": 0.1, "typical_p": 0.8,
               "repeat_penalty": 1.1, "repeat_last_n": -1, "presence_penalty": 0.2, "frequency_penalty": 0.3, "seed": 42, "stop": ["x"],
               "num_ctx": 4096, "num_gpu": 1, "num_thread": 8, "mirostat": 0, "tfs_z": 1.0}, )" +
           kHi)
          .generation;
  const sampling::SamplingParams& sampling = made.options.sampling;
  EXPECT_EQ(made.options.max_tokens, 9);
  EXPECT_TRUE(made.max_tokens_given && made.seed_given);
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_k, 5);
  EXPECT_EQ(sampling.top_p, 0.5F);
  EXPECT_EQ(sampling.min_p, 0.1F);
  EXPECT_EQ(sampling.typical_p, 0.8F);
  EXPECT_EQ(sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(sampling.presence_penalty, 0.2F);
  EXPECT_EQ(sampling.frequency_penalty, 0.3F);
  EXPECT_EQ(sampling.seed, 42u);
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"x"});
}

TEST(OllamaRequestTest, DefaultsGiveWayToTheModelsOwn) {
  const GenerationRequest made = chat(R"("options": {"num_predict": -1, "seed": -1}, )" + kHi).generation;
  EXPECT_EQ(made.options.sampling.temperature, 0.8F);
  EXPECT_EQ(made.options.sampling.top_k, 40);
  EXPECT_EQ(made.options.sampling.top_p, 0.9F);
  EXPECT_EQ(made.options.sampling.repetition_penalty, 1);
  EXPECT_FALSE(made.given.temperature || made.given.top_k || made.given.top_p || made.max_tokens_given || made.seed_given);
  EXPECT_EQ(made.options.max_tokens, 0);
  EXPECT_EQ(chat(R"("options": {"repeat_penalty": 1.3, "repeat_last_n": 0}, )" + kHi).generation.options.sampling.repetition_penalty, 1);
}

TEST(OllamaRequestTest, TheFormOfTheAnswer) {
  using grammar::GrammarKind;
  EXPECT_EQ(chat(R"("format": "json", )" + kHi).generation.options.grammar->kind, GrammarKind::kJsonObject);
  const GenerationRequest made = chat(R"("format": {"type": "object"}, )" + kHi).generation;
  EXPECT_EQ(made.options.grammar->kind, GrammarKind::kJsonSchema);
  EXPECT_EQ(made.options.grammar->text, R"({"type":"object"})");
  EXPECT_FALSE(chat(R"("format": "", )" + kHi).generation.options.grammar.has_value());
  EXPECT_EQ(text_of(chat(R"("think": false, )" + kHi).generation.template_arguments), R"({"enable_thinking":false})");
  EXPECT_EQ(text_of(chat(R"("think": "high", )" + kHi).generation.template_arguments),
            R"({"reasoning_effort":"high","enable_thinking":true})");
  EXPECT_EQ(chat(R"("truncate": true, )" + kHi).generation.truncate_prompt, 0);
  EXPECT_FALSE(chat(R"("truncate": false, )" + kHi).generation.truncate_prompt.has_value());
}

TEST(OllamaRequestTest, AnswersOfToolsFindTheirCalls) {
  EXPECT_EQ(text_of(chat(R"("messages": [
      {"role": "system", "content": "s"}, {"role": "user", "content": "weather?"},
      {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
        {"function": {"name": "weather", "arguments": {"city": "Rome"}}}, {"function": {"name": "time", "arguments": {}}},
        {"id": "own", "function": {"index": 2, "name": "moon", "arguments": {}}}]},
      {"role": "tool", "tool_name": "time", "content": "noon"}, {"role": "tool", "content": "sunny"},
      {"role": "tool", "tool_call_id": "own", "content": "full"}])")
                        .generation.messages),
            R"([{"role":"system","content":"s"},{"role":"user","content":"weather?"},)"
            R"({"role":"assistant","reasoning_content":"hm","tool_calls":[)"
            R"({"type":"function","id":"call00001","function":{"name":"weather","arguments":{"city":"Rome"}}},)"
            R"({"type":"function","id":"call00002","function":{"name":"time","arguments":{}}},)"
            R"({"type":"function","id":"own","function":{"name":"moon","arguments":{}}}]},)"
            R"({"role":"tool","content":"noon","tool_call_id":"call00002","name":"time"},)"
            R"({"role":"tool","content":"sunny","tool_call_id":"call00001","name":"weather"},)"
            R"({"role":"tool","content":"full","tool_call_id":"own","name":"moon"}])");
}

TEST(OllamaRequestTest, GenerateIsAChatOfOneTurnUnlessItIsRaw) {
  EXPECT_EQ(text_of(generate(R"("prompt": "hi", "system": "s")").generation.messages),
            R"([{"role":"system","content":"s"},{"role":"user","content":"hi"}])");
  const GenerationRequest raw =
      generate(R"("prompt": "hi", "raw": true, "suffix": "", "template": "", "images": [], "context": [])").generation;
  EXPECT_FALSE(raw.chat);
  ASSERT_EQ(raw.prompts.size(), 1u);
  EXPECT_EQ(std::get<std::string>(raw.prompts[0]), "hi");
}

TEST(OllamaRequestTest, WithoutAPromptTheModelIsLoadedOrUnloaded) {
  using Purpose = OllamaRequest::Purpose;
  EXPECT_EQ(generate(R"("prompt": "x")").purpose, Purpose::kAnswer);
  EXPECT_EQ(generate(R"("prompt": "")").purpose, Purpose::kLoad);
  EXPECT_EQ(generate(R"("keep_alive": 0)").purpose, Purpose::kUnload);
  EXPECT_EQ(chat(R"("messages": [])").purpose, Purpose::kLoad);
  EXPECT_EQ(chat(R"("keep_alive": "0s")").purpose, Purpose::kUnload);
  EXPECT_EQ(chat(R"("keep_alive": 0, )" + kHi).purpose, Purpose::kAnswer);
  EXPECT_EQ(ollama_load_document(generate(R"("keep_alive": 0)"), 0),
            R"({"model":"m","created_at":"1970-01-01T00:00:00Z","response":"","done":true,"done_reason":"unload"})");
  EXPECT_EQ(
      ollama_load_document(chat(R"("messages": [])"), 0),
      R"({"model":"m","created_at":"1970-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"})");
}

TEST(OllamaRequestTest, HowLongAModelStays) {
  const auto read = [](const std::string& value) { return read_keep_alive(*json::parse(value, "test"), Path()); };
  EXPECT_EQ(*read("300"), 300s);
  EXPECT_EQ(*read("1.5"), 1500ms);
  EXPECT_EQ(*read("-1"), Duration::max());
  EXPECT_EQ(*read(R"("5m")"), 5min);
  EXPECT_EQ(*read(R"("1h30m")"), 90min);
  EXPECT_EQ(*read(R"("300ms")"), 300ms);
  EXPECT_EQ(*read(R"("0")"), 0s);
  EXPECT_EQ(*read(R"("-1m")"), Duration::max());
  EXPECT_EQ(*read(R"("-0")"), 0s);
  for (const char* bad : {R"("")", R"("-")", R"("soon")", R"("5 m")", R"("5m5")", R"("nan")", R"("m")", "true", "[]", R"("1e9h")"})
    EXPECT_FALSE(read(bad).has_value()) << bad;
}

TEST(OllamaRequestTest, WrongRequestsNameTheField) {
  const std::pair<std::string, std::string_view> chats[] = {
      {"{" + kHi + "}", "model"},
      {R"({"model": "m", "messages": [{"role": "robot"}]})", "messages[0].role"},
      {R"({"model": "m", "messages": [{"role": "user", "content": 5}]})", "messages[0].content"},
      {R"({"model": "m", "messages": [{"role": "user", "content": "x", "images": ["AAAA"]}]})", "messages[0].images"},
      {R"({"model": "m", "messages": [{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "a"}}]}]})",
       "messages[0].tool_calls"},
      {R"({"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}]})",
       "messages[0].tool_calls[0].function.arguments"},
      {R"({"model": "m", "prompt": "x", )" + kHi + "}", "prompt"},
      {R"({"model": "m", "tools": [{"type": "function"}], )" + kHi + "}", "tools[0].function"},
      {R"({"model": "m", "format": "xml", )" + kHi + "}", "format"},
      {R"({"model": "m", "think": "a lot", )" + kHi + "}", "think"},
      {R"({"model": "m", "keep_alive": "soon", )" + kHi + "}", "keep_alive"},
      {R"({"model": "m", "top_logprobs": 3, )" + kHi + "}", "top_logprobs"},
      {R"({"model": "m", "options": {"temperature": -1}, )" + kHi + "}", "options.temperature"},
      {R"({"model": "m", "options": {"heat": 1}, )" + kHi + "}", "options.heat"},
      {R"({"model": "m", "options": {"mirostat": 2}, )" + kHi + "}", "options.mirostat"},
      {R"({"model": "m", "options": {"stop": [""]}, )" + kHi + "}", "options.stop[0]"},
      {R"({"model": "m", "options": {"num_predict": -3}, )" + kHi + "}", "options.num_predict"},
      {R"({"model": "m", "options": {"repeat_penalty": 1.1, "repeat_last_n": 64}, )" + kHi + "}", "options.repeat_last_n"},
  };
  for (const auto& [body, param] : chats) {
    const auto parsed = parse_ollama_chat(body);
    ASSERT_FALSE(parsed.has_value()) << body;
    EXPECT_EQ(parsed.error().status, 400) << body;
    EXPECT_EQ(parsed.error().param, param) << parsed.error().message;
  }
  const std::pair<std::string, std::string_view> generates[] = {
      {R"({"model": "m", "prompt": "x", "suffix": "y"})", "suffix"},
      {R"({"model": "m", "prompt": "x", "template": "{{ .Prompt }}"})", "template"},
      {R"({"model": "m", "prompt": "x", "context": [1, 2]})", "context"},
      {R"({"model": "m", "prompt": "x", "images": ["AAAA"]})", "images"},
      {R"({"model": "m", "prompt": "x", "raw": true, "system": "s"})", "system"},
      {R"({"model": "m", "prompt": 5})", "prompt"},
      {R"({"model": "m", "prompt": "x", "width": 64})", "width"},
  };
  for (const auto& [body, param] : generates) {
    const auto parsed = parse_ollama_generate(body);
    ASSERT_FALSE(parsed.has_value()) << body;
    EXPECT_EQ(parsed.error().param, param) << parsed.error().message;
    EXPECT_TRUE(ollama_error_document(parsed.error()).contains(param));
  }
}

TEST(OllamaRequestTest, Embeddings) {
  const auto many = parse_ollama_embed(R"({"model": "e:latest", "input": ["a", "b"], "truncate": true, "dimensions": 2})");
  ASSERT_TRUE(many.has_value());
  EXPECT_EQ(many->embedding.model, "e");
  ASSERT_EQ(many->embedding.inputs.size(), 2u);
  EXPECT_EQ(std::get<std::string>(many->embedding.inputs[1]), "b");
  EXPECT_TRUE(many->embedding.cut);
  EXPECT_EQ(many->embedding.dimensions, 2);
  EXPECT_EQ(ollama_embed_document(*many, {.model = "e", .vectors = {{0.25F, 0.5F}, {-0.75F, -2.5F}}, .tokens = 4}, 5us),
            R"({"model":"e:latest","embeddings":[[0.25,0.5],[-0.75,-2.5]],"total_duration":5000,"load_duration":0,"prompt_eval_count":4})");

  const auto one = parse_ollama_embeddings(R"({"model": "e", "prompt": "a", "keep_alive": "5m", "options": {"num_ctx": 512}})");
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(ollama_embed_document(*one, {.model = "e", .vectors = {{0.25F, 0.5F}}, .tokens = 2}, 5us), R"({"embedding":[0.25,0.5]})");

  EXPECT_EQ(parse_ollama_embed(R"({"model": "e", "input": []})").error().param, "input");
  EXPECT_EQ(parse_ollama_embed(R"({"model": "e", "input": [5]})").error().param, "input[0]");
  EXPECT_EQ(parse_ollama_embed(R"({"model": "e"})").error().param, "input");
  EXPECT_EQ(parse_ollama_embed(R"({"model": "e", "input": "x", "options": {"heat": 1}})").error().param, "options.heat");
  EXPECT_EQ(parse_ollama_embeddings(R"({"prompt": "x"})").error().param, "model");
}

// ---- answers

Answer lines_of(const OllamaRequest& request, const std::vector<ChoiceDelta>& deltas) {
  const auto writer = make_ollama_writer(request);
  EXPECT_EQ(writer->framing(), Framing::kJsonLines);
  return run(*writer, request.generation.stream, deltas);
}

constexpr std::string_view kStatistics =
    R"("total_duration":6500000,"load_duration":0,"prompt_eval_count":3,"prompt_eval_duration":2000000,"eval_count":5,"eval_duration":3500000)";

TEST(OllamaWriterTest, AStreamedChat) {
  EXPECT_EQ(lines_of(chat(kHi), {thought("hm"), text("Hel"), text("lo"), ended(Ending::kStop)}).lines(),
            R"({"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":"Hel"},"done":false}
{"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":"lo"},"done":false}
{"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",)" +
                std::string(kStatistics) + "}\n");
}

TEST(OllamaWriterTest, CallsComeWhole) {
  const std::vector<ChoiceDelta> deltas = {call(0, "a", "add", R"({"x")"), call(0, "", "", ":1}"), call(1, "b", "now", ""),
                                           ended(Ending::kToolCalls)};
  EXPECT_EQ(
      lines_of(chat(kHi), deltas).lines(),
      R"({"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":"","tool_calls":[)"
      R"({"id":"a","function":{"index":0,"name":"add","arguments":{"x":1}}}]},"done":false})"
      "\n"
      R"({"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":"","tool_calls":[)"
      R"({"id":"b","function":{"index":1,"name":"now","arguments":{}}}]},"done":false})"
      "\n"
      R"({"model":"m","created_at":"2023-11-14T22:13:20Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",)" +
          std::string(kStatistics) + "}\n");
  const json::Object whole = parsed(lines_of(chat(R"("stream": false, )" + kHi), deltas).document);
  EXPECT_EQ(text_of(whole.at("message").at("tool_calls")), R"([{"id":"a","function":{"index":0,"name":"add","arguments":{"x":1}}},)"
                                                           R"({"id":"b","function":{"index":1,"name":"now","arguments":{}}}])");
}

TEST(OllamaWriterTest, ACallThatIsCutIsText) {
  const json::Object whole =
      parsed(lines_of(chat(R"("stream": false, )" + kHi), {call(0, "a", "add", R"({"x": "un)"), ended(Ending::kLength)}).document);
  EXPECT_EQ(text_of(whole.at("message")), R"({"role":"assistant","content":"add {\"x\": \"un"})");
  EXPECT_EQ(whole.at("done_reason").as_string(), "length");
}

TEST(OllamaWriterTest, GenerateInOneAndInLines) {
  EXPECT_EQ(
      lines_of(generate(R"("prompt": "x", "stream": false)"), {thought("hm"), text("Hel"), text("lo"), ended(Ending::kLength)}).document,
      R"({"model":"m","created_at":"2023-11-14T22:13:20Z","response":"Hello","thinking":"hm","done":true,"done_reason":"length",)" +
          std::string(kStatistics) + "}");
  EXPECT_EQ(lines_of(generate(R"("prompt": "x")"), {text("a"), ended(Ending::kStop)}).events.front().data,
            R"({"model":"m","created_at":"2023-11-14T22:13:20Z","response":"a","done":false})");
}

TEST(OllamaWriterTest, LogprobsComeWithTheTextAndNoneIsLost) {
  const auto with = [](ChoiceDelta delta, double logprob) {
    delta.logprobs = {sampling::TokenLogprobs{.token = {1, logprob}, .rank = 1, .top = {}}};
    return delta;
  };
  const Answer answer = lines_of(chat(R"("logprobs": true, )" + kHi), {with({}, -1), with(text("a"), -2), with(ended(Ending::kStop), -3)});
  ASSERT_EQ(answer.events.size(), 2u);
  const json::Value first = answer.events[0].json(), last = answer.events[1].json();
  EXPECT_EQ(first.at("logprobs").as_array().size(), 2u);
  EXPECT_EQ(first.at("logprobs").at(1).at("logprob").to_number<double>(), -2);
  EXPECT_EQ(last.at("logprobs").at(0).at("logprob").to_number<double>(), -3);
}

TEST(OllamaWriterTest, AnErrorInTheMiddleIsTheLastLine) {
  ChoiceDelta end = ended(Ending::kFailed);
  end.end->error = ApiError{.status = 503, .message = "draining"};
  EXPECT_EQ(lines_of(chat(kHi), {text("a"), end}).events.back().data, R"({"error":"draining"})");
  const auto writer = make_ollama_writer(chat(kHi));
  Answer answer;
  const Sink sink = answer.sink();
  writer->begin(context(), sink);
  writer->add(text("a"), sink);
  writer->error_event({.status = 504, .message = "too late"}, sink);
  EXPECT_EQ(answer.events.back().data, R"({"error":"too late"})");
  EXPECT_EQ(writer->error_document({.status = 404, .message = "no \"x\""}), R"({"error":"no \"x\""})");
}

// ---- models

TEST(OllamaModelsTest, WhatIsToldOfAModel) {
  const OllamaModel model{.name = "m",
                          .digest = "abc",
                          .family = "llama",
                          .quantization = "Q4_1",
                          .chat_template = "{{ messages }}",
                          .licence = "Apache-2.0",
                          .bytes = 100,
                          .bytes_in_memory = 200,
                          .parameters = 134'515'008,
                          .context_length = 8192,
                          .embedding_length = 576,
                          .modified = 1'700'000'000,
                          .capabilities = {"completion", "tools"}};
  EXPECT_EQ(ollama_tags_document({&model, 1}),
            R"({"models":[{"name":"m:latest","model":"m:latest","size":100,"digest":"abc","details":{"parent_model":"","format":"gguf",)"
            R"("family":"llama","families":["llama"],"parameter_size":"134.52M","quantization_level":"Q4_1"},)"
            R"("modified_at":"2023-11-14T22:13:20Z"}]})");
  const json::Object running = parsed(ollama_ps_document({&model, 1}));
  EXPECT_EQ(running.at("models").at(0).at("size").as_int64(), 200);
  EXPECT_EQ(running.at("models").at(0).at("expires_at").as_string(), "9999-12-31T23:59:59Z");
  EXPECT_EQ(running.at("models").at(0).at("context_length").as_int64(), 8192);
  const json::Object shown = parsed(ollama_show_document(model));
  EXPECT_EQ(text_of(shown.at("model_info")),
            R"({"general.architecture":"llama","general.parameter_count":134515008,"llama.context_length":8192,)"
            R"("llama.embedding_length":576})");
  EXPECT_EQ(text_of(shown.at("capabilities")), R"(["completion","tools"])");
  EXPECT_EQ(ollama_version_document("1.2"), R"({"version":"1.2"})");
  EXPECT_EQ(ollama_tags_document({}), R"({"models":[]})");

  EXPECT_EQ(*parse_ollama_show(R"({"model": "m:latest"})"), "m");
  EXPECT_EQ(*parse_ollama_show(R"({"name": "m", "verbose": true})"), "m");
  EXPECT_EQ(parse_ollama_show("{}").error().param, "model");
}

TEST(OllamaModelsTest, TimesAreWithinFourDigitsOfYears) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(951'827'696), "2000-02-29T12:34:56Z");
  EXPECT_EQ(rfc3339(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(rfc3339(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59Z");
  EXPECT_EQ(rfc3339(std::numeric_limits<std::int64_t>::min()), "0000-01-01T00:00:00Z");
}

}  // namespace
}  // namespace weir::api
