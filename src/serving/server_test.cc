// SPDX-License-Identifier: Apache-2.0
// The whole server over loopback: every dialect, streams, and what users of other servers suffer from.
#include "serving/server.h"

#include "base/system_memory.h"
#include "serving/serving_test_support.h"

namespace weir::serving::testing {
namespace {

std::string content_of(const Answer& answer) {
  std::string text;
  for (const std::string& event : answer.events) {
    if (event == "[DONE]") continue;
    const json::Value value = json::parse(event, "an event").value();
    const json::Array& choices = value.at("choices").as_array();
    if (choices.empty()) continue;
    const json::Object& delta = choices[0].at("delta").as_object();
    if (const json::Value* content = json::find(delta, "content")) text += std::string(content->as_string());
  }
  return text;
}

TEST(Server, AnswersInEveryDialect) {
  WEIR_REQUIRE_CACHED(smollm2_path());
  const TestServer s({spec("smollm2", smollm2_path()), spec("bert", data_path("arch/bert"))});
  ASSERT_TRUE(s.loaded) << s.loaded.error().message;
  const Answer whole = s.post("/v1/chat/completions", chat("smollm2", "What is the capital of France?", 8));
  ASSERT_EQ(whole.status, 200) << whole.text;
  const std::string text(whole.json().at("choices").at(0).at("message").at("content").as_string());
  EXPECT_FALSE(text.empty());

  json::Object streamed = chat("smollm2", "What is the capital of France?", 8);
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const Answer stream = s.post("/v1/chat/completions", streamed);
  EXPECT_EQ(content_of(stream), text);
  ASSERT_GE(stream.events.size(), 3u);
  EXPECT_EQ(stream.events.back(), "[DONE]");
  EXPECT_EQ(json::parse(stream.events[stream.events.size() - 2], "usage")->at("usage").at("completion_tokens"), 8);

  struct Case {
    const char* path;
    json::Object body;
    const char* member;
  };
  const json::Array messages{json::Object{{"role", "user"}, {"content", "Hi"}}};
  const Case cases[] = {
      {"/v1/completions", {{"model", "smollm2"}, {"prompt", "1, 2, 3,"}, {"max_tokens", 2}}, "choices"},
      {"/v1/responses", {{"model", "smollm2"}, {"input", "Hi"}, {"max_output_tokens", 16}}, "output"},
      {"/v1/messages", {{"model", "smollm2"}, {"max_tokens", 2}, {"messages", messages}}, "content"},
      {"/v1/messages/count_tokens", {{"model", "smollm2"}, {"messages", messages}}, "input_tokens"},
      {"/api/chat", {{"model", "smollm2"}, {"messages", messages}, {"stream", false}, {"options", {{"num_predict", 2}}}}, "message"},
      {"/api/generate", {{"model", "smollm2:latest"}, {"prompt", "Hi"}, {"stream", false}, {"options", {{"num_predict", 2}}}}, "response"},
      {"/api/embed", {{"model", "bert"}, {"input", "Hi"}}, "embeddings"},
      {"/v1/embeddings", {{"model", "bert"}, {"input", "Hi"}}, "data"},
      {"/v1/embeddings", {{"model", "smollm2"}, {"input", json::Array{"Hi", "Ho"}}}, "data"},  // beside its running engine
      {"/v1/rerank", {{"model", "bert"}, {"query", "a"}, {"documents", json::Array{"b", "c"}}}, "results"},
      {"/tokenize", {{"model", "smollm2"}, {"prompt", "Hi"}}, "tokens"},
      {"/detokenize", {{"model", "smollm2"}, {"tokens", json::Array{28120}}}, "prompt"},
      {"/v1/chat/completions/render", {{"model", "smollm2"}, {"messages", messages}}, "prompt"},
      {"/v1/models/load", {{"model", "smollm2"}}, "state"},
  };
  for (const Case& c : cases) {
    const Answer answer = s.post(c.path, c.body);
    EXPECT_EQ(answer.status, 200) << c.path << ": " << answer.text;
    EXPECT_TRUE(answer.json().contains(c.member)) << c.path << ": " << answer.text;
  }
  for (const char* path : {"/v1/models", "/v1/models/bert", "/health", "/health/live", "/health/ready", "/version", "/openapi.json",
                           "/tokenizer_info", "/api/tags", "/api/ps", "/api/version"})
    EXPECT_EQ(s.get(path).status, 200) << path;
}

TEST(Server, RefusesWhatItCannotDoWithTheRightCode) {
  const TestServer s({spec("m", data_path("arch/llama")), spec("bert", data_path("arch/bert"))});
  EXPECT_EQ(s.post("/v1/completions", {{"model", "other"}, {"prompt", "a"}}).error_code(), "model_not_found");
  EXPECT_EQ(s.post("/v1/completions", {{"model", "bert"}, {"prompt", "a"}}).error_code(), "unsupported_model");
  const Answer long_one = s.post("/v1/completions", {{"model", "m"}, {"prompt", std::string(20'000, 'a')}, {"max_tokens", 4}});
  EXPECT_EQ(long_one.status, 400);
  EXPECT_EQ(long_one.error_code(), "context_length_exceeded");
  EXPECT_EQ(s.get("/v1/models/other").status, 404);
  EXPECT_EQ(s.get("/nowhere").status, 404);
  EXPECT_EQ(s.get("/v1/completions").status, 405);
  http::ClientRequest bad = s.request("POST", "/v1/completions", R"({"model":"m","prompt":"a"})");
  bad.headers.add("x-request-timeout-ms", "soon");
  EXPECT_EQ(s.send(std::move(bad)).status, 400);
  http::ClientRequest named = s.request("GET", "/version");
  named.headers.add("X-Request-Id", "mine-1");
  EXPECT_EQ(s.send(std::move(named)).headers.get("X-Request-Id"), "mine-1");
}

TEST(Server, ListensToOtherMachinesOnlyWithKeysOrOnPurpose) {
  ServeOptions options;
  options.listen = {"0.0.0.0:0"};
  const auto refused = Server::start(std::move(options), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--insecure"), std::string::npos);
  EXPECT_FALSE(reaches_outside("127.0.0.1:80"));
  EXPECT_FALSE(reaches_outside("[::1]:80"));
  EXPECT_FALSE(reaches_outside("unix:/run/x"));
  EXPECT_TRUE(reaches_outside("[::]:80"));
}

TEST(Server, AClientThatGoesFreesItsBlocksAtOnce) {
  WEIR_REQUIRE_CACHED(smollm2_path());
  const TestServer s({spec("smollm2", smollm2_path())});
  json::Object body = chat("smollm2", "Tell me a very long story.", 2000);
  body["stream"] = true;
  body["ignore_eos"] = true;
  std::atomic<int> events{0};
  std::promise<void> done;
  const auto call = s.client->start(
      s.request("POST", "/v1/chat/completions", boost::json::serialize(body)),
      {.on_event = [&](http::SseEvent&) { ++events; }, .on_done = [&](Status, http::ClientResponse&) { done.set_value(); }});
  ASSERT_TRUE(eventually([&] { return events > 4; }));
  EXPECT_EQ(s.stats().open_requests, 1);
  call.cancel();
  ASSERT_TRUE(eventually([&] { return s.stats().open_requests == 0; }));
  const engine::ServiceStats stats = s.stats();
  EXPECT_EQ(stats.scheduler.cancelled, 1);
  EXPECT_LT(stats.generated_tokens, 1500);
  EXPECT_EQ(stats.cache.pools.front().used, 0);
  EXPECT_TRUE(eventually([&] { return s.server->open_sessions() == 0; }));
  done.get_future().wait();
}

TEST(Server, AModelLeavesMemoryAndComesBackWithTheNextRequest) {
  WEIR_REQUIRE_CACHED(smollm2_path());
  TestClock clock;
  const TestServer s({spec("smollm2", smollm2_path())}, [&](ServeOptions& options, ServerParts& parts) {
    options.idle_unload = 10min;
    parts.clock = &clock;
  });
  const json::Object body = chat("smollm2", "Hi", 4);
  const std::string first = s.post("/v1/chat/completions", body).text;
  const auto gone = [&] { return s.server->registry().list().front().phase == ModelPhase::kUnloaded; };
  clock.advance(9min);
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(gone());
  clock.advance(2min);
  ASSERT_TRUE(eventually(gone));
  EXPECT_EQ(s.server->registry().bytes(), 0u);
  EXPECT_EQ(s.get("/health/ready").status, 200);  // it comes when it is wanted
  [[maybe_unused]] const std::uint64_t baseline = process_memory().anonymous;
  const Answer again = s.post("/v1/chat/completions", body);
  ASSERT_EQ(again.status, 200);
  const auto text = [](const std::string& document) {
    return json::parse(document, "an answer")->at("choices").at(0).at("message").at("content");
  };
  EXPECT_EQ(text(again.text), text(first));
  // Unloaded by hand, again and again: the memory returns.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(s.post("/v1/models/unload", {{"model", "smollm2"}}).status, 200);
    EXPECT_TRUE(gone());
    if (i < 2) {
      EXPECT_EQ(s.post("/v1/chat/completions", body).status, 200);
    }
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(process_memory().anonymous, baseline + (24u << 20));
#endif
}

TEST(Server, AnEngineThatStandsStillTurnsReadinessRed) {
  Scripted t([](ServeOptions& options, ServerParts&) { options.watchdog = 1s; });
  EXPECT_EQ(t.server.get("/health/ready").status, 200);
  t.service->stalled = true;
  ASSERT_TRUE(eventually([&] { return t.server.get("/health/ready").status == 503; }));
  EXPECT_NE(t.server.get("/health").text.find("step loop"), std::string::npos);
  ASSERT_TRUE(eventually([&] { return t.server.get("/health/live").status == 503; }));  // an hour of silence is for ever
  t.service->stalled = false;
  EXPECT_TRUE(eventually([&] { return t.server.get("/health/ready").status == 200; }));
}

TEST(Server, AFullQueueIs429WithTheEstimatedWait) {
  Scripted t;
  t.service->refuse = Error{ErrorCode::kExhausted, "full"};
  const Answer at_once = t.server.post("/v1/completions", t.body(true));
  EXPECT_EQ(at_once.status, 429);
  EXPECT_EQ(at_once.headers.get("Retry-After"), "7");
  t.service->refuse.reset();
  // What the scheduler refuses comes as an event, before the stream has begun.
  std::thread engine([&] { t.service->at(0)->end(engine::FinishReason::kFailed, Error{ErrorCode::kExhausted, "the queue is full"}); });
  const Answer later = t.server.post("/v1/completions", t.body(true));
  engine.join();
  EXPECT_EQ(later.status, 429);
  EXPECT_EQ(later.headers.get("Retry-After"), "7");
  EXPECT_EQ(later.error_code(), "overloaded");
}

TEST(Server, AnErrorInTheMiddleOfAStreamIsItsLastEvent) {
  Scripted t;
  std::thread engine([&] {
    const auto wire = t.service->at(0);
    wire->text("a");
    wire->end(engine::FinishReason::kFailed, Error{ErrorCode::kInternal, "a fault in /some/file"});
  });
  const Answer answer = t.server.post("/v1/completions", t.body(true));
  engine.join();
  EXPECT_EQ(answer.status, 200);
  ASSERT_GE(answer.events.size(), 2u);
  const auto has_error = [](const std::string& event) { return event.find("\"error\"") != std::string::npos; };
  EXPECT_EQ(std::ranges::count_if(answer.events, has_error), 1);
  for (const std::string& event : answer.events) EXPECT_EQ(event.find("/some/file"), std::string::npos);
  std::thread again([&] { t.service->at(1)->end(engine::FinishReason::kFailed, Error{ErrorCode::kInternal, "a fault in /some/file"}); });
  const Answer whole = t.server.post("/v1/completions", t.body(false));
  again.join();
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.text.find("/some/file"), std::string::npos);
}

TEST(Server, ADeadlineEndsARequestWhereverItIs) {
  Scripted t;
  http::ClientRequest request = t.server.request("POST", "/v1/completions", boost::json::serialize(t.body(false)));
  request.headers.add("x-request-timeout-ms", "150");
  const Answer answer = t.server.send(std::move(request));
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(answer.error_code(), "timeout");
  EXPECT_TRUE(t.service->at(0)->cancelled);
  EXPECT_TRUE(eventually([&] { return t.service->at(0)->dropped.load(); }));
}

TEST(Server, ADrainFinishesStreamsAndReportsWhatItCut) {
  Scripted t;
  std::vector<std::string> events;
  std::mutex mutex;
  std::promise<void> done;
  std::atomic<bool> whole{false};
  const auto start = [&](const http::ClientHandlers& handlers) {
    return t.server.client->start(t.server.request("POST", "/v1/completions", boost::json::serialize(t.body(true))), handlers);
  };
  start({.on_event =
             [&](http::SseEvent& event) {
               const std::lock_guard lock(mutex);
               events.push_back(event.data);
             },
         .on_done =
             [&](Status status, http::ClientResponse&) {
               whole = status.has_value();
               done.set_value();
             }});
  const auto wire = t.service->at(0);
  wire->text("a");
  std::promise<void> cut;
  start({.on_done = [&](Status, http::ClientResponse&) { cut.set_value(); }});
  t.service->at(1)->text("a");  // never ends
  http::DrainReport report;
  std::thread drain([&] { report = t.server.server->drain(1s); });
  ASSERT_TRUE(eventually([&] { return !t.server.server->health().ready; }));
  wire->text("b");
  wire->end();
  done.get_future().wait();
  EXPECT_TRUE(whole);
  {
    const std::lock_guard lock(mutex);
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back(), "[DONE]");
  }
  drain.join();
  cut.get_future().wait();
  ASSERT_EQ(report.cut.size(), 1u);
  EXPECT_EQ(report.cut[0].route, "/v1/completions");
  EXPECT_EQ(report.finished, 1u);
  EXPECT_TRUE(eventually([&] { return t.service->at(1)->dropped.load(); }));
}

TEST(Server, AReaderThatIsTooSlowIsCut) {
  Scripted t([](ServeOptions& options, ServerParts&) { options.max_queued_bytes = 64u << 10; });
  std::promise<void> done;
  http::ClientRequest request = t.server.request("POST", "/v1/completions", boost::json::serialize(t.body(true)));
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  t.server.client->start(std::move(request), {.on_event = [&](http::SseEvent&) { released.wait(); },
                                              .on_done = [&](Status, http::ClientResponse&) { done.set_value(); }});
  const auto wire = t.service->at(0);
  const std::string piece(32u << 10, 'x');
  for (int i = 0; i < 2000 && !wire->dropped; ++i) wire->text(piece);
  EXPECT_TRUE(eventually([&] { return wire->dropped.load(); }));
  release.set_value();
  done.get_future().wait();
}

TEST(Server, TheBestOfSeveralAnswersIsTheLikeliest) {
  const TestServer s({spec("m", data_path("arch/llama"))});
  json::Object body{{"model", "m"}, {"prompt", "ab"}, {"max_tokens", 4}, {"temperature", 1}, {"seed", 5}, {"n", 6}, {"logprobs", 0}};
  body["ignore_eos"] = true;
  const Answer all = s.post("/v1/completions", body);
  ASSERT_EQ(all.status, 200) << all.text;
  double best = -1e9;
  std::string text;
  const json::Object document = all.json();
  for (const json::Value& choice : document.at("choices").as_array()) {
    double sum = 0;
    for (const json::Value& logprob : choice.at("logprobs").at("token_logprobs").as_array()) sum += logprob.to_number<double>();
    if (sum > best) text = choice.at("text").as_string();
    best = std::max(best, sum);
  }
  body["n"] = 1;
  body["best_of"] = 6;
  const Answer one = s.post("/v1/completions", body);
  ASSERT_EQ(one.status, 200) << one.text;
  EXPECT_EQ(one.json().at("choices").as_array().size(), 1u);
  EXPECT_EQ(std::string(one.json().at("choices").at(0).at("text").as_string()), text);
  EXPECT_EQ(one.json().at("usage").at("completion_tokens"), 24);
}

TEST(Server, AdaptersComeFromTheOperatorsFolderOnly) {
  const weir::testing::TemporaryFolder folder;
  const TestServer s({spec("m", data_path("arch/llama"))}, [&](ServeOptions& o, ServerParts&) { o.adapter_folder = folder.path(); });
  for (const char* path : {"/etc", "../x", "a/../../x", ".", "/"}) {
    const Answer answer = s.post("/v1/load_lora_adapter", {{"lora_name", "a"}, {"lora_path", path}});
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_EQ(answer.text.find(folder.path().string()), std::string::npos);
  }
  std::filesystem::create_directory_symlink("/etc", folder.path() / "link");
  EXPECT_EQ(s.post("/v1/load_lora_adapter", {{"lora_name", "a"}, {"lora_path", "link"}}).status, 400);
  EXPECT_EQ(s.post("/v1/unload_lora_adapter", {{"lora_name", "a"}}).status, 404);
}

}  // namespace
}  // namespace weir::serving::testing
