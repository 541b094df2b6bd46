// SPDX-License-Identifier: Apache-2.0
#include "serving/call.h"

#include <fmt/core.h>

#include <cmath>
#include <random>

#include "api/anthropic_messages.h"
#include "api/ollama_api.h"
#include "base/json.h"

namespace weir::serving {

std::string error_document(std::string_view schema, const api::ApiError& error) {
  if (schema == "AnthropicError") return api::anthropic_error_document(error);
  if (schema == "OllamaError") return api::ollama_error_document(error);
  return boost::json::serialize(api::openai_error(error));
}

std::string new_id() {
  thread_local std::mt19937_64 random([] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }());
  return fmt::format("{:016x}{:08x}", random(), static_cast<std::uint32_t>(random()));
}

std::string Call::error_document(const api::ApiError& error) const { return serving::error_document(endpoint.error.name, error); }

void Call::fail(const api::ApiError& error) const {
  http::Response response = http::Response::json(error.status, error_document(error));
  if (error.retry_after_s > 0) response.headers.set("Retry-After", fmt::format("{:.0f}", std::ceil(error.retry_after_s)));
  if (error.status == 401) response.headers.set("WWW-Authenticate", "Bearer");
  reply(std::move(response));
}

void Call::reply(http::Response response) const {
  for (const auto& [name, value] : headers) response.headers.set(name, value);
  responder.respond(std::move(response));
}

RequestRecord Call::record() const {
  RequestRecord record;
  record.http_id = request.id;
  record.id = id;
  record.endpoint = endpoint.path;
  record.caller = caller.name;
  record.tenant = caller.tenant;
  record.traceparent = request.header("traceparent");
  record.received = request.received;
  return record;
}

}  // namespace weir::serving
