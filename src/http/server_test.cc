// SPDX-License-Identifier: Apache-2.0
// A server over loopback: requests, limits, hostile clients, streams, clients that go, drains.
#include "http/server.h"

#include <sys/stat.h>

#include <condition_variable>
#include <mutex>
#include <random>

#include "base/testing.h"
#include "http/http_test_support.h"

namespace weir::http::testing {
namespace {

// Collects access records.
class Log {
 public:
  struct Entry {
    std::string method, route;
    int status;
    bool complete, streamed;
    Gone gone;
    std::uint64_t bytes_in, bytes_out;
  };
  std::function<void(const AccessRecord&)> observer() {
    return [this](const AccessRecord& r) {
      const std::lock_guard lock(mutex_);
      entries_.push_back({std::string(r.method), std::string(r.route), r.status, r.complete, r.streamed, r.gone, r.bytes_in, r.bytes_out});
    };
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  Entry at(std::size_t i) {
    EXPECT_TRUE(eventually([&] { return size() > i; }));
    const std::lock_guard lock(mutex_);
    return entries_.at(i);
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Responders that a test answers when it likes.
class Held {
 public:
  Route route(std::string pattern = "/held") {
    return testing::route("GET", std::move(pattern), [this](const Request&, const Responder& responder) {
      const std::lock_guard lock(mutex_);
      held_.push_back(responder);
    });
  }
  Responder take() {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      return !held_.empty();
    }));
    const std::lock_guard lock(mutex_);
    Responder responder = std::move(held_.front());
    held_.erase(held_.begin());
    return responder;
  }

