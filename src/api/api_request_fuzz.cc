// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of any request. It may be refused, then with a 400 whose error is JSON of bounded size; what is taken must be
// what the engine accepts too, and its answer, in a stream and as a document, JSON again.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "api/anthropic_messages.h"
#include "api/embeddings.h"
#include "api/models.h"
#include "api/ollama_api.h"
#include "api/openai_chat.h"
#include "api/openai_completions.h"
#include "api/openai_responses.h"
#include "api/rerank.h"
#include "api/test_tokenizer.h"
#include "api/tokenize.h"

namespace {

using namespace weir;  // NOLINT: a program of one file

void expect(bool good) {
  if (!good) std::abort();
}

bool is_json(std::string_view text) { return json::parse(text, "an answer", {.max_depth = 200}).has_value(); }

template <class T>
bool accepted(const api::ApiResult<T>& result) {
  if (result) return true;
  const api::ApiError& error = result.error();
  expect(error.status == 400 || error.status == 404);  // 404: a previous response
  expect(!error.message.empty() && !error.type.empty());
  const std::string document = boost::json::serialize(api::openai_error(error));
  expect(is_json(document) && document.size() < 8192);
  return false;
}

std::vector<api::ChoiceDelta> answer() {
  api::ChoiceDelta first, second;
  first.text = "Hel";
  first.parsed = {.content = "Hel", .reasoning = "Hm"};
  first.tokens = {2};
  first.logprobs = {{.token = {2, -1}, .rank = 1, .top = {{2, -1}}}};
  first.prompt_logprobs = first.logprobs;
  second.text = "lo\xff";
  second.parsed.tool_calls = {{.index = 0, .id = "c", .name = "f", .arguments = "{}"}};
  second.tokens = {3, 1};
  second.logprobs = {first.logprobs[0], first.logprobs[0]};
  second.end = api::ChoiceEnd{.ending = api::Ending::kToolCalls};
  return {first, second};
}

void run_writer(api::ResponseWriter& writer, const api::GenerationRequest& request) {
  const api::Sink sink = [](std::string_view data, std::string_view) { expect(data == "[DONE]" || is_json(data)); };
  static const auto tokenizer = std::make_shared<api::testing::TestTokenizer>();
  writer.begin({.id = "7", .model = request.model, .tokenizer = tokenizer, .prompts = {{.tokens = {0, 2}, .text = "Hello"}}}, sink);
  for (const api::ChoiceDelta& delta : answer()) writer.add(delta, sink);
  writer.end({.prompt_tokens = 2, .completion_tokens = 3}, {}, sink);
  if (!request.stream) expect(is_json(writer.document()));
}

void check(const api::GenerationRequest& request) {
  expect(sampling::validate(request.options.sampling).has_value());
  expect(request.options.answers >= 1 && request.options.answers <= engine::kMaxAnswers);
  expect(request.options.max_tokens >= 0 && request.options.min_tokens >= 0 && request.options.prompt_logprobs <= 1000);
  expect(request.chat ? !request.messages.empty() || !request.prompts.empty() : !request.prompts.empty());
}

// Parses and, when it is taken, answers.
template <class Parse, class Make>
void try_text(std::string_view body, Parse parse, Make make_writer) {
  auto request = parse(body);
  if (!accepted(request)) return;
  check(*request);
  run_writer(*make_writer(*request), *request);
}

void try_responses(std::string_view body) {
  const api::ResponsesState state{.store = nullptr, .tenant = "t"};
  auto request = api::parse_response_request(body, state);
  if (!accepted(request)) return;
  check(request->generation);
  run_writer(*api::make_responses_writer(*request, state), request->generation);
}

void try_ollama(std::string_view body) {
  for (const auto parse : {api::parse_ollama_chat, api::parse_ollama_generate}) {
    auto request = parse(body);
    if (!accepted(request) || request->purpose != api::OllamaRequest::Purpose::kAnswer) continue;
    check(request->generation);
    run_writer(*api::make_ollama_writer(*request), request->generation);
  }
  accepted(api::parse_ollama_embed(body));
  accepted(api::parse_ollama_embeddings(body));
  accepted(api::parse_ollama_show(body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 1u << 16) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  try_text(body, api::parse_chat_completion, api::make_chat_writer);
  try_text(body, api::parse_completion, api::make_completion_writer);
  try_text(body, api::parse_anthropic_message, api::make_anthropic_writer);
  accepted(api::parse_anthropic_count(body));
  try_responses(body);
  try_ollama(body);
  accepted(api::parse_embedding(body));
  accepted(api::parse_rerank(body));
  accepted(api::parse_tokenize(body));
  accepted(api::parse_detokenize(body));
  accepted(api::parse_model_request(body));
  accepted(api::parse_load_adapter(body));
  accepted(api::parse_unload_adapter(body));
  return 0;
}
