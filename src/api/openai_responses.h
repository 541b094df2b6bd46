// SPDX-License-Identifier: Apache-2.0
// OpenAI's /v1/responses: a conversation as typed items, answers that can be kept and gone on from (response_store.h), and a stream of
// typed, numbered events. Tools that OpenAI's servers would run themselves (web search, files, …) are refused by name.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "api/endpoints.h"
#include "api/generation_request.h"
#include "api/response_store.h"
#include "api/response_writer.h"

namespace weir::api {

// Where a request finds earlier responses and its own is kept; without a store nothing is kept.
struct ResponsesState {
  std::shared_ptr<ResponseStore> store = {};
  std::string tenant = {};
};

struct ResponsesRequest {
  GenerationRequest generation = {};  // echo_fields: what the response object repeats of the request
  bool store = true;
  bool summary = false;                  // reasoning is given as summary, since the client asked for one
  json::Array input = {};                // this request's own items, checked
  std::vector<StoredItem> context = {};  // items of the responses before it
};

// previous_response_id is looked up at once: "previous_response_not_found" when the tenant has none such.
ApiResult<ResponsesRequest> parse_response_request(std::string_view body, const ResponsesState& state);
// Keeps the response when it ends, if the request says so. `request.generation` may have been moved from, but for its echo_fields and
// flags: only those are read, and only here.
std::unique_ptr<ResponseWriter> make_responses_writer(const ResponsesRequest& request, ResponsesState state);

// GET /v1/responses/{id}: the document. `stream` is the query parameter: a kept response cannot be streamed again.
ApiResult<std::string> stored_response(const ResponsesState& state, std::string_view id, std::string_view stream = {});
// DELETE /v1/responses/{id}
ApiResult<std::string> delete_stored_response(const ResponsesState& state, std::string_view id);
// POST /v1/responses/{id}/cancel: 404, or 400 since only background responses, which there are none of, can be cancelled.
ApiError cancel_stored_response(const ResponsesState& state, std::string_view id);
// GET /v1/responses/{id}/input_items with its query parameters.
struct InputItemsQuery {
  std::optional<std::string> limit = {}, order = {}, after = {};
};
ApiResult<std::string> stored_input_items(const ResponsesState& state, std::string_view id, const InputItemsQuery& query);

std::span<const Endpoint> responses_endpoints();

}  // namespace weir::api
