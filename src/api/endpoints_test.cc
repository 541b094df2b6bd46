// SPDX-License-Identifier: Apache-2.0
// The table of endpoints holds together, and the OpenAPI document says what it says.
#include "api/endpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "api/openapi.h"

namespace weir::api {
namespace {

json::Object document() { return openapi_document(all_endpoints(), {.version = "1.2", .keys = true}); }

TEST(Endpoints, EachIsThereOnce) {
  std::set<std::pair<std::string_view, std::string_view>> routes;
  std::set<std::string_view> operations;
  for (const Endpoint& endpoint : all_endpoints()) {
    EXPECT_TRUE(routes.emplace(endpoint.method, endpoint.path).second) << endpoint.path;
    EXPECT_TRUE(operations.insert(endpoint.operation).second) << endpoint.operation;
    EXPECT_FALSE(endpoint.handler.empty()) << endpoint.path;
    EXPECT_FALSE(endpoint.summary.empty()) << endpoint.path;
    EXPECT_FALSE(endpoint.tag.empty()) << endpoint.path;
  }
}

TEST(Endpoints, TheServicesAreThere) {
  const std::pair<const char*, const char*> wanted[] = {{"POST", "/v1/chat/completions"},
                                                        {"POST", "/v1/chat/completions/render"},
                                                        {"POST", "/v1/completions"},
                                                        {"POST", "/v1/responses"},
                                                        {"POST", "/v1/embeddings"},
                                                        {"POST", "/v1/rerank"},
                                                        {"POST", "/v1/messages"},
                                                        {"POST", "/api/chat"},
                                                        {"POST", "/api/generate"},
                                                        {"GET", "/api/tags"},
                                                        {"POST", "/api/embed"},
                                                        {"POST", "/tokenize"},
                                                        {"POST", "/detokenize"},
                                                        {"GET", "/tokenizer_info"},
                                                        {"GET", "/v1/models"},
                                                        {"GET", "/health/live"},
                                                        {"GET", "/health/ready"},
                                                        {"GET", "/metrics"},
                                                        {"GET", "/openapi.json"}};
  for (const auto& [method, path] : wanted)
    EXPECT_TRUE(std::any_of(all_endpoints().begin(), all_endpoints().end(), [&](const Endpoint& e) {
      return e.method == method && e.path == path;
    })) << path;
}

TEST(Endpoints, StatusesFollowFromWhatTheyAre) {
  const auto statuses = [](std::string_view operation) {
    for (const Endpoint& endpoint : all_endpoints())
      if (endpoint.operation == operation) return error_statuses(endpoint);
    return std::vector<int>{};
  };
  EXPECT_EQ(statuses("createChatCompletion"), (std::vector<int>{400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 500, 503, 504}));
  EXPECT_EQ(statuses("healthReady"), (std::vector<int>{400, 405, 408, 413, 431, 500, 503}));
  EXPECT_EQ(statuses("loadModel"), (std::vector<int>{400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 431, 500, 503, 504}));
}

TEST(OpenApi, DescribesEveryEndpoint) {
  const json::Object doc = document();
  EXPECT_EQ(doc.at("openapi").as_string(), "3.1.0");
  EXPECT_EQ(doc.at("info").at("version").as_string(), "1.2");
  for (const Endpoint& endpoint : all_endpoints()) {
    std::string method(endpoint.method);
    std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) { return std::tolower(c); });
    const json::Value& operation = doc.at("paths").at(openapi_path(endpoint.path)).at(method);
    EXPECT_EQ(operation.at("operationId").as_string(), endpoint.operation);
    EXPECT_EQ(operation.as_object().contains("requestBody"), static_cast<bool>(endpoint.request));
    const json::Object& responses = operation.at("responses").as_object();
    EXPECT_TRUE(responses.contains("200"));
    EXPECT_EQ(responses.size(), error_statuses(endpoint).size() + 1);
    EXPECT_EQ(operation.at("security").as_array().empty(), endpoint.access == Access::kOpen);
  }
}

TEST(OpenApi, PathsHaveTheirParameters) {
  EXPECT_EQ(openapi_path("/v1/models/{model*}"), "/v1/models/{model}");
  const json::Object doc = document();
  const json::Value& parameter = doc.at("paths").at("/v1/models/{model}").at("get").at("parameters").at(0);
  EXPECT_EQ(parameter.at("name").as_string(), "model");
  EXPECT_EQ(parameter.at("in").as_string(), "path");
  EXPECT_TRUE(parameter.at("required").as_bool());
}

// Calls back for each value below this one.
void walk(const json::Value& value, const std::function<void(const json::Object&)>& visit) {
  if (value.is_array())
    for (const json::Value& entry : value.get_array()) walk(entry, visit);
  if (!value.is_object()) return;
  visit(value.get_object());
  for (const auto& member : value.get_object()) walk(member.value(), visit);
}

TEST(OpenApi, ReferencesLeadSomewhereAndTypesAreJsonSchemas) {
  const json::Object doc = document();
  const json::Object& schemas = doc.at("components").at("schemas").as_object();
  const std::set<std::string_view> types = {"null", "boolean", "object", "array", "number", "integer", "string"};
  walk(doc.at("paths"), [&](const json::Object& object) {
    const json::Value* reference = object.if_contains("$ref");
    if (!reference) return;
    const std::string_view text = reference->as_string();
    constexpr std::string_view kStart = "#/components/schemas/";
    ASSERT_TRUE(text.starts_with(kStart)) << text;
    EXPECT_TRUE(schemas.contains(text.substr(kStart.size()))) << text;
  });
  // "type" may be a property's name too; then it is an object.
  walk(schemas, [&](const json::Object& object) {
    const json::Value* type = object.if_contains("type");
    if (!type || type->is_object()) return;
    std::set<std::string_view> seen;
    const auto check = [&](const json::Value& one) {
      ASSERT_TRUE(one.is_string());
      EXPECT_TRUE(types.contains(one.as_string())) << one.as_string();
      EXPECT_TRUE(seen.insert(one.as_string()).second) << "twice " << one.as_string();
    };
    if (type->is_array()) {
      for (const json::Value& one : type->get_array()) check(one);
    } else {
      check(*type);
    }
  });
}

TEST(OpenApi, RequestsAreStrict) {
  const json::Object doc = document();
  const json::Value& chat = doc.at("components").at("schemas").at("ChatCompletionRequest");
  EXPECT_EQ(chat.at("additionalProperties"), json::Value(false));
  EXPECT_EQ(chat.at("required"), json::Value(json::Array{"messages"}));
  EXPECT_EQ(chat.at("properties").at("n").at("maximum").as_int64(), 128);
}

TEST(OpenApi, WithoutKeysNothingAsksForThem) {
  const json::Object doc = openapi_document(all_endpoints(), {.version = "1", .keys = false});
  EXPECT_TRUE(doc.at("paths").at("/v1/completions").at("post").at("security").as_array().empty());
}

}  // namespace
}  // namespace weir::api
