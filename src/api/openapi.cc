// SPDX-License-Identifier: Apache-2.0
#include "api/openapi.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace weir::api {
namespace {

json::Object reference(std::string_view name) { return {{"$ref", fmt::format("#/components/schemas/{}", name)}}; }

json::Object content(std::string_view media, json::Value schema) {
  json::Object result;
  result[media] = json::Object{{"schema", std::move(schema)}};
  return result;
}

std::vector<std::string> path_parameters(std::string_view pattern) {
  std::vector<std::string> names;
  const std::string path = openapi_path(pattern);
  for (std::size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1))
    names.push_back(path.substr(at + 1, path.find('}', at) - at - 1));
  return names;
}

std::string_view status_text(int status) {
  switch (status) {
    case 400: return "The request is not valid; `param` names the field";
    case 401: return "No API key, or one that is not known";
    case 403: return "The API key may not do this";
    case 404: return "There is no such thing";
    case 405: return "The path does not have this method";
    case 408: return "The request did not arrive in time";
    case 409: return "The state of the model does not allow it now";
    case 413: return "The body is too large";
    case 415: return "The body is not JSON by its Content-Type";
    case 429: return "Too many requests; Retry-After says when to come again";
    case 431: return "The head is too large";
    case 503: return "Not ready, or stopping; Retry-After says when to come again";
    case 504: return "The time limit of the request has passed";
    default: return "A fault of the server";
  }
}

json::Object success(const Endpoint& endpoint) {
  json::Object result{{"description", "The answer"}};
  const std::string_view type = endpoint.response_media.substr(0, endpoint.response_media.find(';'));
  json::Object media = content(type, endpoint.response ? reference(endpoint.response.name) : json::Object{{"type", "string"}});
  if (!endpoint.stream_media.empty()) media[endpoint.stream_media] = json::Object{{"schema", {{"type", "string"}}}};
  result["content"] = std::move(media);
  return result;
}

json::Object responses(const Endpoint& endpoint) {
  json::Object result;
  result["200"] = success(endpoint);
  // The server itself, before an endpoint is chosen, answers in OpenAI's shape.
  json::Array shapes{reference(endpoint.error.name)};
  if (endpoint.error.name != "Error") shapes.push_back(reference("Error"));
  const json::Value schema = shapes.size() == 1 ? shapes[0] : json::Value(json::Object{{"anyOf", shapes}});
  for (const int status : error_statuses(endpoint)) {
    json::Object error{{"description", status_text(status)}, {"content", content("application/json", schema)}};
    if (status == 429 || status == 503)
      error["headers"] = json::Object{{"Retry-After", {{"description", "seconds"}, {"schema", {{"type", "string"}}}}}};
    result[fmt::format("{}", status)] = std::move(error);
  }
  return result;
}

json::Object operation(const Endpoint& endpoint, const ApiDescription& description) {
  json::Object result{{"operationId", endpoint.operation}, {"summary", endpoint.summary}, {"tags", json::Array{endpoint.tag}}};
  if (!endpoint.description.empty()) result["description"] = endpoint.description;
  json::Array parameters;
  for (const std::string& name : path_parameters(endpoint.path))
    parameters.push_back(json::Object{
        {"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}, {"minLength", 1}, {"maxLength", 512}}}});
  if (!parameters.empty()) result["parameters"] = std::move(parameters);
  if (endpoint.request)
    result["requestBody"] = json::Object{{"required", true}, {"content", content("application/json", reference(endpoint.request.name))}};
  result["responses"] = responses(endpoint);
  if (!description.keys || endpoint.access == Access::kOpen) {
    result["security"] = json::Array{};
  } else {
    result["security"] = json::Array{json::Object{{"bearer", json::Array{}}}, json::Object{{"header", json::Array{}}}};
  }
  return result;
}

}  // namespace

std::string openapi_path(std::string_view pattern) {
  std::string path(pattern);
  if (const std::size_t star = path.find("*}"); star != std::string::npos) path.erase(star, 1);
  return path;
}

json::Object openapi_document(std::span<const Endpoint> endpoints, const ApiDescription& description) {
  json::Object paths, schemas;
  const auto add_schema = [&](const NamedSchema& schema) {
    if (schema && !schemas.contains(schema.name)) schemas[schema.name] = schema.make();
  };
  add_schema({"Error", openai_error_schema});
  for (const Endpoint& endpoint : endpoints) {
    for (const NamedSchema& schema : {endpoint.request, endpoint.response, endpoint.error}) add_schema(schema);
    std::string method(endpoint.method);
    std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) { return std::tolower(c); });
    json::Value& item = paths[openapi_path(endpoint.path)];
    if (!item.is_object()) item = json::Object{};
    item.as_object()[method] = operation(endpoint, description);
  }
  return {{"openapi", "3.1.0"},
          {"info",
           {{"title", "Weir"},
            {"version", description.version},
            {"description", "Inference by OpenAI's API and dialects of it. Fields that are not listed are refused."},
            {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", std::move(schemas)},
            {"securitySchemes",
             {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
              {"header", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}}}}}};
}

}  // namespace weir::api
