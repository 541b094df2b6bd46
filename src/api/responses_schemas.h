// SPDX-License-Identifier: Apache-2.0
// Schemas of /v1/responses for the OpenAPI document, where they are not made from tables of fields.
#pragma once

#include "base/json.h"

namespace weir::api {

json::Value responses_format_schema();  // text.format
json::Value responses_tool_choice_schema();
json::Value responses_include_schema();
json::Object responses_request_schema();
json::Object response_schema();  // the response object
json::Object deleted_response_schema();
json::Object input_items_schema();

}  // namespace weir::api
