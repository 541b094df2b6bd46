// SPDX-License-Identifier: Apache-2.0
// The generator against the project's own HTTP server: TLS, connections that the server closes, streams that go wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/testing.h"
#include "http/server.h"
#include "http/tls_test_support.h"
#include "loadgen/runner.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

constexpr const char* kContent = R"({"choices":[{"delta":{"content":"x"}}]})";

std::unique_ptr<http::Server> serve(http::ServerOptions options, std::function<void(http::Request, http::Responder)> handler) {
  if (options.listen.empty()) options.listen = {{.address = "127.0.0.1:0"}};
  auto server = http::Server::start(
      std::move(options),
      {{.method = "POST", .pattern = "/v1/chat/completions", .handler = std::move(handler), .max_body_bytes = 1 << 20}});
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return std::move(*server);
}

void stream(const http::Responder& responder, const std::vector<const char*>& events) {
  responder.start_events();
  for (const char* event : events) responder.send_event(event);
  responder.finish();
}

RunResult load(const std::string& url, const http::ClientTls& tls, int requests, Duration gap) {
  LoadPlan plan;
  plan.conversations = {{{{.content = message("user", std::string(50000, 'a')), .max_tokens = 2}}}};  // more than one TLS record
  for (int i = 0; i < requests; ++i) plan.arrivals.push_back(gap * i);
  Progress progress;
  RunOptions options;
  options.max_concurrency = 2;
  const auto target = Target::resolve({.url = url, .chat = true, .headers = {{"X-Test", "1"}}, .api_key = "key", .tls = tls});
  EXPECT_TRUE(target) << (target ? "" : target.error().message);
  auto result = run(plan, *target, options, progress);
  if (!result) {
    RunResult failed;
    failed.first_error = result.error().message;
    return failed;
  }
  return std::move(*result);
}

TEST(RunnerOverHttp, TlsIsVerified) {
  const testing::TemporaryFolder folder;
  const auto identity = http::testing::make_identity("server");
  identity.save(folder.path() / "cert.pem", folder.path() / "key.pem");
  http::ServerOptions options;
  options.listen = {{.address = "127.0.0.1:0", .tls = true}};
  options.tls.certificate = folder.path() / "cert.pem";
  options.tls.key = folder.path() / "key.pem";
  std::atomic<int> authorized{0};
  const auto server = serve(std::move(options), [&](const http::Request& request, const http::Responder& responder) {
    authorized += request.header("Authorization") == "Bearer key" && request.header("X-Test") == "1" && request.body.size() > 50000;
    stream(responder, {kContent, kContent, "[DONE]"});
  });
  const std::string url = "https://" + server->addresses().at(0);
  const RunResult good = load(url, {.ca = folder.path() / "cert.pem", .certificate = {}, .key = {}, .verify = true}, 6, 1ms);
  ASSERT_EQ(good.records.size(), 6u) << good.first_error;
  for (const RequestRecord& r : good.records) {
    EXPECT_EQ(r.outcome, Outcome::kOk) << good.first_error;
    EXPECT_EQ(r.events, 2);
  }
  EXPECT_EQ(authorized, 6);
  const RunResult unknown = load(url, {}, 1, 1ms);  // not one of the system's authorities
  EXPECT_TRUE(unknown.records.empty());
  EXPECT_NE(unknown.first_error.find("TLS"), std::string::npos) << unknown.first_error;
  EXPECT_EQ(load(url, {.ca = {}, .certificate = {}, .key = {}, .verify = false}, 1, 1ms).records.size(), 1u);
}

TEST(RunnerOverHttp, ConnectionsThatTheServerClosedAreReplaced) {
  http::ServerOptions options;
  options.limits.max_requests_per_connection = 2;
  const auto server = serve(std::move(options), [](const http::Request&, const http::Responder& r) { stream(r, {kContent, "[DONE]"}); });
  const RunResult result = load("http://" + server->addresses().at(0), {}, 12, 1ms);
  ASSERT_EQ(result.records.size(), 12u);
  for (const RequestRecord& r : result.records) EXPECT_EQ(r.outcome, Outcome::kOk) << result.first_error;
  EXPECT_GE(result.connections_opened, 6u);
}

TEST(RunnerOverHttp, StreamsThatGoWrongAreErrorsOfTheirKind) {
  const std::pair<Outcome, std::vector<const char*>> cases[] = {
      {Outcome::kStreamError, {kContent, R"({"error":{"message":"out of memory"}})", "[DONE]"}},
      {Outcome::kStreamError, {kContent, "nonsense", "[DONE]"}},
      {Outcome::kMalformed, {"[DONE]"}},
      {Outcome::kCut, {kContent}},
      {Outcome::kOk, {kContent, "[DONE]"}},
  };
  for (const auto& [outcome, events] : cases) {
    const auto server = serve({}, [&events](const http::Request&, const http::Responder& r) { stream(r, events); });
    const RunResult result = load("http://" + server->addresses().at(0), {}, 1, 1ms);
    ASSERT_EQ(result.records.size(), 1u);
    EXPECT_EQ(result.records[0].outcome, outcome) << result.first_error;
  }
}

}  // namespace
}  // namespace weir::loadgen
