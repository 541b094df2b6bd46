// SPDX-License-Identifier: Apache-2.0
#include "api/operations.h"

#include "api/fields.h"
#include "api/json_text.h"

namespace weir::api {

std::string write_health(bool good, const std::vector<std::string>& reasons) {
  JsonText out;
  out.open_object().member("status", good ? "ok" : "unavailable").key("reasons").open_array();
  for (const std::string& reason : reasons) out.text(reason);
  return out.close_array().close_object().take();
}

std::string write_version(std::string_view version) { return JsonText().open_object().member("version", version).close_object().take(); }

json::Object health_schema() {
  return schema(R"({"type": "object", "required": ["status", "reasons"], "properties": {
    "status": {"enum": ["ok", "unavailable"]}, "reasons": {"type": "array", "items": {"type": "string"}}}})")
      .as_object();
}

json::Object version_schema() {
  return schema(R"({"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}})").as_object();
}

json::Object openapi_schema() {
  return schema(R"({"type": "object", "required": ["openapi", "info", "paths"], "properties": {"openapi": {"type": "string"}}})")
      .as_object();
}

}  // namespace weir::api
