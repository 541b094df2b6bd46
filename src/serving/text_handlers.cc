// SPDX-License-Identifier: Apache-2.0
// Requests for text: a dialect's parser and writer around the one session that serves them all.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "api/openai_chat.h"
#include "serving/service.h"

namespace weir::serving {
namespace {

struct Work {
  std::shared_ptr<Call> call;
  api::GenerationRequest request;
  std::unique_ptr<api::ResponseWriter> writer;

  void fail(const api::ApiError& error) const { call->fail(error); }
};

// What the server has a say in.
void apply_caller(const Service& service, const Call& call, engine::CompletionRequest& options) {
  (void)service;
  options.tenant = call.caller.tenant;
  options.priority = std::min(options.priority, call.caller.max_priority);
}

std::int64_t most_tokens(const api::GenerationRequest& request, const std::vector<api::AnswerContext::Prompt>& prompts,
                         std::int64_t context) {
  std::int64_t most = 0;
  const std::int64_t answers = std::max(request.options.answers, request.best_of);
  for (const auto& prompt : prompts) {
    const std::int64_t room = context - static_cast<std::int64_t>(prompt.tokens.size());
    most += answers * (request.options.max_tokens > 0 ? request.options.max_tokens : std::max<std::int64_t>(room, 0));
  }
  return request.options.prompt_only ? 0 : most;
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
  work.fail(error);
}

void run(Service& service, const std::shared_ptr<Work>& work, std::shared_ptr<ModelLease> lease) {
  ModelHost& host = lease->host();
  if (host.service() == nullptr)
    return refuse(service, *work, *lease,
                  api::bad_request("model", fmt::format("The model `{}` makes vectors or scores and generates no text", lease->model()),
                                   "unsupported_model"));
  apply_caller(service, *work->call, work->request.options);
  auto prompts = host.prepare(work->request);
  if (!prompts) return refuse(service, *work, *lease, prompts.error());
  std::int64_t prompt_tokens = 0;
  for (const auto& prompt : *prompts) prompt_tokens += static_cast<std::int64_t>(prompt.tokens.size());
  auto ticket = service.access->admit(work->call->caller, prompt_tokens, most_tokens(work->request, *prompts, host.context()));
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

// From a parsed request on, whatever its dialect.
void generate(Service& service, const std::shared_ptr<Call>& call, api::ApiResult<api::GenerationRequest> parsed,
              std::unique_ptr<api::ResponseWriter> (*make_writer)(const api::GenerationRequest&)) {
  if (!parsed) {
    observe(service, *call, call->record(), parsed.error().status, parsed.error().code);
    return call->fail(parsed.error());
  }
  if (static_cast<std::int64_t>(parsed->prompts.size()) > service.options.max_prompts)
    return call->fail(api::bad_request(
        "prompt", fmt::format("{} prompts: {} are possible in one request", parsed->prompts.size(), service.options.max_prompts)));
  auto work = std::make_shared<Work>(Work{call, std::move(*parsed), nullptr});
  work->writer = make_writer(work->request);
  const std::string model = work->request.model;
  service.with_model(call, model, [&service, work](std::shared_ptr<ModelLease> lease) { run(service, work, std::move(lease)); });
}

void chat_completion(Service& service, const std::shared_ptr<Call>& call) {
  generate(service, call, api::parse_chat_completion(call->request.body), api::make_chat_writer);
}

constexpr std::array kRows{HandlerRow{"chat_completion", chat_completion}};

}  // namespace

std::span<const HandlerRow> text_handlers() { return kRows; }

}  // namespace weir::serving
