// SPDX-License-Identifier: Apache-2.0
#include "api/api_error.h"

namespace weir::api {

ApiError bad_request(std::string param, std::string message, std::string code) {
  return {
      .status = 400, .type = "invalid_request_error", .code = std::move(code), .message = std::move(message), .param = std::move(param)};
}

namespace {

ApiError server_error(int status, std::string code, std::string message) {
  return {.status = status, .type = "server_error", .code = std::move(code), .message = std::move(message)};
}

}  // namespace

ApiError from_error(const Error& error, std::string param) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument: return bad_request(std::move(param), error.message);
    case ErrorCode::kUnsupported: return bad_request(std::move(param), error.message, "unsupported_value");
    case ErrorCode::kNotFound:
      return {.status = 404, .type = "invalid_request_error", .code = "not_found", .message = error.message, .param = std::move(param)};
    case ErrorCode::kExhausted:
      return {.status = 429, .type = "rate_limit_error", .code = "overloaded", .message = error.message, .retry_after_s = 1};
    case ErrorCode::kDeadline: return server_error(504, "timeout", error.message);
    case ErrorCode::kCancelled: {
      ApiError cancelled = server_error(503, "cancelled", error.message);
      cancelled.retry_after_s = 1;
      return cancelled;
    }
    case ErrorCode::kCorrupt:
    case ErrorCode::kIo:
    case ErrorCode::kNetwork:
    case ErrorCode::kInternal: break;
  }
  // What files, addresses or code a fault names is the operator's business: the log has it.
  return server_error(500, "internal_error", "the server could not answer this request because of a fault of its own");
}

json::Object openai_error(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? json::Value(nullptr) : json::Value(text); };
  return {{"error",
           {{"message", error.message},
            {"type", error.type.empty() ? "server_error" : error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

}  // namespace weir::api
