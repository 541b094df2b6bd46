// SPDX-License-Identifier: Apache-2.0
// Errors that are found behind the parsers name the field of the request's own dialect.
#include "serving/serving_test_support.h"

namespace weir::serving::testing {
namespace {

TEST(ErrorFields, ATextThatIsTooLongIsNamedAsTheRequestHasIt) {
  WEIR_REQUIRE_CACHED(smollm2_path());
  const TestServer s({spec("m", smollm2_path()), spec("bert", data_path("arch/bert"))},
                     [](ServeOptions& options, ServerParts&) { options.engine.context = 64; });
  std::string words;
  for (int i = 0; i < 400; ++i) words += "word ";
  const json::Array messages = {json::Object{{"role", "user"}, {"content", words}}};
  const json::Array items = {
      json::Object{{"role", "user"}, {"content", json::Array{json::Object{{"type", "input_text"}, {"text", words}}}}}};
  struct Case {
    const char* path;
    json::Object body;
    const char* field;
  };
  const std::vector<Case> cases = {
      {"/v1/chat/completions", {{"model", "m"}, {"messages", messages}}, "messages"},
      {"/v1/completions", {{"model", "m"}, {"prompt", words}}, "prompt"},
      {"/v1/responses", {{"model", "m"}, {"input", words}}, "input"},
      {"/v1/responses", {{"model", "m"}, {"input", items}}, "input"},
      {"/v1/embeddings", {{"model", "bert"}, {"input", words}}, "input"},
      {"/v1/embeddings", {{"model", "bert"}, {"input", "a"}, {"dimensions", 7}}, "dimensions"},
      {"/v1/embeddings", {{"model", "bert"}, {"input", "a"}, {"prompt_name", "none such"}}, "prompt_name"},
      {"/v1/rerank", {{"model", "bert"}, {"query", "a"}, {"documents", json::Array{"b", words}}}, "documents"},
      {"/v1/rerank", {{"model", "bert"}, {"query", words}, {"documents", json::Array{"b"}}}, "query"},
  };
  for (const Case& c : cases) {
    const Answer answer = s.post(c.path, c.body);
    EXPECT_EQ(answer.status, 400) << c.path << answer.text;
    EXPECT_EQ(answer.json().at("error").at("param"), c.field) << c.path << answer.text;
  }
  // Dialects without a field for it say it in their message.
  for (const auto& [path, body] : {std::pair<const char*, json::Object>("/api/generate", {{"model", "m"}, {"prompt", words}}),
                                   {"/api/generate", {{"model", "m"}, {"prompt", words}, {"raw", true}}}}) {
    const Answer answer = s.post(path, body);
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_NE(answer.text.find("in the prompt"), std::string::npos) << answer.text;
  }
}

}  // namespace
}  // namespace weir::serving::testing
