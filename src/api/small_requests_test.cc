// SPDX-License-Identifier: Apache-2.0
// Embeddings, ranks, tokenizers, models, adapters, health: requests and answers.
#include <cstring>
#include <limits>

#include "api/embeddings.h"
#include "api/json_text.h"
#include "api/models.h"
#include "api/operations.h"
#include "api/rerank.h"
#include "api/test_answers.h"
#include "api/tokenize.h"

namespace weir::api {
namespace {

using testing::expect_json;

template <class T>
std::string refused(const ApiResult<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().param + ": " + result.error().message;
}

TEST(JsonText, EscapesAndRepairs) {
  JsonText out;
  out.open_array().text("a\"\\\n\x01\xff é").number(std::numeric_limits<double>::quiet_NaN()).number(1.0).number(0.1f).number(-1e300);
  out.integer(-7).boolean(true).null().open_object().close_object().open_array().close_array().close_array();
  EXPECT_EQ(out.str(), "[\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD é\",0.0,1.0,0.1,-1e+300,-7,true,null,{},[]]");
  const auto huge = json::parse(JsonText().open_array().number(std::numeric_limits<double>::infinity()).close_array().take(), "x");
  ASSERT_TRUE(huge.has_value());
  EXPECT_EQ(huge->at(0).as_double(), std::numeric_limits<double>::max());
}

TEST(Embeddings, RequestsInAllForms) {
  const auto r = parse_embedding(R"({"model": "m", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 64, "user": "u",
    "truncate_prompt_tokens": 9, "normalize": false, "prompt_name": "query"})");
  ASSERT_TRUE(r.has_value()) << r.error().message;
  EXPECT_EQ(r->model, "m");
  EXPECT_EQ(r->inputs, (std::vector<PromptInput>{"a", "b"}));
  EXPECT_TRUE(r->base64 && r->cut);
  EXPECT_EQ(r->dimensions, 64);
  EXPECT_EQ(r->max_tokens, 9);
  EXPECT_EQ(r->normalize, false);
  EXPECT_EQ(r->prompt_name, "query");
  EXPECT_EQ(parse_embedding(R"({"input": [1, 2]})")->inputs, (std::vector<PromptInput>{std::vector<TokenId>{1, 2}}));
  EXPECT_EQ(refused(parse_embedding(R"({"input": "a", "encoding_format": "hex"})")),
            "encoding_format: 'encoding_format' should be one of 'float', 'base64', but is 'hex'");
  EXPECT_EQ(refused(parse_embedding(R"({"input": "a", "dimensions": 0})")),
            "dimensions: 'dimensions' should be at least 1 and at most 1048576, but is 0");
  EXPECT_EQ(refused(parse_embedding(R"({"input": []})")), "input: 'input' is an empty list");
}

TEST(Embeddings, AnswersAsNumbersAndBase64) {
  const EmbeddingAnswer answer{.model = "m", .vectors = {{1, -0.1f}, {2, 0}}, .tokens = 5};
  expect_json(write_embedding(answer, false), R"({"object": "list", "model": "m", "usage": {"prompt_tokens": 5, "total_tokens": 5},
    "data": [{"object": "embedding", "index": 0, "embedding": [1.0, -0.1]}, {"object": "embedding", "index": 1, "embedding": [2.0, 0.0]}]})");
  const json::Value value = testing::parsed(write_embedding(answer, true));
  EXPECT_EQ(value.at("data").at(0).at("embedding").as_string(), "AACAP83MzL0=");
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of(std::vector<float>{1}), "AACAPw==");
  EXPECT_EQ(base64_of(std::vector<float>{1, 1, 1}), "AACAPwAAgD8AAIA/");
}

TEST(Rerank, RequestsAndAnswers) {
  const auto r = parse_rerank(R"({"model": "m", "query": "q", "documents": ["a", {"text": "b"}], "top_n": 1})");
  ASSERT_TRUE(r.has_value()) << r.error().message;
  EXPECT_EQ(r->documents, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r->top_n, 1);
  const RerankAnswer answer{.id = "7", .model = "m", .results = {{.index = 1, .score = 0.75}}, .tokens = 6};
  expect_json(write_rerank(answer, *r), R"({"id": "rerank-7", "model": "m", "usage": {"prompt_tokens": 6, "total_tokens": 6},
    "results": [{"index": 1, "document": {"text": "b"}, "relevance_score": 0.75}]})");
  const auto bare = parse_rerank(R"({"query": "q", "documents": ["a", "b"], "return_documents": false})");
  expect_json(write_rerank(answer, *bare), R"({"id": "rerank-7", "model": "m", "usage": {"prompt_tokens": 6, "total_tokens": 6},
    "results": [{"index": 1, "relevance_score": 0.75}]})");
  EXPECT_EQ(refused(parse_rerank(R"({"query": "q", "documents": ["a", {"title": "b"}]})")),
            "documents[1].title: 'documents[1].title' is not a field that is known here");
  EXPECT_EQ(refused(parse_rerank(R"({"query": "q", "documents": []})")), "documents: 'documents' is an empty list");
  EXPECT_EQ(refused(parse_rerank(R"({"documents": ["a"]})")), "query: 'query' is missing");
}

