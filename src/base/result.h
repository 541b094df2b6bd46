// SPDX-License-Identifier: Apache-2.0
// Errors as values. Every boundary with the outside (files, requests, peers) returns Result<T>; the message says
// what failed, where, and what to do next, so that it can be shown to a user as it is.
#pragma once

#include <fmt/core.h>

#include <expected>
#include <string>
#include <utility>

namespace weir {

enum class ErrorCode {
  kInvalidArgument,  // the caller asked for something that makes no sense
  kNotFound,         // a file, model or name that does not exist
  kCorrupt,          // data from outside that breaks its format
  kUnsupported,      // well formed, but not something this build can do
  kIo,               // the operating system refused
  kNetwork,          // a transfer failed
  kExhausted,        // memory, disk, blocks or a quota ran out
  kCancelled,        // the user or the peer gave up
  kDeadline,         // a wait ended without an answer
  kInternal,         // a fault of our own that was contained
};

// The code's name in snake_case, as it appears in JSON output: "invalid_argument", "not_found", …
const char* error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // The same error with "context: " put before its message.
  Error with_context(const std::string& context) && {
    message = context + ": " + message;
    return std::move(*this);
  }
};

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

// Builds the error branch of any Result: `return fail(ErrorCode::kCorrupt, "{}: bad magic", path);`
template <class... Args>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::vformat(format, fmt::make_format_args(args...))});
}

}  // namespace weir

#define WEIR_CONCAT_(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_(a, b)

// Returns the error of a Status or Result expression from the enclosing function; drops its value.
#define WEIR_TRY(expression)                                                \
  do {                                                                      \
    if (auto weir_try_status = (expression); !weir_try_status) [[unlikely]] \
      return std::unexpected(std::move(weir_try_status).error());           \
  } while (false)

// `WEIR_ASSIGN(auto file, open(path));` declares or assigns the value, or returns the error.
#define WEIR_ASSIGN(target, expression) WEIR_ASSIGN_(WEIR_CONCAT(weir_assign_, __LINE__), target, expression)
#define WEIR_ASSIGN_(temporary, target, expression)       \
  auto temporary = (expression);                          \
  if (!temporary) [[unlikely]]                            \
    return std::unexpected(std::move(temporary).error()); \
  target = std::move(*temporary)
