// SPDX-License-Identifier: Apache-2.0
// For tests: a server in this process with small models, a client for it, and a service that does what a test tells it to.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/testing.h"
#include "http/client.h"
#include "serving/server.h"

namespace weir::serving::testing {

using namespace std::chrono_literals;
using weir::testing::data_path;
using weir::testing::smollm2_path;

inline bool eventually(const std::function<bool()>& holds, Duration patience = 20s) {
  const TimePoint end = steady_clock().now() + patience;
  while (steady_clock().now() < end) {
    if (holds()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return holds();
}

// Moves when told, and may be read from any thread.
class TestClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(now_.load())); }
  void advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<Duration::rep> now_{Duration(1h).count()};
};

// A service in an engine's place: requests wait in it until the test gives them events.
class ScriptedService final : public engine::CompletionService {
 public:
  struct Wire {
    std::mutex mutex;
    std::deque<engine::CompletionEvent> events;
    std::function<void()> on_event;
    std::atomic<bool> cancelled{false}, dropped{false};
    engine::CompletionRequest request;

    void push(engine::CompletionEvent event) {
      {
        const std::lock_guard lock(mutex);
        events.push_back(std::move(event));
      }
      if (const auto call = on_event_now()) call();
    }
    std::function<void()> on_event_now() {
      const std::lock_guard lock(mutex);
      return on_event;
    }
    void text(std::string piece) {
      engine::CompletionEvent event;
      event.tokens = {70};
      event.text = std::move(piece);
      push(std::move(event));
    }
    void end(engine::FinishReason reason = engine::FinishReason::kStop, std::optional<Error> error = {}) {
      engine::CompletionEvent event;
      event.finish.emplace();
      event.finish->reason = reason;
      event.finish->error = std::move(error);
      event.finish->timeline.queued = steady_clock().now();
      event.last = true;
      push(std::move(event));
    }
  };

  Result<std::unique_ptr<engine::CompletionStream>> submit(engine::CompletionRequest request, std::function<void()> on_event) override {
    if (refuse) return std::unexpected(*refuse);
    auto wire = std::make_shared<Wire>();
    wire->on_event = std::move(on_event);
    wire->request = std::move(request);
    const std::lock_guard lock(mutex_);
    wires_.push_back(wire);
    return std::make_unique<Stream>(wire);
  }
  engine::ServiceStats stats() const override {
    engine::ServiceStats stats;
    stats.last_beat = stalled ? steady_clock().now() - 1h : steady_clock().now();
    stats.in_step = stalled;
    stats.estimated_wait = 7s;
    return stats;
  }
  // The request that came as number `index`.
  std::shared_ptr<Wire> at(std::size_t index) {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      return wires_.size() > index;
    }));
    const std::lock_guard lock(mutex_);
    return wires_.at(index);
  }

  std::atomic<bool> stalled{false};
  std::optional<Error> refuse = {};

 private:
  class Stream final : public engine::CompletionStream {
   public:
    explicit Stream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
    ~Stream() override {
      wire_->dropped = true;
      const std::lock_guard lock(wire_->mutex);
      wire_->events.clear();
      wire_->on_event = nullptr;
    }
    std::optional<engine::CompletionEvent> next() override {
      const std::lock_guard lock(wire_->mutex);
      if (wire_->events.empty()) return std::nullopt;
      engine::CompletionEvent event = std::move(wire_->events.front());
      wire_->events.pop_front();
      return event;
    }
    std::optional<engine::CompletionEvent> wait(Duration) override { return next(); }
    void cancel() override { wire_->cancelled = true; }

   private:
    std::shared_ptr<Wire> wire_;
  };
  std::mutex mutex_;
  std::vector<std::shared_ptr<Wire>> wires_;
};

inline ModelSpec spec(std::string name, std::filesystem::path path) {
  ModelSpec spec;
  spec.name = std::move(name);
  spec.source = path.string();
  return spec;
}

struct Answer {
  int status = 0;
  http::Headers headers;
  std::string text;
  std::vector<std::string> events;  // of a stream: the data of each
  bool complete = false;
  json::Object json() const {
    auto value = json::parse(text, "an answer");
    EXPECT_TRUE(value && value->is_object()) << text;
    return value && value->is_object() ? value->get_object() : json::Object();
  }
  std::string error_code() const {
    const json::Object body = json();
    const json::Value* error = body.if_contains("error");
    return error && error->is_object() ? std::string(error->at("code").as_string()) : std::string();
  }
};

class TestServer {
 public:
  explicit TestServer(std::vector<ModelSpec> models, const std::function<void(ServeOptions&, ServerParts&)>& change = {}) {
    ServeOptions options;
    options.listen = {"127.0.0.1:0"};
    options.models = std::move(models);
    options.cpu.threads = 1;
    options.engine.cache_tokens = 4096;
    ServerParts parts;
    parts.version = "test";
    if (change) change(options, parts);
    auto started = Server::start(std::move(options), std::move(parts));
    EXPECT_TRUE(started) << started.error().message;
    server = std::move(*started);
    loaded = server->wait_until_loaded();
    client = std::move(*http::Client::make());
  }

  http::ClientRequest request(std::string method, const std::string& path, std::string body = {}) const {
    http::ClientRequest request;
    request.method = std::move(method);
    request.url = "http://" + server->addresses().front() + path;
    request.body = std::move(body);
    request.total_timeout = 60s;
    return request;
  }
  Answer send(http::ClientRequest request) const {
    Answer answer;
    std::promise<void> done;
    client->start(std::move(request), {.on_event = [&](http::SseEvent& event) { answer.events.push_back(event.data); },
                                       .on_done =
                                           [&](Status status, http::ClientResponse& response) {
                                             answer.status = response.status;
                                             answer.headers = response.headers;
                                             answer.text = response.body;
                                             answer.complete = status.has_value();
                                             done.set_value();
                                           }});
    done.get_future().wait();
    return answer;
  }
  Answer get(const std::string& path) const { return send(request("GET", path)); }
  Answer post(const std::string& path, const json::Object& body) const { return send(request("POST", path, boost::json::serialize(body))); }
  engine::ServiceStats stats() const { return server->registry().hosts().front()->service()->stats(); }

  std::unique_ptr<Server> server;
  std::unique_ptr<http::Client> client;
  Status loaded;
};

inline json::Object chat(std::string model, std::string text, std::int64_t max_tokens) {
  return {{"model", model},
          {"messages", json::Array{json::Object{{"role", "user"}, {"content", text}}}},
          {"max_tokens", max_tokens},
          {"temperature", 0}};
}

// A server whose only model "m" answers as the service is told.
struct Scripted {
  explicit Scripted(const std::function<void(ServeOptions&, ServerParts&)>& change = {})
      : server({spec("m", data_path("arch/llama"))}, [&](ServeOptions& options, ServerParts& parts) {
          parts.load = [this](const ModelSpec& model, const std::filesystem::path& path) -> Result<std::shared_ptr<ModelHost>> {
            WEIR_ASSIGN(auto loaded, engine::load_model(path, {.threads = 1}));
            auto own = std::make_unique<ScriptedService>();
            service = own.get();
            return ModelHost::make(model, std::make_unique<engine::LoadedModel>(std::move(loaded)), std::move(own), 128);
          };
          if (change) change(options, parts);
        }) {}
  json::Object body(bool stream) const {
    return {{"model", "m"}, {"prompt", json::Array{70, 71, 72}}, {"max_tokens", 8}, {"stream", stream}};
  }
  ScriptedService* service = nullptr;
  TestServer server;
};

}  // namespace weir::serving::testing
