// SPDX-License-Identifier: Apache-2.0
// What those who operate the server read: health and version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::api {

// {"status": "ok" | "unavailable", "reasons": […]}: with 200 or 503.
std::string write_health(bool good, const std::vector<std::string>& reasons);
std::string write_version(std::string_view version);

json::Object health_schema();
json::Object version_schema();
json::Object openapi_schema();

}  // namespace weir::api
