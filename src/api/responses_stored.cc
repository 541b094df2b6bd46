// SPDX-License-Identifier: Apache-2.0
// What can be asked about responses that are kept, and the rows of all of /v1/responses in the table of endpoints.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ranges>

#include "api/json_text.h"
#include "api/openai_responses.h"
#include "api/responses_schemas.h"
#include "api/translation.h"

namespace weir::api {
namespace {

constexpr std::size_t kDefaultLimit = 20, kMaxLimit = 100;

ApiError no_such_response(std::string_view id) {
  return {.status = 404,
          .type = "invalid_request_error",
          .code = "response_not_found",
          .message = fmt::format("no response '{}' is kept here: it was not stored, was deleted or is too old", shown_word(id)),
          .param = "response_id"};
}

ApiResult<std::shared_ptr<const StoredResponse>> find(const ResponsesState& state, std::string_view id) {
  auto response = state.store ? state.store->get(state.tenant, id) : nullptr;
  if (!response) return std::unexpected(no_such_response(id));
  return response;
}

ApiResult<std::size_t> read_limit(const std::optional<std::string>& text) {
  if (!text) return kDefaultLimit;
  std::size_t limit = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, limit);
  if (error != std::errc() || stop != end || limit < 1 || limit > kMaxLimit)
    return std::unexpected(bad_request("limit", fmt::format("'limit' should be an integer from 1 to {}", kMaxLimit), "out_of_range"));
  return limit;
}

std::string id_of(const StoredItem& item) {
  const auto value = json::parse(*item, "a stored item");
  const json::Value* id = value && value->is_object() ? json::find(value->get_object(), "id") : nullptr;
  return id && id->is_string() ? std::string(id->get_string()) : std::string();
}

}  // namespace

ApiResult<std::string> stored_response(const ResponsesState& state, std::string_view id, std::string_view stream) {
  if (stream == "true" || stream == "1")
    return std::unexpected(
        bad_request("stream", "'stream' is not supported: a response that is kept comes whole", "unsupported_parameter"));
  WEIR_ASSIGN(const auto response, find(state, id));
  return response->document;
}

ApiResult<std::string> delete_stored_response(const ResponsesState& state, std::string_view id) {
  if (!state.store || !state.store->remove(state.tenant, id)) return std::unexpected(no_such_response(id));
  return JsonText().open_object().member("id", id).member("object", "response").member("deleted", true).close_object().take();
}

ApiError cancel_stored_response(const ResponsesState& state, std::string_view id) {
  if (const auto response = find(state, id); !response) return response.error();
  return bad_request("response_id", "only responses made in the background can be cancelled; to stop this kind, close its connection",
                     "not_cancellable");
}

ApiResult<std::string> stored_input_items(const ResponsesState& state, std::string_view id, const InputItemsQuery& query) {
  WEIR_ASSIGN(const std::size_t limit, read_limit(query.limit));
  if (query.order && *query.order != "asc" && *query.order != "desc")
    return std::unexpected(bad_request("order", "'order' should be 'asc' or 'desc'"));
  WEIR_ASSIGN(const auto response, find(state, id));

  std::vector<StoredItem> items = response->input;
  if (query.order != "asc") std::ranges::reverse(items);
  auto from = items.begin();
  if (query.after && !query.after->empty()) {
    from = std::ranges::find(items, *query.after, id_of);
    if (from == items.end()) return std::unexpected(bad_request("after", "'after' names none of this response's input items"));
    ++from;
  }
  const auto to = from + static_cast<std::ptrdiff_t>(std::min(limit, static_cast<std::size_t>(items.end() - from)));
  JsonText out;
  out.open_object().member("object", "list").key("data").open_array();
  for (auto item = from; item != to; ++item) out.raw(**item);
  out.close_array().key("first_id");
  from == to ? out.null() : out.text(id_of(*from));
  out.key("last_id");
  from == to ? out.null() : out.text(id_of(*(to - 1)));
  return out.member("has_more", to != items.end()).close_object().take();
}

std::span<const Endpoint> responses_endpoints() {
  static constexpr int kNotFound[] = {404};
  static constexpr int kNotFoundOrBad[] = {400, 404};
  static const Endpoint rows[] = {
      {.method = "POST",
       .path = "/v1/responses",
       .operation = "createResponse",
       .handler = "responses",
       .tag = "Responses",
       .summary = "An answer to a conversation of items, which may go on from an earlier response",
       .uses_model = true,
       .request = {"ResponseRequest", responses_request_schema},
       .response = {"Response", response_schema},
       .stream_media = "text/event-stream"},
      {.method = "GET",
       .path = "/v1/responses/{response_id}",
       .operation = "getResponse",
       .handler = "response",
       .tag = "Responses",
       .summary = "A response that is kept",
       .response = {"Response", response_schema},
       .more_errors = kNotFound},
      {.method = "DELETE",
       .path = "/v1/responses/{response_id}",
       .operation = "deleteResponse",
       .handler = "response_delete",
       .tag = "Responses",
       .summary = "Forgets a response",
       .response = {"DeletedResponse", deleted_response_schema},
       .more_errors = kNotFound},
      {.method = "GET",
       .path = "/v1/responses/{response_id}/input_items",
       .operation = "listResponseInputItems",
       .handler = "response_input_items",
       .tag = "Responses",
       .summary = "What a kept response was the answer to; query: limit (1 to 100), order (asc, desc), after",
       .response = {"ResponseInputItems", input_items_schema},
       .more_errors = kNotFoundOrBad},
      {.method = "POST",
       .path = "/v1/responses/{response_id}/cancel",
       .operation = "cancelResponse",
       .handler = "response_cancel",
       .tag = "Responses",
       .summary = "Always an error: there are no background responses; close the connection of one that runs",
       .response = {"Response", response_schema},
       .more_errors = kNotFoundOrBad},
  };
  return rows;
}

}  // namespace weir::api
