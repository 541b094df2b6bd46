// SPDX-License-Identifier: Apache-2.0
// Names of the error codes.
#include "base/result.h"

namespace weir {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kNetwork: return "network";
    case ErrorCode::kExhausted: return "exhausted";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kDeadline: return "deadline";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

}  // namespace weir
