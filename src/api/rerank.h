// SPDX-License-Identifier: Apache-2.0
// /v1/rerank as Cohere, Jina and vLLM have it: a query and documents in, the documents by relevance out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"

namespace weir::api {

struct RerankRequest {
  std::string model;
  std::string query;
  std::vector<std::string> documents;
  std::int64_t top_n = 0;        // 0 = all
  bool return_documents = true;  // as vLLM and Jina
  bool cut = false;              // what is too long is cut, else it is an error
  std::optional<std::int64_t> max_tokens = {};
  std::optional<std::string> instruction = {};
};
ApiResult<RerankRequest> parse_rerank(std::string_view body);

struct RerankAnswer {
  struct Result {
    std::size_t index = 0;  // among the request's documents
    double score = 0;
  };
  std::string id, model;
  std::vector<Result> results;  // the best first
  std::int64_t tokens = 0;
};
std::string write_rerank(const RerankAnswer& answer, const RerankRequest& request);

json::Object rerank_request_schema();
json::Object rerank_response_schema();

}  // namespace weir::api
