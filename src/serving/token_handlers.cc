// SPDX-License-Identifier: Apache-2.0
// A model's tokenizer and template over HTTP: nothing is computed by the model.
#include <array>

#include "api/openai_chat.h"
#include "api/tokenize.h"
#include "serving/service.h"

namespace weir::serving {
namespace {

// The tokenizer of a model that the request may name in its query.
void with_tokenizer(Service& service, const std::shared_ptr<Call>& call, const std::string& model,
                    std::function<void(const ModelHost&, const tokenizer::Tokenizer&)> then) {
  service.with_model(call, model, [call, then = std::move(then)](const std::shared_ptr<ModelLease>& lease) {
    const auto& tokenizer = lease->host().loaded().tokenizer;
    if (!tokenizer) return call->fail(api::bad_request("model", lease->host().loaded().tokenizer_error, "unsupported_model"));
    then(lease->host(), *tokenizer);
  });
}

// What the model can read at once, whether it generates or not.
std::int64_t length_of(const ModelHost& host) { return host.context() > 0 ? host.context() : host.loaded().model->traits().max_context; }

void tokenize(Service& service, const std::shared_ptr<Call>& call) {
  auto parsed = api::parse_tokenize(call->request.body);
  if (!parsed) return call->fail(parsed.error());
  auto request = std::make_shared<api::TokenizeRequest>(std::move(*parsed));
  with_tokenizer(service, call, request->model, [call, request](const ModelHost& host, const tokenizer::Tokenizer& tokenizer) {
    api::TokenizeAnswer answer;
    answer.max_model_len = length_of(host);
    if (request->chat) {
      auto prompts = host.prepare(request->conversation, true);
      if (!prompts) return call->fail(prompts.error());
      answer.tokens = std::move(prompts->front().tokens);
    } else {
      answer.tokens = tokenizer.encode(request->text, {.add_special = request->add_special, .parse_special = true});
    }
    call->reply_json(api::write_tokenize(answer, request->token_texts ? &tokenizer : nullptr));
  });
}

void detokenize(Service& service, const std::shared_ptr<Call>& call) {
  auto parsed = api::parse_detokenize(call->request.body);
  if (!parsed) return call->fail(parsed.error());
  auto request = std::make_shared<api::DetokenizeRequest>(std::move(*parsed));
  with_tokenizer(service, call, request->model, [call, request](const ModelHost&, const tokenizer::Tokenizer& tokenizer) {
    call->reply_json(api::write_detokenize(tokenizer.decode(request->tokens, true)));
  });
}

void tokenizer_info(Service& service, const std::shared_ptr<Call>& call) {
  std::string model = call->request.query_parameter("model").value_or("");
  if (model.empty() && !service.options.models.empty()) model = service.options.models.front().name;
  with_tokenizer(service, call, model, [call](const ModelHost& host, const tokenizer::Tokenizer& tokenizer) {
    call->reply_json(api::write_tokenizer_info(tokenizer, tokenizer.chat_template.value_or(""), length_of(host)));
  });
}

void render(Service& service, const std::shared_ptr<Call>& call) {
  auto parsed = api::parse_chat_completion(call->request.body);
  if (!parsed) return call->fail(parsed.error());
  auto request = std::make_shared<api::GenerationRequest>(std::move(*parsed));
  with_tokenizer(service, call, request->model, [call, request](const ModelHost& host, const tokenizer::Tokenizer&) {
    auto prompts = host.prepare(*request, true);
    if (!prompts) return call->fail(prompts.error());
    call->reply_json(api::write_render({.model = request->model.empty() ? host.spec().name : request->model,
                                        .prompt = std::move(prompts->front().text),
                                        .tokens = std::move(prompts->front().tokens),
                                        .max_model_len = length_of(host)}));
  });
}

constexpr std::array kRows{HandlerRow{"tokenize", tokenize}, HandlerRow{"detokenize", detokenize},
                           HandlerRow{"tokenizer_info", tokenizer_info}, HandlerRow{"render", render}};

}  // namespace

std::span<const HandlerRow> token_handlers() { return kRows; }

}  // namespace weir::serving
