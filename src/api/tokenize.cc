// SPDX-License-Identifier: Apache-2.0
#include "api/tokenize.h"

#include "api/json_text.h"
#include "api/openai_chat.h"
#include "api/text_fields.h"

namespace weir::api {
namespace {

using json::Value;

const Fields<TokenizeRequest>& common_fields() {
  static const Fields<TokenizeRequest> fields = [] {
    Fields<TokenizeRequest> f;
    f.text("model", [](TokenizeRequest& r, std::string v) { r.model = std::move(v); }).note("Absent: the server's first model.");
    f.boolean("add_special_tokens", [](TokenizeRequest& r, bool v) {
       r.add_special = v;
     }).note("By default true for a text, false for a chat, whose template writes them.");
    f.boolean("return_token_strs", [](TokenizeRequest& r, bool v) { r.token_texts = v; });
    return f;
  }();
  return fields;
}

const Fields<TokenizeRequest>& text_fields() {
  static const Fields<TokenizeRequest> fields = [] {
    Fields<TokenizeRequest> f = common_fields();
    f.text("prompt", [](TokenizeRequest& r, std::string v) { r.text = std::move(v); }).required();
    f.value("messages", json::Object{{"type", "null"}}, [](const Value&, const Path& path, TokenizeRequest&) -> ApiStatus {
      return refuse(path, "cannot be given beside 'prompt'", "conflicting_parameters");
    });
    f.ignore({"user"});
    return f;
  }();
  return fields;
}

bool is_common(std::string_view key) { return key == "model" || key == "add_special_tokens" || key == "return_token_strs"; }

ApiResult<TokenizeRequest> read_chat(const json::Object& object) {
  TokenizeRequest request;
  request.chat = true;
  request.add_special = false;
  json::Object common, prompt;
  for (const auto& [key, value] : object) {
    if (key == "user" || key == "prompt") continue;  // a prompt can only be null here
    (is_common(key) ? common : prompt)[key] = value;
  }
  WEIR_TRY(common_fields().read(common, Path(), request));
  WEIR_ASSIGN(request.conversation, parse_chat_prompt(prompt));
  request.conversation.model = request.model;
  return request;
}

const Fields<DetokenizeRequest>& detokenize_fields() {
  static const Fields<DetokenizeRequest> fields = [] {
    Fields<DetokenizeRequest> f;
    f.text("model", [](DetokenizeRequest& r, std::string v) { r.model = std::move(v); }).note("Absent: the server's first model.");
    f.value("tokens", ids_schema(), [](const Value& value, const Path& path, DetokenizeRequest& r) -> ApiStatus {
       WEIR_ASSIGN(r.tokens, read_ids(value, path));
       return {};
     }).required();
    f.ignore({"user"});
    return f;
  }();
  return fields;
}

}  // namespace

ApiResult<TokenizeRequest> parse_tokenize(std::string_view body) {
  WEIR_ASSIGN(const json::Object object, parse_body(body));
  if (json::find(object, "messages") && !json::find(object, "prompt")) return read_chat(object);
  TokenizeRequest request;
  WEIR_TRY(text_fields().read(object, Path(), request));
  return request;
}

std::string write_tokenize(const TokenizeAnswer& answer, const tokenizer::Tokenizer* token_texts) {
  JsonText out;
  out.open_object().member("count", static_cast<std::int64_t>(answer.tokens.size())).member("max_model_len", answer.max_model_len);
  out.key("tokens").ids(answer.tokens).key("token_strs");
  if (token_texts) {
    out.open_array();
    for (const TokenId id : answer.tokens) out.text(token_texts->token_text(id));
    out.close_array();
  } else {
    out.null();
  }
  return out.close_object().take();
}

ApiResult<DetokenizeRequest> parse_detokenize(std::string_view body) {
  DetokenizeRequest request;
  WEIR_TRY(read_body(body, detokenize_fields(), request));
  return request;
}

std::string write_detokenize(std::string_view text) { return JsonText().open_object().member("prompt", text).close_object().take(); }

std::string write_tokenizer_info(const tokenizer::Tokenizer& tokenizer, std::string_view chat_template, std::int64_t max_model_len) {
  JsonText out;
  out.open_object().member("tokenizer_class", "PreTrainedTokenizerFast").member("description", tokenizer.description());
  out.member("vocab_size", tokenizer.vocab_size()).member("model_max_length", max_model_len);
  const std::pair<const char*, const std::optional<TokenId>*> roles[] = {
      {"bos", &tokenizer.bos}, {"eos", &tokenizer.eos}, {"pad", &tokenizer.pad},  {"unk", &tokenizer.unk},
      {"sep", &tokenizer.sep}, {"cls", &tokenizer.cls}, {"mask", &tokenizer.mask}};
  for (const auto& [role, id] : roles) {
    const std::string name = std::string(role) + "_token";
    if (*id) {
      out.member(name, tokenizer.token_text(**id)).member(name + "_id", **id);
    } else {
      out.key(name).null().key(name + "_id").null();
    }
  }
  out.member("add_bos_token", tokenizer.add_bos).member("add_eos_token", tokenizer.add_eos).key("chat_template");
  chat_template.empty() ? out.null() : out.text(chat_template);
  return out.close_object().take();
}

std::string write_render(const RenderAnswer& answer) {
  JsonText out;
  out.open_object().member("object", "chat.completion.render").member("model", answer.model).member("prompt", answer.prompt);
  out.key("token_ids").ids(answer.tokens).member("count", static_cast<std::int64_t>(answer.tokens.size()));
  return out.member("max_model_len", answer.max_model_len).close_object().take();
}

json::Object tokenize_request_schema() {
  json::Object chat = chat_prompt_schema();
  json::Object& properties = chat["properties"].as_object();
  const json::Object common = common_fields().schema();
  for (const auto& member : common.at("properties").as_object()) properties[member.key()] = member.value();
  properties["user"] = json::Object{{"description", "Accepted and ignored: it does not change the answer."}};
  properties["prompt"] = json::Object{{"type", "null"}};
  return {{"anyOf", {text_fields().schema(), std::move(chat)}}};
}

json::Object tokenize_response_schema() {
  return schema(R"({"type": "object", "required": ["count", "max_model_len", "tokens"], "properties": {
    "count": {"type": "integer"}, "max_model_len": {"type": "integer"}, "tokens": {"type": "array", "items": {"type": "integer"}},
    "token_strs": {"type": ["array", "null"], "items": {"type": "string"}}}})")
      .as_object();
}

json::Object detokenize_request_schema() { return detokenize_fields().schema(); }

json::Object detokenize_response_schema() {
  return schema(R"({"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}})").as_object();
}

json::Object tokenizer_info_schema() {
  return schema(R"({"type": "object", "required": ["tokenizer_class", "bos_token", "eos_token", "pad_token", "chat_template"],
    "properties": {"tokenizer_class": {"type": "string"}, "vocab_size": {"type": "integer"}, "model_max_length": {"type": "integer"},
    "bos_token": {"type": ["string", "null"]}, "eos_token": {"type": ["string", "null"]}, "pad_token": {"type": ["string", "null"]},
    "unk_token": {"type": ["string", "null"]}, "chat_template": {"type": ["string", "null"]}}})")
      .as_object();
}

json::Object render_response_schema() {
  return schema(R"({"type": "object", "required": ["object", "model", "prompt", "token_ids", "count", "max_model_len"], "properties": {
    "object": {"enum": ["chat.completion.render"]}, "model": {"type": "string"}, "prompt": {"type": "string"},
    "token_ids": {"type": "array", "items": {"type": "integer"}}, "count": {"type": "integer"}, "max_model_len": {"type": "integer"}}})")
      .as_object();
}

}  // namespace weir::api
