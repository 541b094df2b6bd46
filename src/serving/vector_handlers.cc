// SPDX-License-Identifier: Apache-2.0
// Vectors and ranks: one piece of work for the model's own thread, one document as the answer.
#include <fmt/core.h>

#include <array>

#include "api/embeddings.h"
#include "api/ollama_api.h"
#include "api/rerank.h"
#include "serving/service.h"

namespace weir::serving {
namespace {

api::ApiError too_many() {
  return {
      .status = 429, .type = "rate_limit_error", .code = "overloaded", .message = "too many texts wait for this model", .retry_after_s = 1};
}

// What is wrong with a text that the model cannot read to its end has the code that clients know.
api::ApiError vector_error(const Error& error, std::string_view param) {
  // What else than the texts an error may be about.
  if (error.message.find(" dimensions: ") != std::string::npos) param = "dimensions";
  if (error.message.find("has no prompt \"") != std::string::npos) param = "prompt_name";
  if (error.message.starts_with("query")) param = "query";
  api::ApiError api = api::from_error(error, std::string(param));
  if (api.status == 400 && error.message.find("tokens") != std::string::npos) api.code = "context_length_exceeded";
  return api;
}

struct Job {
  std::shared_ptr<Call> call;
  std::shared_ptr<ModelLease> lease;
  std::unique_ptr<Ticket> ticket;
  Service& service;

  RequestRecord record() const {
    RequestRecord record = call->record();
    record.model = lease->model();
    return record;
  }
  void fail(const api::ApiError& error) const {
    observe(service, *call, record(), error.status, error.code);
    call->fail(error);
  }
  void reply(std::string document, std::int64_t tokens) const {
    RequestRecord done = record();
    done.usage.prompt_tokens = tokens;
    done.finish_reasons = {"stop"};
    if (ticket) ticket->settle(tokens, 0);
    observe(service, *call, std::move(done), 200, {});
    call->reply_json(std::move(document));
  }
};

// The tokens are not counted yet when the caller's limits are asked: a text has about one for each four bytes.
std::int64_t about_tokens(const std::vector<api::PromptInput>& inputs) {
  std::int64_t tokens = 0;
  for (const api::PromptInput& input : inputs) {
    const auto* text = std::get_if<std::string>(&input);
    tokens += static_cast<std::int64_t>(text != nullptr ? text->size() / 4 + 1 : std::get<std::vector<TokenId>>(input).size());
  }
  return tokens;
}

using Write = std::function<std::string(const api::EmbeddingAnswer&)>;

void embed(Service& service, const std::shared_ptr<Call>& call, api::EmbeddingRequest request, Write write) {
  if (static_cast<std::int64_t>(request.inputs.size()) > service.options.max_prompts * 2)
    return call->fail(
        api::bad_request(std::string(request.input_field),
                         fmt::format("{} texts: {} are possible in one request", request.inputs.size(), service.options.max_prompts * 2)));
  const std::string model = request.model;
  auto shared = std::make_shared<api::EmbeddingRequest>(std::move(request));
  service.with_model(call, model, [&service, call, shared, write = std::move(write)](std::shared_ptr<ModelLease> lease) {
    auto job = std::make_shared<Job>(Job{call, lease, nullptr, service});
    auto ticket = service.admit(*call, about_tokens(shared->inputs), 0);
    if (!ticket) return job->fail(ticket.error());
    job->ticket = std::move(*ticket);
    ModelHost::VectorWork work{.dimensions = shared->dimensions,
                               .normalize = shared->normalize,
                               .prompt_name = shared->prompt_name,
                               .max_tokens = shared->max_tokens,
                               .cut = shared->cut};
    for (api::PromptInput& input : shared->inputs) std::visit([&](auto& value) { work.inputs.emplace_back(std::move(value)); }, input);
    work.wanted = [job] { return job->call->responder.gone() == http::Gone::kNo; };
    work.deadline = call->deadline;
    work.done = [job, shared, write](Result<std::vector<engine::Embedding>> vectors) {
      if (!vectors) return job->fail(vector_error(vectors.error(), shared->input_field));
      api::EmbeddingAnswer answer;
      answer.model = shared->model.empty() ? job->lease->model() : shared->model;
      for (engine::Embedding& vector : *vectors) {
        answer.tokens += vector.tokens;
        answer.vectors.push_back(std::move(vector.values));
      }
      job->reply(write(answer), answer.tokens);
    };
    if (!lease->host().embed(std::move(work))) job->fail(too_many());
  });
}

void embedding(Service& service, const std::shared_ptr<Call>& call) {
  auto request = api::parse_embedding(call->request.body);
  if (!request) return call->fail(request.error());
  const bool base64 = request->base64;
  embed(service, call, std::move(*request), [base64](const api::EmbeddingAnswer& answer) { return api::write_embedding(answer, base64); });
}

template <api::ApiResult<api::OllamaEmbedRequest> (*parse)(std::string_view)>
void ollama_embed(Service& service, const std::shared_ptr<Call>& call) {
  auto parsed = parse(call->request.body);
  if (!parsed) return call->fail(parsed.error());
  auto request = std::make_shared<api::OllamaEmbedRequest>(std::move(*parsed));
  api::EmbeddingRequest inner = std::move(request->embedding);
  const TimePoint received = call->request.received;
  embed(service, call, std::move(inner), [request, received](const api::EmbeddingAnswer& answer) {
    return api::ollama_embed_document(*request, answer, steady_clock().now() - received);
  });
}

void rerank(Service& service, const std::shared_ptr<Call>& call) {
  auto parsed = api::parse_rerank(call->request.body);
  if (!parsed) return call->fail(parsed.error());
  auto request = std::make_shared<api::RerankRequest>(std::move(*parsed));
  service.with_model(call, request->model, [&service, call, request](std::shared_ptr<ModelLease> lease) {
    auto job = std::make_shared<Job>(Job{call, lease, nullptr, service});
    std::vector<api::PromptInput> texts(request->documents.begin(), request->documents.end());
    auto ticket = service.admit(*call, about_tokens(texts), 0);
    if (!ticket) return job->fail(ticket.error());
    job->ticket = std::move(*ticket);
    ModelHost::RankWork work{.query = request->query,
                             .documents = request->documents,
                             .top_n = request->top_n,
                             .cut = request->cut,
                             .max_tokens = request->max_tokens,
                             .instruction = request->instruction};
    work.wanted = [job] { return job->call->responder.gone() == http::Gone::kNo; };
    work.deadline = call->deadline;
    work.done = [job, request](Result<std::vector<engine::RankedDocument>> ranked) {
      if (!ranked) return job->fail(vector_error(ranked.error(), "documents"));
      api::RerankAnswer answer;
      answer.id = job->call->id;
      answer.model = request->model.empty() ? job->lease->model() : request->model;
      for (const engine::RankedDocument& document : *ranked) {
        answer.results.push_back({document.index, document.score});
        answer.tokens += document.tokens;
      }
      job->reply(api::write_rerank(answer, *request), answer.tokens);
    };
    if (!lease->host().rank(std::move(work))) job->fail(too_many());
  });
}

constexpr std::array kRows{
    HandlerRow{"embedding", embedding},
    HandlerRow{"rerank", rerank},
    HandlerRow{"ollama_embed", ollama_embed<api::parse_ollama_embed>},
    HandlerRow{"ollama_embeddings", ollama_embed<api::parse_ollama_embeddings>},
};

}  // namespace

std::span<const HandlerRow> vector_handlers() { return kRows; }

}  // namespace weir::serving
