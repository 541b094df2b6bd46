// SPDX-License-Identifier: Apache-2.0
// /v1/embeddings: texts or ids in, vectors out, as numbers or as base64 of little-endian floats (what OpenAI's own clients ask for).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "api/generation_request.h"

namespace weir::api {

struct EmbeddingRequest {
  std::string_view input_field = "input";  // the dialect's own name of it, for errors found behind the parser
  std::string model;
  std::vector<PromptInput> inputs;
  bool base64 = false;
  std::optional<std::int64_t> dimensions = {};
  std::optional<bool> normalize = {};           // none: as the model's files say
  std::optional<std::string> prompt_name = {};  // one of the model's prompts ("query", "document")
  bool cut = false;                             // what is too long is cut, else it is an error …
  std::optional<std::int64_t> max_tokens = {};  // … to so many tokens; none: to what the model reads
};
ApiResult<EmbeddingRequest> parse_embedding(std::string_view body);

struct EmbeddingAnswer {
  std::string model;
  std::vector<std::vector<float>> vectors;  // in the order of the inputs
  std::int64_t tokens = 0;
};
std::string write_embedding(const EmbeddingAnswer& answer, bool base64);
std::string base64_of(std::span<const float> values);

json::Object embedding_request_schema();
json::Object embedding_response_schema();

}  // namespace weir::api
