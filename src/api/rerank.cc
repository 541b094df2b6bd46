// SPDX-License-Identifier: Apache-2.0
#include "api/rerank.h"

#include <fmt/core.h>

#include "api/json_text.h"
#include "api/text_fields.h"

namespace weir::api {
namespace {

using json::Value;
using Request = RerankRequest;

constexpr std::size_t kMaxDocuments = 10'000;

struct Document {
  std::string text;
};

const Fields<Document>& document_fields() {
  static const Fields<Document> fields = [] {
    Fields<Document> f;
    f.text("text", [](Document& d, std::string v) { d.text = std::move(v); }).required();
    return f;
  }();
  return fields;
}

ApiStatus read_documents(const Value& value, const Path& path, Request& request) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  if (array->empty()) return refuse(path, "is an empty list", "empty");
  if (array->size() > kMaxDocuments)
    return refuse(path, fmt::format("has {} entries; {} are allowed", array->size(), kMaxDocuments), "too_many");
  for (std::size_t i = 0; i < array->size(); ++i) {
    const Value& entry = (*array)[i];
    const Path place(path, i);
    Document document;
    if (entry.is_string()) {
      document.text = std::string(entry.get_string());
    } else if (entry.is_object()) {
      WEIR_TRY(document_fields().read(entry, place, document));
    } else {
      return wrong_type(place, "a text or an object with a text", entry);
    }
    request.documents.push_back(std::move(document.text));
  }
  return {};
}

Value documents_schema() {
  const Value entry = json::Object{{"anyOf", {json::Object{{"type", "string"}}, document_fields().schema()}}};
  return json::Object{{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxDocuments}, {"items", entry}};
}

const Fields<Request>& rerank_fields() {
  static const Fields<Request> fields = [] {
    Fields<Request> f;
    f.text("model", [](Request& r, std::string v) { r.model = std::move(v); }).note("Absent: the server's first model.");
    f.text("query", [](Request& r, std::string v) { r.query = std::move(v); }).required();
    f.value("documents", documents_schema(), read_documents).required();
    f.integer("top_n", {0, kMaxTokens}, [](Request& r, std::int64_t v) { r.top_n = v; }).note("0 by default: all.");
    f.boolean("return_documents", [](Request& r, bool v) { r.return_documents = v; }).note("true by default.");
    f.integer("max_tokens_per_doc", {1, kMaxTokens}, [](Request& r, std::int64_t v) {
       r.cut = true;
       r.max_tokens = v;
     }).note("Cut what is longer.");
    f.integer("truncate_prompt_tokens", {-1, kMaxTokens}, [](Request& r, std::int64_t v) {
       r.cut = true;
       if (v > 0) r.max_tokens = v;
     }).note("Cut what is longer; -1 or 0: to what the model reads. Without it that is an error.");
    f.text("instruction", [](Request& r, std::string v) {
       r.instruction = std::move(v);
     }).note("For models that are told what to look for.");
    f.ignore({"user", "priority", "request_id"});
    return f;
  }();
  return fields;
}

}  // namespace

ApiResult<Request> parse_rerank(std::string_view body) {
  Request request;
  WEIR_TRY(read_body(body, rerank_fields(), request));
  return request;
}

std::string write_rerank(const RerankAnswer& answer, const Request& request) {
  JsonText out;
  out.open_object().member("id", "rerank-" + answer.id).member("model", answer.model).key("usage").open_object();
  out.member("prompt_tokens", answer.tokens).member("total_tokens", answer.tokens).close_object();
  out.key("results").open_array();
  for (const RerankAnswer::Result& result : answer.results) {
    out.open_object().member("index", static_cast<std::int64_t>(result.index));
    if (request.return_documents && result.index < request.documents.size())
      out.key("document").open_object().member("text", request.documents[result.index]).close_object();
    out.member("relevance_score", result.score).close_object();
  }
  return out.close_array().close_object().take();
}

json::Object rerank_request_schema() { return rerank_fields().schema(); }

json::Object rerank_response_schema() {
  return schema(R"({"type": "object", "required": ["id", "model", "usage", "results"], "properties": {
    "id": {"type": "string"}, "model": {"type": "string"},
    "usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}},
    "results": {"type": "array", "items": {"type": "object", "required": ["index", "relevance_score"], "properties": {
      "index": {"type": "integer", "minimum": 0}, "relevance_score": {"type": "number"},
      "document": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}}}}}})")
      .as_object();
}

}  // namespace weir::api
