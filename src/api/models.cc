// SPDX-License-Identifier: Apache-2.0
#include "api/models.h"

#include "api/fields.h"
#include "api/json_text.h"

namespace weir::api {
namespace {

using json::Value;

// Names of models and adapters are never empty.
template <class T, std::string T::* kMember>
ApiStatus read_filled(const Value& value, const Path& path, T& into) {
  WEIR_ASSIGN(into.*kMember, read_text(value, path));
  if ((into.*kMember).empty()) return refuse(path, "is empty", "empty");
  return {};
}

Value filled_schema() { return schema(R"({"type": "string", "minLength": 1})"); }

const Fields<ModelRequest>& model_request_fields() {
  static const Fields<ModelRequest> fields = [] {
    Fields<ModelRequest> f;
    f.value("model", filled_schema(), read_filled<ModelRequest, &ModelRequest::model>).required();
    return f;
  }();
  return fields;
}

const Fields<LoadAdapterRequest>& load_adapter_fields() {
  static const Fields<LoadAdapterRequest> fields = [] {
    using Request = LoadAdapterRequest;
    Fields<Request> f;
    f.value("lora_name", filled_schema(), read_filled<Request, &Request::name>).required();
    f.value("lora_path", filled_schema(), read_filled<Request, &Request::path>).required();
    f.text("model", [](Request& r, std::string v) { r.model = std::move(v); }).note("Absent: the server's first model.");
    f.boolean("load_inplace", [](Request& r, bool v) { r.replace = v; }).note("An adapter of the same name is replaced.");
    f.ignore({"base_model_name"});
    return f;
  }();
  return fields;
}

const Fields<UnloadAdapterRequest>& unload_adapter_fields() {
  static const Fields<UnloadAdapterRequest> fields = [] {
    using Request = UnloadAdapterRequest;
    Fields<Request> f;
    f.value("lora_name", filled_schema(), read_filled<Request, &Request::name>).required();
    f.text("model", [](Request& r, std::string v) { r.model = std::move(v); }).note("Absent: the server's first model.");
    f.ignore({"lora_int_id"});
    return f;
  }();
  return fields;
}

template <class T>
ApiResult<T> parse_with(std::string_view body, const Fields<T>& fields) {
  T request;
  WEIR_TRY(read_body(body, fields, request));
  return request;
}

void write(JsonText& out, const ModelCard& card) {
  out.open_object().member("id", card.id).member("object", "model").member("created", card.created).member("owned_by", "weir");
  out.member("root", card.root.empty() ? card.id : card.root).key("parent");
  card.parent.empty() ? out.null() : out.text(card.parent);
  out.key("max_model_len");
  card.max_model_len > 0 ? out.integer(card.max_model_len) : out.null();
  out.member("state", card.state).key("capabilities").open_array();
  for (const std::string& capability : card.capabilities) out.text(capability);
  out.close_array().close_object();
}

}  // namespace

std::string write_model(const ModelCard& card) {
  JsonText out;
  write(out, card);
  return out.take();
}

std::string write_models(const std::vector<ModelCard>& cards) {
  JsonText out;
  out.open_object().member("object", "list").key("data").open_array();
  for (const ModelCard& card : cards) write(out, card);
  return out.close_array().close_object().take();
}

std::string write_model_state(std::string_view model, std::string_view state) {
  return JsonText().open_object().member("model", model).member("state", state).close_object().take();
}

ApiResult<ModelRequest> parse_model_request(std::string_view body) { return parse_with(body, model_request_fields()); }
ApiResult<LoadAdapterRequest> parse_load_adapter(std::string_view body) { return parse_with(body, load_adapter_fields()); }
ApiResult<UnloadAdapterRequest> parse_unload_adapter(std::string_view body) { return parse_with(body, unload_adapter_fields()); }

json::Object model_schema() {
  return schema(R"({"type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
    "id": {"type": "string"}, "object": {"enum": ["model"]}, "created": {"type": "integer"}, "owned_by": {"type": "string"},
    "root": {"type": "string"}, "parent": {"type": ["string", "null"]}, "max_model_len": {"type": ["integer", "null"]},
    "state": {"enum": ["loaded", "loading", "unloaded", "failed"]}, "capabilities": {"type": "array", "items": {"type": "string"}}}})")
      .as_object();
}

json::Object models_schema() {
  json::Object result = schema(R"({"type": "object", "required": ["object", "data"], "properties": {
    "object": {"enum": ["list"]}, "data": {"type": "array"}}})")
                            .as_object();
  result["properties"].as_object()["data"].as_object()["items"] = model_schema();
  return result;
}

json::Object model_request_schema() { return model_request_fields().schema(); }
json::Object model_state_schema() {
  return schema(R"({"type": "object", "required": ["model", "state"], "properties": {"model": {"type": "string"},
    "state": {"enum": ["loaded", "loading", "unloaded", "failed"]}}})")
      .as_object();
}
json::Object load_adapter_request_schema() { return load_adapter_fields().schema(); }
json::Object unload_adapter_request_schema() { return unload_adapter_fields().schema(); }

}  // namespace weir::api
