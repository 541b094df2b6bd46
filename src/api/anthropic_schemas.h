// SPDX-License-Identifier: Apache-2.0
// Schemas of Anthropic's dialect for the OpenAPI document.
#pragma once

#include "base/json.h"

namespace weir::api {

json::Object anthropic_message_request_schema();
json::Object anthropic_message_schema();
json::Object anthropic_count_request_schema();
json::Object anthropic_count_schema();
json::Object anthropic_error_schema();

}  // namespace weir::api
