// SPDX-License-Identifier: Apache-2.0
// For this folder's sources only: handles and texts of the Rust library as owned values, its codes as errors.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "weir_grammar.h"

namespace weir::grammar {

template <auto kFree>
struct FreeWith {
  void operator()(auto* handle) const { kFree(handle); }
};
using GrammarHandle = std::unique_ptr<weir_grammar, FreeWith<weir_grammar_free>>;
using MatcherHandle = std::unique_ptr<weir_matcher, FreeWith<weir_matcher_free>>;

// Where the library puts its message.
struct NativeError {
  weir_text text{nullptr, 0};
  NativeError() = default;
  NativeError(const NativeError&) = delete;
  NativeError& operator=(const NativeError&) = delete;
  ~NativeError() { weir_text_free(text); }

  std::unexpected<Error> as_error(weir_text_code code) const {
    ErrorCode result = ErrorCode::kInvalidArgument;
    if (code == WEIR_TEXT_UNSUPPORTED) result = ErrorCode::kUnsupported;
    if (code == WEIR_TEXT_LIMIT) result = ErrorCode::kExhausted;
    if (code == WEIR_TEXT_PANIC) result = ErrorCode::kInternal;
    return std::unexpected(Error{result, text.size ? std::string(text.data, text.size) : std::string()});
  }
};

}  // namespace weir::grammar
