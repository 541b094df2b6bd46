// SPDX-License-Identifier: Apache-2.0
#include "api/embeddings.h"

#include <bit>

#include "api/json_text.h"
#include "api/text_fields.h"

namespace weir::api {
namespace {

using json::Value;
using Request = EmbeddingRequest;

constexpr std::int64_t kMaxDimensions = 1 << 20;

const Fields<Request>& embedding_fields() {
  static const Fields<Request> fields = [] {
    Fields<Request> f;
    f.value("input", prompts_schema(), [](const Value& value, const Path& path, Request& r) -> ApiStatus {
       WEIR_ASSIGN(r.inputs, read_prompts(value, path));
       return {};
     }).required();
    f.text("model", [](Request& r, std::string v) { r.model = std::move(v); }).note("Absent: the server's first model.");
    f.value("encoding_format", schema(R"({"enum": ["float", "base64"]})"),
            [](const Value& value, const Path& path, Request& r) -> ApiStatus {
              WEIR_ASSIGN(const std::string_view name, read_name(value, path, {"float", "base64"}));
              r.base64 = name == "base64";
              return {};
            });
    f.integer("dimensions", {1, kMaxDimensions}, [](Request& r, std::int64_t v) {
       r.dimensions = v;
     }).note("Fewer than the model's, where the model was made for that.");
    f.boolean("normalize", [](Request& r, bool v) { r.normalize = v; });
    f.text("prompt_name", [](Request& r, std::string v) {
       r.prompt_name = std::move(v);
     }).note("One of the model's own prompts, put before each text.");
    f.integer("truncate_prompt_tokens", {-1, kMaxTokens}, [](Request& r, std::int64_t v) {
       r.cut = true;
       if (v > 0) r.max_tokens = v;
     }).note("Cut what is longer; -1 or 0: to what the model reads. Without it that is an error.");
    f.only("add_special_tokens", true, "is not supported: the model's own special tokens are part of its vectors");
    f.ignore({"user", "priority", "request_id", "cache_salt"});
    return f;
  }();
  return fields;
}

}  // namespace

ApiResult<Request> parse_embedding(std::string_view body) {
  Request request;
  WEIR_TRY(read_body(body, embedding_fields(), request));
  return request;
}

std::string base64_of(std::span<const float> values) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((values.size() * 4 + 2) / 3 * 4);
  std::uint32_t held = 0;
  int bytes = 0;
  const auto flush = [&](int characters) {
    for (int i = 0; i < 4; ++i) out += i < characters ? kAlphabet[held >> (18 - 6 * i) & 63] : '=';
    held = 0;
    bytes = 0;
  };
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      held |= (bits >> shift & 255) << (16 - 8 * bytes);
      if (++bytes == 3) flush(4);
    }
  }
  if (bytes > 0) flush(bytes + 1);
  return out;
}

std::string write_embedding(const EmbeddingAnswer& answer, bool base64) {
  JsonText out;
  out.open_object().member("object", "list").key("data").open_array();
  for (std::size_t i = 0; i < answer.vectors.size(); ++i) {
    out.open_object().member("object", "embedding").member("index", static_cast<std::int64_t>(i)).key("embedding");
    if (base64) {
      out.text(base64_of(answer.vectors[i]));
    } else {
      out.open_array();
      for (const float value : answer.vectors[i]) out.number(value);
      out.close_array();
    }
    out.close_object();
  }
  out.close_array().member("model", answer.model).key("usage").open_object();
  out.member("prompt_tokens", answer.tokens).member("total_tokens", answer.tokens);
  return out.close_object().close_object().take();
}

json::Object embedding_request_schema() { return embedding_fields().schema(); }

json::Object embedding_response_schema() {
  return schema(R"({"type": "object", "required": ["object", "data", "model", "usage"], "properties": {
    "object": {"enum": ["list"]}, "model": {"type": "string"},
    "data": {"type": "array", "items": {"type": "object", "required": ["object", "index", "embedding"], "properties": {
      "object": {"enum": ["embedding"]}, "index": {"type": "integer", "minimum": 0},
      "embedding": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}}}},
    "usage": {"type": "object", "required": ["prompt_tokens", "total_tokens"], "properties": {
      "prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}}}})")
      .as_object();
}

}  // namespace weir::api
