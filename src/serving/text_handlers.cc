// SPDX-License-Identifier: Apache-2.0
// Requests for text: each dialect's parser and writer around the one session that serves them all.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "api/anthropic_messages.h"
#include "api/ollama_api.h"
#include "api/openai_chat.h"
#include "api/openai_completions.h"
#include "api/openai_responses.h"
#include "api/response_store.h"
#include "serving/service.h"

namespace weir::serving {
namespace {

struct Work {
  std::shared_ptr<Call> call;
  api::GenerationRequest request;
  std::unique_ptr<api::ResponseWriter> writer;
};

std::int64_t most_tokens(const api::GenerationRequest& request, const std::vector<api::AnswerContext::Prompt>& prompts,
                         std::int64_t context) {
  if (request.options.prompt_only) return 0;
  std::int64_t most = 0;
  const std::int64_t answers = std::max(request.options.answers, request.best_of);
  for (const auto& prompt : prompts) {
    const std::int64_t room = context - static_cast<std::int64_t>(prompt.tokens.size());
    most += answers * (request.options.max_tokens > 0 ? request.options.max_tokens : std::max<std::int64_t>(room, 0));
  }
  return most;
}

RequestRecord record_of(const Work& work, const ModelLease& lease) {
  RequestRecord record = work.call->record();
  record.model = lease.model();
  record.adapter = lease.adapter();
  record.streamed = work.request.stream;
  record.max_tokens = work.request.options.max_tokens;
  record.temperature = work.request.options.sampling.temperature;
  record.top_p = work.request.options.sampling.top_p;
  return record;
}

void refuse(Service& service, const Work& work, const ModelLease& lease, const api::ApiError& error) {
  observe(service, *work.call, record_of(work, lease), error.status, error.code);
  work.call->fail(error);
}

// The model is at hand: prompts, limits, then the session has it.
void run(Service& service, const std::shared_ptr<Work>& work, std::shared_ptr<ModelLease> lease) {
  ModelHost& host = lease->host();
  if (host.service() == nullptr)
    return refuse(service, *work, *lease,
                  api::bad_request("model", fmt::format("The model `{}` makes vectors or scores and generates no text", lease->model()),
                                   "unsupported_model"));
  engine::CompletionRequest& options = work->request.options;
  options.tenant = work->call->caller.tenant;
  options.priority = std::min(options.priority, work->call->caller.max_priority);
  auto prompts = host.prepare(work->request);
  if (!prompts) return refuse(service, *work, *lease, prompts.error());
  std::int64_t prompt_tokens = 0;
  for (const auto& prompt : *prompts) prompt_tokens += static_cast<std::int64_t>(prompt.tokens.size());
  auto ticket = service.admit(*work->call, prompt_tokens, most_tokens(work->request, *prompts, host.context()));
  if (!ticket) return refuse(service, *work, *lease, ticket.error());
  RequestRecord record = record_of(*work, *lease);
  SessionRequest request{.lease = std::move(lease),
                         .responder = work->call->responder,
                         .request = std::move(work->request),
                         .writer = std::move(work->writer),
                         .prompts = std::move(*prompts),
                         .ticket = std::move(*ticket),
                         .record = std::move(record),
                         .headers = work->call->headers,
                         .deadline = work->call->deadline};
  std::make_shared<GenerationSession>(std::move(request), service.settings, service.pump, service.parts.observer.get(), service.sessions)
      ->start();
}

void refuse_parsed(Service& service, const Call& call, const api::ApiError& error) {
  observe(service, call, call.record(), error.status, error.code);
  call.fail(error);
}

void generate(Service& service, const std::shared_ptr<Call>& call, api::GenerationRequest request,
              std::unique_ptr<api::ResponseWriter> writer) {
  if (static_cast<std::int64_t>(request.prompts.size()) > service.options.max_prompts)
    return refuse_parsed(service, *call,
                         api::bad_request("prompt", fmt::format("{} prompts: {} are possible in one request", request.prompts.size(),
                                                                service.options.max_prompts)));
  const std::string model = request.model;
  auto work = std::make_shared<Work>(Work{call, std::move(request), std::move(writer)});
  service.with_model(call, model, [&service, work](std::shared_ptr<ModelLease> lease) { run(service, work, std::move(lease)); });
}

// Dialects whose parser gives the common request.
using Parse = api::ApiResult<api::GenerationRequest> (*)(std::string_view);
using MakeWriter = std::unique_ptr<api::ResponseWriter> (*)(const api::GenerationRequest&);
template <Parse parse, MakeWriter make_writer>
void plain(Service& service, const std::shared_ptr<Call>& call) {
  auto request = parse(call->request.body);
  if (!request) return refuse_parsed(service, *call, request.error());
  auto writer = make_writer(*request);
  generate(service, call, std::move(*request), std::move(writer));
}

api::ResponsesState responses_state(const Service& service, const Call& call) {
  return {.store = service.responses, .tenant = call.caller.tenant};
}

void responses(Service& service, const std::shared_ptr<Call>& call) {
  auto request = api::parse_response_request(call->request.body, responses_state(service, *call));
  if (!request) return refuse_parsed(service, *call, request.error());
  auto writer = api::make_responses_writer(*request, responses_state(service, *call));
  generate(service, call, std::move(request->generation), std::move(writer));
}

void reply(const Call& call, api::ApiResult<std::string> document) {
  if (!document) return call.fail(document.error());
  call.reply_json(std::move(*document));
}

void response(Service& service, const std::shared_ptr<Call>& call) {
  reply(*call, api::stored_response(responses_state(service, *call), call->request.parameter("response_id")));
}

void response_delete(Service& service, const std::shared_ptr<Call>& call) {
  reply(*call, api::delete_stored_response(responses_state(service, *call), call->request.parameter("response_id")));
}

void response_cancel(Service& service, const std::shared_ptr<Call>& call) {
  call->fail(api::cancel_stored_response(responses_state(service, *call), call->request.parameter("response_id")));
}

void response_input_items(Service& service, const std::shared_ptr<Call>& call) {
  const http::Request& r = call->request;
  const api::InputItemsQuery query{
      .limit = r.query_parameter("limit"), .order = r.query_parameter("order"), .after = r.query_parameter("after")};
  reply(*call, api::stored_input_items(responses_state(service, *call), r.parameter("response_id"), query));
}

// A wish to have the model in memory or out of it, which Ollama's clients express by an empty request.
void ollama_load(Service& service, const std::shared_ptr<Call>& call, const api::OllamaRequest& request) {
  const std::string document = api::ollama_load_document(request, std::time(nullptr));
  service.with_model(call, request.generation.model, [call, document](const std::shared_ptr<ModelLease>&) { call->reply_json(document); });
}

template <api::ApiResult<api::OllamaRequest> (*parse)(std::string_view)>
void ollama(Service& service, const std::shared_ptr<Call>& call) {
  auto request = parse(call->request.body);
  if (!request) return refuse_parsed(service, *call, request.error());
  if (request->purpose == api::OllamaRequest::Purpose::kAnswer) {
    auto writer = api::make_ollama_writer(*request);
    return generate(service, call, std::move(request->generation), std::move(writer));
  }
  // Unloading is the operator's business: others' requests may need the model.
  if (request->purpose == api::OllamaRequest::Purpose::kLoad || !call->caller.admin) return ollama_load(service, call, *request);
  const auto target = service.registry->find(request->generation.model);
  const std::string name = target ? target->model : request->generation.model;
  const std::string document = api::ollama_load_document(*request, std::time(nullptr));
  service.registry->unload(name, std::chrono::seconds(5), [call, document](api::ApiResult<void> done) {
    if (!done && done.error().status == 404) return call->fail(done.error());
    call->reply_json(document);  // a model in use stays, as with Ollama
  });
}

void anthropic_count_tokens(Service& service, const std::shared_ptr<Call>& call) {
  auto parsed = api::parse_anthropic_count(call->request.body);
  if (!parsed) return refuse_parsed(service, *call, parsed.error());
  auto request = std::make_shared<api::GenerationRequest>(std::move(*parsed));
  service.with_model(call, request->model, [call, request](const std::shared_ptr<ModelLease>& lease) {
    auto prompts = lease->host().prepare(*request, true);
    if (!prompts) return call->fail(prompts.error());
    call->reply_json(api::anthropic_count_document(static_cast<std::int64_t>(prompts->front().tokens.size())));
  });
}

constexpr std::array kRows{
    HandlerRow{"chat_completion", plain<api::parse_chat_completion, api::make_chat_writer>},
    HandlerRow{"completion", plain<api::parse_completion, api::make_completion_writer>},
    HandlerRow{"anthropic_messages", plain<api::parse_anthropic_message, api::make_anthropic_writer>},
    HandlerRow{"anthropic_count_tokens", anthropic_count_tokens},
    HandlerRow{"responses", responses},
    HandlerRow{"response", response},
    HandlerRow{"response_delete", response_delete},
    HandlerRow{"response_cancel", response_cancel},
    HandlerRow{"response_input_items", response_input_items},
    HandlerRow{"ollama_chat", ollama<api::parse_ollama_chat>},
    HandlerRow{"ollama_generate", ollama<api::parse_ollama_generate>},
};

}  // namespace

std::span<const HandlerRow> text_handlers() { return kRows; }

}  // namespace weir::serving