TEST(Tokenize, TextsAndChats) {
  const auto text = parse_tokenize(R"({"prompt": "Hi", "add_special_tokens": false, "return_token_strs": true})");
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_FALSE(text->chat);
  EXPECT_EQ(text->text, "Hi");
  EXPECT_FALSE(text->add_special);
  EXPECT_TRUE(text->token_texts);
  EXPECT_TRUE(parse_tokenize(R"({"prompt": "Hi"})")->add_special);

  const auto chat = parse_tokenize(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": false})");
  ASSERT_TRUE(chat.has_value()) << chat.error().message;
  EXPECT_TRUE(chat->chat);
  EXPECT_FALSE(chat->add_special);
  EXPECT_FALSE(chat->conversation.add_generation_prompt);
  EXPECT_EQ(chat->conversation.messages.size(), 1u);
  EXPECT_EQ(chat->model, "m");

  EXPECT_EQ(refused(parse_tokenize("{}")), "prompt: 'prompt' is missing");
  EXPECT_EQ(refused(parse_tokenize(R"({"prompt": "a", "messages": [{"role": "user", "content": "Hi"}]})")),
            "messages: 'messages' cannot be given beside 'prompt'");
  EXPECT_EQ(refused(parse_tokenize(R"({"messages": [{"role": "user", "content": "Hi"}], "temperature": 1})")),
            "temperature: 'temperature' is not a field that is known here");
}

TEST(Tokenize, Answers) {
  const testing::TestTokenizer tokenizer;
  expect_json(write_tokenize({.tokens = {0, 3}, .max_model_len = 99}, &tokenizer),
              R"({"count": 2, "max_model_len": 99, "tokens": [0, 3], "token_strs": ["<s>", "Ġworld"]})");
  expect_json(write_tokenize({.tokens = {}, .max_model_len = 99}, nullptr),
              R"({"count": 0, "max_model_len": 99, "tokens": [], "token_strs": null})");
  EXPECT_EQ(parse_detokenize(R"({"tokens": [0, 3]})")->tokens, (std::vector<TokenId>{0, 3}));
  EXPECT_EQ(refused(parse_detokenize(R"({"tokens": ["a"]})")), "tokens[0]: 'tokens[0]' should be an integer, but is a string");
  expect_json(write_detokenize("Hi \"x\""), R"({"prompt": "Hi \"x\""})");
  expect_json(
      write_render({.model = "m", .prompt = "<s>Hi", .tokens = {0}, .max_model_len = 99}),
      R"({"object": "chat.completion.render", "model": "m", "prompt": "<s>Hi", "token_ids": [0], "count": 1, "max_model_len": 99})");
  const json::Value info = testing::parsed(write_tokenizer_info(tokenizer, "{{ x }}", 99));
  EXPECT_EQ(info.at("bos_token").as_string(), "<s>");
  EXPECT_EQ(info.at("eos_token").as_string(), "</s>");
  EXPECT_EQ(info.at("eos_token_id").as_int64(), 1);
  EXPECT_TRUE(info.at("pad_token").is_null());
  EXPECT_EQ(info.at("chat_template").as_string(), "{{ x }}");
}

TEST(Models, ListsStatesAndAdapters) {
  expect_json(write_models({{.id = "m", .created = 5, .max_model_len = 10, .capabilities = {"chat"}},
                            {.id = "l", .parent = "m", .state = "unloaded"}}),
              R"({"object": "list", "data": [
    {"id": "m", "object": "model", "created": 5, "owned_by": "weir", "root": "m", "parent": null, "max_model_len": 10, "state": "loaded",
     "capabilities": ["chat"]},
    {"id": "l", "object": "model", "created": 0, "owned_by": "weir", "root": "l", "parent": "m", "max_model_len": null,
     "state": "unloaded", "capabilities": []}]})");
  expect_json(write_model_state("m", "loaded"), R"({"model": "m", "state": "loaded"})");
  EXPECT_EQ(parse_model_request(R"({"model": "m"})")->model, "m");
  EXPECT_EQ(refused(parse_model_request(R"({"model": ""})")), "model: 'model' is empty");
  const auto load = parse_load_adapter(R"({"lora_name": "a", "lora_path": "p", "load_inplace": true})");
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->name, "a");
  EXPECT_EQ(load->path, "p");
  EXPECT_TRUE(load->replace);
  EXPECT_EQ(refused(parse_load_adapter(R"({"lora_name": "a"})")), "lora_path: 'lora_path' is missing");
  EXPECT_EQ(parse_unload_adapter(R"({"lora_name": "a", "lora_int_id": 3})")->name, "a");
}

TEST(Operations, HealthAndVersion) {
  expect_json(write_health(true, {}), R"({"status": "ok", "reasons": []})");
  expect_json(write_health(false, {"m: the engine stopped"}), R"({"status": "unavailable", "reasons": ["m: the engine stopped"]})");
  expect_json(write_version("1.2"), R"({"version": "1.2"})");
}

}  // namespace
}  // namespace weir::api
