// SPDX-License-Identifier: Apache-2.0
// Answers say what is left of a key's limits, in OpenAI's words, and most of all those that refuse.
#include "serving/access_keys.h"
#include "serving/serving_test_support.h"

namespace weir::serving::testing {
namespace {

constexpr const char* kKey = "sk-weir-test-0123456789abcdef";

std::shared_ptr<KeyedAccess> keys(const std::string& limits, const Clock& clock) {
  const std::string file = "[[keys]]\nname = \"k\"\nhash = \"" + hash_key(kKey).value() + "\"\n" + limits;
  auto table = KeyTable::parse(file, "keys.toml");
  EXPECT_TRUE(table) << table.error().message;
  return std::make_shared<KeyedAccess>(std::move(*table), clock, nullptr);
}

Answer post(const TestServer& s, const char* path, const json::Object& body) {
  http::ClientRequest request = s.request("POST", path, boost::json::serialize(body));
  request.headers.add("Authorization", std::string("Bearer ") + kKey);
  return s.send(std::move(request));
}

void expect_all(const Answer& answer, const char* requests, const char* tokens) {
  EXPECT_EQ(answer.headers.get("x-ratelimit-limit-requests"), requests) << answer.status << answer.text;
  EXPECT_EQ(answer.headers.get("x-ratelimit-limit-tokens"), tokens) << answer.status << answer.text;
  for (const char* what : {"remaining", "reset"})
    for (const char* of : {"requests", "tokens"})
      EXPECT_TRUE(answer.headers.has(fmt::format("x-ratelimit-{}-{}", what, of))) << what << of << answer.status << answer.text;
}

TEST(RateHeaders, StandInAnswersAndInRefusalsOfEveryKind) {
  const TestClock clock;
  const TestServer s({spec("m", data_path("arch/llama")), spec("bert", data_path("arch/bert"))}, [&](ServeOptions&, ServerParts& parts) {
    parts.access = keys("requests_per_minute = 4\ntokens_per_minute = 100\n", clock);
  });
  const json::Object small = {{"model", "m"}, {"prompt", json::Array{70, 71}}, {"max_tokens", 2}, {"ignore_eos", true}};
  const Answer first = post(s, "/v1/completions", small);
  EXPECT_EQ(first.status, 200);
  expect_all(first, "4", "100");
  EXPECT_EQ(first.headers.get("x-ratelimit-remaining-requests"), "3");
  EXPECT_EQ(first.headers.get("x-ratelimit-remaining-tokens"), "96");
  const Answer vectors = post(s, "/v1/embeddings", {{"model", "bert"}, {"input", "a"}});
  EXPECT_EQ(vectors.status, 200);
  expect_all(vectors, "4", "100");
  json::Object large = small;
  large["max_tokens"] = 120;
  const Answer too_many_tokens = post(s, "/v1/completions", large);
  EXPECT_EQ(too_many_tokens.status, 429);
  expect_all(too_many_tokens, "4", "100");
  EXPECT_TRUE(too_many_tokens.headers.has("Retry-After"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(post(s, "/v1/completions", small).status, 200);
  for (const Answer& refused : {post(s, "/v1/completions", small), post(s, "/v1/chat/completions", chat("m", "a", 1)),
                                post(s, "/v1/embeddings", {{"model", "bert"}, {"input", "a"}}),
                                post(s, "/v1/rerank", {{"model", "bert"}, {"query", "a"}, {"documents", json::Array{"b"}}})}) {
    if (refused.status == 400) continue;  // no template
    EXPECT_EQ(refused.status, 429) << refused.text;
    expect_all(refused, "4", "100");
    EXPECT_EQ(refused.headers.get("x-ratelimit-remaining-requests"), "0");
    EXPECT_EQ(refused.headers.get("Retry-After"), "15");
  }
}

TEST(RateHeaders, StandInRefusalsOfAFullQueue) {
  const TestClock clock;
  Scripted t(
      [&](ServeOptions&, ServerParts& parts) { parts.access = keys("requests_per_minute = 10\ntokens_per_minute = 1000\n", clock); });
  t.service->refuse = Error{ErrorCode::kExhausted, "full"};
  const Answer refused = post(t.server, "/v1/completions", t.body(false));
  EXPECT_EQ(refused.status, 429);
  expect_all(refused, "10", "1000");
  EXPECT_TRUE(refused.headers.has("X-Request-Id"));
}

}  // namespace
}  // namespace weir::serving::testing
