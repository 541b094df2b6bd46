// SPDX-License-Identifier: Apache-2.0
// All that the server answers, as one table: serving makes its routes from it, and openapi.h the document that describes them, so
// that the two cannot disagree. Each dialect gives its rows (openai_endpoints() below, anthropic_endpoints(), …).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::api {

enum class Access {
  kOpen,  // nobody is asked for a key: health, version
  kKey,   // any key, when the server has keys
  kAdmin  // a key that may operate the server
};

// A schema of the document's components, by name; equal names are one schema.
struct NamedSchema {
  std::string_view name = {};
  json::Object (*make)() = nullptr;
  explicit operator bool() const { return make != nullptr; }
};

json::Object openai_error_schema();

struct Endpoint {
  std::string_view method;     // "POST"
  std::string_view path;       // as http::Route has it: "/v1/models/{model*}"
  std::string_view operation;  // unique, the document's operationId: "createChatCompletion"
  std::string_view handler;    // what serving looks up; rows of one handler are the same under several paths
  std::string_view tag;
  std::string_view summary;
  Access access = Access::kKey;
  bool uses_model = false;    // waits in queues, needs a model: 404, 429, 503 and 504 may come
  NamedSchema request = {};   // the body, JSON; none: there is no body
  NamedSchema response = {};  // of status 200; none: plain text
  std::string_view response_media = "application/json";
  std::string_view stream_media = {};  // what a request for a stream gets: "text/event-stream", "application/x-ndjson"; none: no streams
  NamedSchema error = {"Error", openai_error_schema};
  std::span<const int> more_errors = {};  // statuses beside those that follow from the rest
  std::string_view description = {};
};

// The rows of all dialects, in the document's order.
std::span<const Endpoint> all_endpoints();
std::span<const Endpoint> openai_endpoints();
std::span<const Endpoint> operation_endpoints();  // health, metrics, models, adapters

// Statuses other than 200 that the endpoint may answer with, ascending.
std::vector<int> error_statuses(const Endpoint& endpoint);

}  // namespace weir::api