 private:
  std::mutex mutex_;
  std::vector<Responder> held_;
};

TEST(Server, AnswersOnKeptConnectionsAndPipelinedRequestsInOrder) {
  Log log;
  ServerOptions options;
  options.on_request_done = log.observer();
  const auto server = start_server(std::move(options));
  RawClient client(server->addresses().at(0));
  ASSERT_TRUE(client.send(get("/hello") + post("/echo", "one") + post("/echo", "two") + get("/hello", "Connection: close\r\n")));
  EXPECT_TRUE(client.response().ends_with("\r\n\r\nhello"));
  EXPECT_TRUE(client.response().ends_with("\r\n\r\none"));
  EXPECT_TRUE(client.response().ends_with("\r\n\r\ntwo"));
  EXPECT_NE(client.receive_all().find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(log.at(1).route, "/echo");
  EXPECT_EQ(log.at(1).bytes_in, 3u);
  EXPECT_EQ(log.at(3).status, 200);
  EXPECT_TRUE(log.at(3).complete);
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(Server, AnswersHeadOptionsAndWhatItHasNot) {
  const auto server = start_server();
  RawClient client(server->addresses().at(0));
  client.send("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n" + get("/hello"));
  const std::string head = client.receive_until("\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(client.response().ends_with("hello"));  // and no body came before
  client.send("OPTIONS /echo HTTP/1.1\r\nHost: a\r\nOrigin: http://x\r\nAccess-Control-Request-Method: POST\r\n\r\n");
  const std::string options = client.response();
  EXPECT_EQ(status_of(options), 204);
  EXPECT_NE(options.find("Allow: POST, OPTIONS\r\n"), std::string::npos);
  EXPECT_EQ(options.find("Access-Control"), std::string::npos);  // off unless asked for
  client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" + get("/nowhere") + get("/echo") + "BREW /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(client.response()), 204);
  EXPECT_EQ(status_of(client.response()), 404);
  EXPECT_EQ(status_of(client.response()), 405);
  EXPECT_EQ(status_of(client.response()), 405);
}

TEST(Server, SendsCrossOriginHeadersOnlyToOriginsOfItsList) {
  ServerOptions options;
  options.cors.origins = {"https://app.example"};
  const auto server = start_server(std::move(options));
  RawClient client(server->addresses().at(0));
  client.send(get("/hello", "Origin: https://app.example\r\n") + get("/hello", "Origin: https://evil.example\r\n"));
  EXPECT_NE(client.response().find("Access-Control-Allow-Origin: https://app.example\r\n"), std::string::npos);
  EXPECT_EQ(client.response().find("Access-Control-Allow-Origin"), std::string::npos);
  client.send("OPTIONS /echo HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n\r\n");
  EXPECT_NE(client.response().find("Access-Control-Allow-Methods: POST, OPTIONS\r\n"), std::string::npos);
}

TEST(Server, SaysContinueOnlyToABodyItWants) {
  Route refusing = route("POST", "/private", [](const Request&, const Responder& r) { r.respond(Response::text(200, "")); });
  refusing.precheck = [](const Request& request) {
    return request.headers.has("Authorization") ? std::nullopt : std::optional(Response::text(401, "no"));
  };
  const auto server = start_server({}, {refusing});
  const std::string address = server->addresses().at(0);
  RawClient client(address);
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_TRUE(client.response().ends_with("body"));
  for (const auto& [target, more, status] : {std::tuple{"/private", "Content-Length: 4\r\n", 401},
                                             {"/echo", "Content-Length: 2000000\r\n", 413},
                                             {"/nowhere", "Content-Length: 4\r\n", 404}}) {
    RawClient other(address);
    other.send(std::string("POST ") + target + " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + more + "\r\n");
    EXPECT_EQ(status_of(other.receive_all()), status) << target;
    EXPECT_TRUE(other.ended());
  }
  RawClient strange(address);
  strange.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(status_of(strange.receive_all()), 417);
}

TEST(Server, AFaultyHandlerHurtsItsOwnRequestOnly) {
  const auto server = start_server({}, {route("GET", "/throws", [](const Request&, const Responder&) { throw std::runtime_error("x"); }),
                                        route("GET", "/forgets", [](const Request&, const Responder&) {}),
                                        route("GET", "/twice",
                                              [](const Request&, const Responder& r) {
                                                EXPECT_TRUE(r.respond(Response::text(200, "first")));
                                                EXPECT_FALSE(r.respond(Response::text(200, "second")));
                                                EXPECT_EQ(r.write("x"), Push::kGone);
                                              }),
                                        route("GET", "/splits", [](const Request&, const Responder& r) {
                                          Response response = Response::text(200, "ok");
                                          response.headers.add("X-Evil", "a\r\nSet-Cookie: b");
                                          response.headers.add("Bad Name", "x");
                                          response.headers.add("Content-Length", "99");
                                          r.respond(std::move(response));
                                        })});
  RawClient client(server->addresses().at(0));
  client.send(get("/throws") + get("/twice") + get("/splits"));
  EXPECT_EQ(status_of(client.response()), 500);
  EXPECT_TRUE(client.response().ends_with("first"));
  const std::string split = client.response();
  EXPECT_EQ(split.find("\r\nSet-Cookie"), std::string::npos);
  EXPECT_EQ(split.find("Bad Name"), std::string::npos);
  EXPECT_TRUE(split.ends_with("Content-Length: 2\r\n\r\nok"));
  client.send(get("/forgets"));
  EXPECT_EQ(status_of(client.receive_all()), 500);
}

TEST(Server, StreamsOneWritePerEventAndDoneApart) {
  Held held;
  const auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  const Responder responder = held.take();
  EXPECT_TRUE(responder.start_events());
  const std::string head = client.receive_until("\r\n\r\n");
  EXPECT_NE(head.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_NE(head.find("Transfer-Encoding: chunked"), std::string::npos);
  for (const std::string text : {"one", "two", "three"}) {
    EXPECT_EQ(responder.send_event(text), Push::kOk);
    const std::string data = "data: " + text + "\n\n";
    EXPECT_EQ(client.receive(), fmt::format("{:x}\r\n{}\r\n", data.size(), data));
  }
  responder.send_event("[DONE]");
  EXPECT_EQ(client.receive_until("\r\n"), "e\r\n");
  responder.finish();
  EXPECT_EQ(responder.send_event("late"), Push::kGone);
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "data: [DONE]\n\n\r\n0\r\n\r\n");
  client.send(get("/hello"));  // the connection is kept
  EXPECT_TRUE(client.response().ends_with("hello"));
}

TEST(Server, StreamsToHttp10UntilTheConnectionEndsAndNothingToHead) {
  const auto server = start_server({}, {route("GET", "/s", [](const Request&, const Responder& r) {
                                     r.start_stream(200, {});
                                     r.write("ab");
                                     r.write("");
                                     r.write("cd");
                                     r.finish();
                                   })});
  RawClient old(server->addresses().at(0));
  old.send("GET /s HTTP/1.0\r\n\r\n");
  const std::string all = old.receive_all();
  EXPECT_TRUE(all.ends_with("\r\n\r\nabcd")) << all;
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  RawClient client(server->addresses().at(0));
  client.send("HEAD /s HTTP/1.1\r\nHost: a\r\n\r\n" + get("/s") + get("/hello"));
  EXPECT_EQ(status_of(client.receive_until("\r\n\r\n")), 200);
  EXPECT_EQ(status_of(client.receive_until("\r\n\r\n")), 200);
  EXPECT_EQ(client.receive_until("0\r\n\r\n"), "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n");
  EXPECT_TRUE(client.response().ends_with("hello"));
}

TEST(Server, CommentsASilentStream) {
  Held held;
  const auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  const Responder responder = held.take();
  responder.start_events({}, {.comment_after = 20ms});
  EXPECT_NE(client.receive_until(": keep-alive\n\n\r\n").find(": keep-alive"), std::string::npos);
  EXPECT_NE(client.receive_until(": keep-alive\n\n\r\n").find(": keep-alive"), std::string::npos);
  responder.finish();
}

TEST(Server, ADroppedStreamIsCutSoThatTheClientSeesIt) {
  Held held;
  Log log;
  ServerOptions options;
  options.on_request_done = log.observer();
  const auto server = start_server(std::move(options), {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  {
    const Responder responder = held.take();
    responder.start_events();
    responder.send_event("one");
    client.receive_until("one\n\n\r\n");
  }
  EXPECT_EQ(client.receive_all(), "");  // no last chunk
  EXPECT_TRUE(client.ended());
  EXPECT_FALSE(log.at(0).complete);
}

enum class Leave { kClose, kReset, kEndSending, kCloseBehindUnreadBytes };

void expect_told(Leave how, bool streaming) {
  Held held;
  ServerOptions options;
  options.limits.max_pipelined_bytes = 1000;
  const auto server = start_server(std::move(options), {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  const Responder responder = held.take();
  std::atomic<int> told{0};
  std::atomic<Gone> reason{Gone::kNo};
  responder.on_gone([&](Gone gone) {
    reason = gone;
    ++told;
  });
  if (streaming) {
    responder.start_events();
    client.receive_until("\r\n\r\n");
  }
  if (how == Leave::kCloseBehindUnreadBytes) {
    client.send(std::string(50000, 'x'));  // more than is read ahead, less than the system holds for us
    client.end_sending();
  }
  if (how == Leave::kEndSending) client.end_sending();
  if (how == Leave::kReset) client.reset();
  if (how == Leave::kClose) client.close();
  EXPECT_TRUE(eventually([&] { return told == 1; })) << static_cast<int>(how) << streaming;
  EXPECT_EQ(reason, Gone::kClientClosed);
  EXPECT_EQ(responder.gone(), Gone::kClientClosed);
  EXPECT_TRUE(!streaming || responder.send_event("x") == Push::kGone);
  std::atomic<bool> at_once{false};
  responder.on_gone([&](Gone) { at_once = true; });
  EXPECT_TRUE(at_once);
  responder.abort();
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
  EXPECT_EQ(told, 1);
}

TEST(Server, TellsAtOnceWhenTheClientGoesHoweverItGoes) {
  for (const Leave how : {Leave::kClose, Leave::kReset, Leave::kEndSending, Leave::kCloseBehindUnreadBytes}) {
    expect_told(how, false);
    expect_told(how, true);
  }
}

TEST(Server, AClientThatEndsItsSideStillGetsItsAnswer) {
  Held held;
  const auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  client.end_sending();
  const Responder responder = held.take();
  EXPECT_TRUE(eventually([&] { return responder.gone() == Gone::kClientClosed; }));
  EXPECT_TRUE(responder.respond(Response::text(200, std::string(1 << 20, 'x'))));
  EXPECT_EQ(client.receive_all().size() >> 20, 1u);
}

// A handler that gives up since nobody seems to wait is no fault of the server's.
TEST(Server, AClientThatEndedItsSideIsNotToldOfAFault) {
  Held held;
  const auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  client.end_sending();
  {
    const Responder responder = held.take();
    EXPECT_TRUE(eventually([&] { return responder.gone() == Gone::kClientClosed; }));
  }
  EXPECT_EQ(client.receive_all(), "");
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(Server, ASlowReaderIsCutAtTheBoundOfItsQueue) {
  Held held;
  const auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0), 4096);
  client.send(get("/held"));
  const Responder responder = held.take();
  responder.start_events({}, {.max_queued_bytes = 100000});
  std::atomic<Gone> reason{Gone::kNo};
  responder.on_gone([&](Gone gone) { reason = gone; });
  const std::string event(10000, 'x');
  Push last = Push::kOk;
  for (int i = 0; i < 5000 && last == Push::kOk; ++i) {
    last = responder.send_event(event);
    EXPECT_LE(responder.queued_bytes(), 120000u);
  }
  EXPECT_EQ(last, Push::kGone);
  EXPECT_TRUE(eventually([&] { return reason == Gone::kTooSlow; }));
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(Server, AStreamThatRefusesWaitsForItsReader) {
  Held held;
  const auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0), 4096);
  client.send(get("/held"));
  const Responder responder = held.take();
  responder.start_stream(200, {}, {.max_queued_bytes = 50000, .overflow = Overflow::kRefuse});
  std::atomic<int> room{0};
  responder.on_writable([&] { ++room; });
  const std::string piece(10000, 'x');
  std::size_t pushed = 0;
  while (responder.write(piece) == Push::kOk) pushed += piece.size();
  EXPECT_EQ(responder.write(piece), Push::kFull);
  std::thread reader([&] { client.receive_until("0\r\n\r\n"); });
  EXPECT_TRUE(eventually([&] { return room > 0; }));
  EXPECT_TRUE(eventually([&] { return responder.write(piece) == Push::kOk; }));
  responder.finish();
  reader.join();
  EXPECT_GE(pushed, 40000u);
}

TEST(Server, AWriteThatNobodyReadsEndsAtItsTimeout) {
  Log log;
  ServerOptions options;
  options.on_request_done = log.observer();
  options.limits.write_timeout = 50ms;
  options.limits.min_bytes_per_second = 1u << 30;
  const auto server = start_server(
      std::move(options),
      {route("GET", "/big", [](const Request&, const Responder& r) { r.respond(Response::text(200, std::string(32u << 20, 'x'))); })});
  RawClient client(server->addresses().at(0), 4096);
  client.send(get("/big"));
  EXPECT_EQ(log.at(0).gone, Gone::kTooSlow);
  EXPECT_FALSE(log.at(0).complete);
}

TEST(Server, ADeadlineIsToldAndThenAnsweredByTheServer) {
  Held held;
  ServerOptions options;
  options.limits.deadline_grace = 30ms;
  Route limited = held.route();
  limited.deadline = 30ms;
  const auto server = start_server(std::move(options), {limited, held.route("/own")});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  const Responder silent = held.take();
  std::atomic<Gone> reason{Gone::kNo};
  silent.on_gone([&](Gone gone) { reason = gone; });
  EXPECT_EQ(status_of(client.receive_all()), 504);
  EXPECT_EQ(reason, Gone::kDeadline);
  EXPECT_FALSE(silent.respond(Response::text(200, "late")));

  RawClient other(server->addresses().at(0));
  other.send(get("/own"));
  const Responder answers = held.take();
  answers.on_gone([&, answers](Gone) { answers.respond(Response::text(408, "own words")); });
  answers.set_deadline(steady_clock().now() + 10ms);
  EXPECT_TRUE(other.response().ends_with("own words"));

  RawClient third(server->addresses().at(0));
  third.send(get("/own"));
  const Responder streams = held.take();
  streams.start_events();
  streams.set_deadline(steady_clock().now() + 10ms);
  EXPECT_NE(third.receive_all().find("text/event-stream"), std::string::npos);
  EXPECT_TRUE(third.ended());
}

TEST(Server, SlowClientsAreToldAndHoldNobodyElse) {
  ServerOptions options;
  options.limits.header_timeout = 150ms;
  options.limits.body_timeout = 150ms;
  options.limits.idle_timeout = 300ms;
  const auto server = start_server(std::move(options));
  const std::string address = server->addresses().at(0);
  std::vector<RawClient> slow;
  for (int i = 0; i < 50; ++i) {
    slow.emplace_back(address);
    slow.back().send(i % 2 == 0 ? "GET /hello HTTP/1.1\r\nHost: a\r\nX: "
                                : "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
  }
  RawClient idle(address);
  for (int drop = 0; drop < 3; ++drop) {  // a byte now and then changes nothing
    for (RawClient& client : slow) client.send("a");
    RawClient quick(address);
    quick.send(get("/hello"));
    EXPECT_EQ(status_of(quick.response()), 200);
    std::this_thread::sleep_for(20ms);
  }
  for (RawClient& client : slow) EXPECT_EQ(status_of(client.receive_all()), 408);
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_TRUE(idle.ended());
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(Server, LimitsConnectionsRequestsPerConnectionAndAllBodiesTogether) {
  Held held;
  ServerOptions options;
  options.limits.max_connections = 4;
  options.limits.max_requests_per_connection = 2;
  options.limits.max_total_body_bytes = 100000;
  const auto server = start_server(std::move(options), {held.route()});
  const std::string address = server->addresses().at(0);
  {
    std::vector<RawClient> clients;
    for (int i = 0; i < 4; ++i) clients.emplace_back(address);
    EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 4; }));
    RawClient fifth(address);
    EXPECT_EQ(status_of(fifth.receive_all()), 503);
    EXPECT_TRUE(fifth.ended());
    clients[0].send(get("/hello") + get("/hello") + get("/hello"));
    EXPECT_EQ(clients[0].response().find("Connection: close"), std::string::npos);
    EXPECT_NE(clients[0].response().find("Connection: close"), std::string::npos);
    EXPECT_EQ(clients[0].receive_all(), "");
    clients[1].send(post("/echo", std::string(90000, 'x')).substr(0, 80000));
    EXPECT_TRUE(eventually([&] { return server->stats().body_bytes_held > 60000; }));
    clients[2].send(post("/echo", std::string(60000, 'x')));
    EXPECT_EQ(status_of(clients[2].receive_all()), 503);
  }
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
  EXPECT_EQ(server->stats().body_bytes_held, 0u);
  RawClient again(address);
  again.send(post("/echo", std::string(90000, 'x')));
  EXPECT_EQ(status_of(again.response()), 200);
}

// Requests of every kind with parts flipped, cut, doubled or moved: whatever comes, there is an answer or an end, and the next request
// works.
TEST(Server, SurvivesAThousandBrokenRequests) {
  raise_descriptor_limit();
  ServerOptions options;
  options.limits.header_timeout = 2s;
  const auto server = start_server(std::move(options));
  const std::string address = server->addresses().at(0);
  const std::vector<std::string> seeds = {
      get("/hello"),
      post("/echo", "body"),
      get("/hello?a=%20b", "Accept: */*\r\nTE: trailers\r\n"),
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
      "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
  std::mt19937 random(7);
  const auto below = [&](std::size_t bound) { return random() % std::max<std::size_t>(bound, 1); };
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = seeds[below(seeds.size())];
    for (std::size_t change = 0; change < 1 + below(4); ++change) {
      const std::size_t at = below(bytes.size());
      switch (below(6)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, 1 + below(8)); break;
        case 2: bytes.insert(at, bytes.substr(below(bytes.size()), below(30))); break;
        case 3: bytes.insert(at, 1, "\r\n\0 \t:"[below(6)]); break;
        case 4: bytes.resize(at); break;
        default: bytes += seeds[below(seeds.size())];
      }
    }
    RawClient client(address);
    const std::size_t cut = below(bytes.size());
    client.send(std::string_view(bytes).substr(0, cut));
    client.send(std::string_view(bytes).substr(cut));
    if (round % 3 == 0) {
      client.reset();
      continue;
    }
    client.end_sending();
    const std::string answer = client.receive_all();
    EXPECT_TRUE(client.ended()) << round << ": " << bytes;
    EXPECT_TRUE(answer.empty() || status_of(answer) >= 100) << answer;
    EXPECT_EQ(answer.find("HTTP/1.1 5"), std::string::npos) << round << ": " << bytes;
  }
  RawClient next(address);
  next.send(get("/hello"));
  EXPECT_TRUE(next.response().ends_with("hello"));
  next.close();
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
  EXPECT_EQ(server->stats().requests_active, 0u);
}

TEST(Server, DrainFinishesWhatCanFinishAndTellsWhatItCut) {
  Held held;
  const auto server = start_server({}, {held.route("/held/{name}")});
  const std::string address = server->addresses().at(0);
  RawClient idle(address), finishing(address), stuck(address);
  finishing.send(get("/held/a"));
  const Responder first = held.take();
  stuck.send(get("/held/b"));
  const Responder second = held.take();
  std::atomic<Gone> reason{Gone::kNo};
  second.on_gone([&](Gone gone) { reason = gone; });
  first.start_events();
  std::thread answer([&] {
    while (RawClient(address).connected()) std::this_thread::sleep_for(5ms);  // until nobody is accepted any more
    first.send_event("last");
    first.finish();
  });
  const DrainReport report = server->drain(300ms);
  answer.join();
  EXPECT_EQ(report.finished, 1u);
  ASSERT_EQ(report.cut.size(), 1u);
  EXPECT_EQ(report.cut[0].route, "/held/{name}");
  EXPECT_EQ(reason, Gone::kShutdown);
  EXPECT_TRUE(finishing.receive_all().ends_with("data: last\n\n\r\n0\r\n\r\n"));
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_EQ(server->stats().connections_open, 0u);
}

TEST(Server, RespondersMayOutliveTheirServer) {
  Held held;
  auto server = start_server({}, {held.route()});
  RawClient client(server->addresses().at(0));
  client.send(get("/held"));
  const Responder responder = held.take();
  server.reset();
  EXPECT_EQ(responder.gone(), Gone::kShutdown);
  EXPECT_FALSE(responder.respond(Response::text(200, "late")));
  responder.set_deadline(steady_clock().now());
}

TEST(Server, ListensOnIpv6UnixSocketsAndInheritedDescriptors) {
  const weir::testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "weir.sock").string();
  const int inherited = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::listen(inherited, 8), 0);
  ServerOptions options;
  options.io_threads = 2;
  options.listen = {{"unix:" + path}, {fmt::format("fd:{}", inherited)}, {"[::1]:0"}};
  auto started = Server::start(options, basic_routes());
  if (!started) {  // no IPv6 here
    options.listen.pop_back();
    started = Server::start(options, basic_routes());
  }
  ASSERT_TRUE(started) << started.error().message;
  for (std::string address : (*started)->addresses()) {
    if (address.starts_with("0.0.0.0")) address = "127.0.0.1" + address.substr(7);
    RawClient client(address);
    client.send(get("/hello"));
    EXPECT_TRUE(client.response().ends_with("hello")) << address;
  }
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  ServerOptions second;
  second.listen = {{"unix:" + path}};
  EXPECT_FALSE(Server::start(second, basic_routes()));  // it is in use
  started->reset();
  EXPECT_NE(::stat(path.c_str(), &status), 0);
}

TEST(Server, RefusesWhatItCannotListenOn) {
  const auto start = [](const std::string& address) {
    ServerOptions options;
    options.listen = {{address}};
    return Server::start(options, basic_routes());
  };
  const auto server = start_server();
  for (const std::string& bad : {std::string("nonsense"), std::string("127.0.0.1:99999"), std::string("fd:0"), std::string("fd:99999"),
                                 std::string("unix:"), server->addresses().at(0)}) {
    const auto refused = start(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find(bad), std::string::npos) << refused.error().message;
  }
}

// 2,000 connections, 256 of them streaming, fewer where descriptors are scarce: both ends are ours, so each takes two.
TEST(Server, HoldsThousandsOfConnectionsWhileHundredsStream) {
  const std::size_t descriptors = raise_descriptor_limit();
  const std::size_t connections = std::min<std::size_t>(2000, (descriptors - std::min<std::size_t>(descriptors, 100)) / 2);
  const std::size_t streams = std::min<std::size_t>(256, connections / 4);
  std::mutex mutex;
  std::vector<Responder> responders;
  const auto server = start_server({}, {route("GET", "/stream", [&](const Request&, const Responder& responder) {
                                     responder.start_events();
                                     const std::lock_guard lock(mutex);
                                     responders.push_back(responder);
                                   })});
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < connections; ++i) {
    clients.emplace_back(server->addresses().at(0));
    ASSERT_TRUE(clients.back().connected()) << i;
  }
  for (std::size_t i = 0; i < streams; ++i) clients[i].send(get("/stream"));
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return responders.size() == streams;
  }));
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == connections; }));
  constexpr int kSteps = 50;
  for (int step = 0; step < kSteps; ++step) {  // as an engine's thread does, all streams in one step
    for (const Responder& responder : responders) EXPECT_EQ(responder.send_event("{\"token\":" + std::to_string(step) + "}"), Push::kOk);
    RawClient& other = clients[streams + static_cast<std::size_t>(step) * 7 % (connections - streams)];
    other.send(get("/hello"));
    EXPECT_TRUE(other.response().ends_with("hello"));
  }
  for (const Responder& responder : responders) {
    responder.send_event("[DONE]");
    responder.finish();
  }
  for (std::size_t i = 0; i < streams; ++i) {
    const std::string all = clients[i].receive_until("0\r\n\r\n");
    EXPECT_NE(all.find("{\"token\":49}\n\n\r\ne\r\ndata: [DONE]"), std::string::npos) << i;
    EXPECT_EQ(std::count(all.begin(), all.end(), '{'), kSteps);
  }
  for (RawClient& client : clients) client.send(get("/hello"));  // every connection is still good
  for (RawClient& client : clients) EXPECT_EQ(status_of(client.response()), 200);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server->stats().connections_open == 0; }));
}

}  // namespace
}  // namespace weir::http::testing
