// SPDX-License-Identifier: Apache-2.0
// The reader of calls whose arguments stand between tags, turned into JSON by the types of the function's schema: strings as they come,
// other values when they end.
#pragma once

#include <memory>

#include "api/output_parser_calls.h"

namespace weir::api {

std::unique_ptr<CallReader> make_tag_reader(const CallSyntax& syntax, AnswerWriter& writer, bool opened);

}  // namespace weir::api
