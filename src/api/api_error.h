// SPDX-License-Identifier: Apache-2.0
// What went wrong with a request, as HTTP services say it. Each dialect writes it in its own shape (write_error of its writer).
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/result.h"

namespace weir::api {

struct ApiError {
  int status = 500;
  std::string type = {};     // OpenAI's: "invalid_request_error", "authentication_error", "rate_limit_error", "server_error", …
  std::string code = {};     // one word for programs: "model_not_found", "context_length_exceeded", "unsupported_schema", …
  std::string message = {};  // what, where, what to do next
  std::string param = {};    // the path of the field: "messages[2].content"; empty: none
  double retry_after_s = 0;  // > 0: the Retry-After header
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

// 400, invalid_request_error.
ApiError bad_request(std::string param, std::string message, std::string code = "invalid_value");
// An error of the layers below by its code: kInvalidArgument and kUnsupported → 400, kNotFound → 404, kExhausted → 429,
// kDeadline → 504, kCancelled → 503, the rest → 500 without details of the machine.
ApiError from_error(const Error& error, std::string param = {});

// {"error": {"message", "type", "param", "code"}}
json::Object openai_error(const ApiError& error);

}  // namespace weir::api
