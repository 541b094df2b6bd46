// SPDX-License-Identifier: Apache-2.0
// The OpenAPI 3.1 document of /openapi.json, made from the table of endpoints and the tables of fields: there is no second description
// of the API that could differ from the code.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/endpoints.h"

namespace weir::api {

struct ApiDescription {
  std::string version;  // of the program
  bool keys = false;    // whether the server asks for API keys
};
json::Object openapi_document(std::span<const Endpoint> endpoints, const ApiDescription& description);

// "/v1/models/{model*}" → "/v1/models/{model}", as OpenAPI writes it.
std::string openapi_path(std::string_view pattern);

}  // namespace weir::api
