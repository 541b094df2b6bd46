// SPDX-License-Identifier: Apache-2.0
// The client against our own server and against sockets that misbehave; TLS at both ends.
#include "http/client.h"

#include <fstream>
#include <mutex>

#include "base/testing.h"
#include "http/http_test_support.h"
#include "http/tls_test_support.h"

namespace weir::http::testing {
namespace {

std::unique_ptr<Client> make_client(ClientOptions options = {}) {
  auto client = Client::make(std::move(options));
  EXPECT_TRUE(client) << client.error().message;
  return client ? std::move(*client) : nullptr;
}

// Answers every connection with the bytes given, then closes it.
class Canned {
 public:
  explicit Canned(std::string bytes, bool close_first = false) : bytes_(std::move(bytes)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    ::listen(fd_, 16);
    SocketAddress address;
    address.size = sizeof(address.storage);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
    url_ = "http://127.0.0.1" + format_socket_address(address).substr(7) + "/";
    thread_ = std::thread([this, close_first] {
      while (true) {
        const int connection = ::accept(fd_, nullptr, nullptr);
        if (connection < 0) return;
        ++connections_;
        char buffer[4096];
        if (!close_first && ::recv(connection, buffer, sizeof(buffer), 0) > 0)
          ::send(connection, bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
        ::close(connection);
      }
    });
  }
  ~Canned() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  const std::string& url() const { return url_; }
  int connections() const { return connections_; }

 private:
  std::string bytes_, url_;
  int fd_ = -1;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

std::string url_of(const Server& server, const std::string& target, const std::string& scheme = "http://") {
  return scheme + server.addresses().at(0) + target;
}

ClientRequest request_to(std::string url, std::string method = "GET", std::string body = {}) {
  ClientRequest request;
  request.url = std::move(url);
  request.method = std::move(method);
  request.body = std::move(body);
  return request;
}

TEST(Client, FetchesAndKeepsItsConnection) {
  const auto server = start_server();
  const auto client = make_client();
  const auto first = client->fetch(request_to(url_of(*server, "/hello")));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "hello");
  EXPECT_FALSE(first->times.reused);
  EXPECT_LE(first->times.started, first->times.connected);
  EXPECT_LE(first->times.connected, first->times.sent);
  EXPECT_LE(first->times.sent, first->times.first_byte);
  EXPECT_LE(first->times.first_byte, first->times.last_byte);
  const auto second = client->fetch(request_to(url_of(*server, "/echo"), "POST", std::string(900000, 'x')));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->body.size(), 900000u);
  EXPECT_TRUE(second->times.reused);
  const auto head = client->fetch(request_to(url_of(*server, "/hello"), "HEAD"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers.get("Content-Length"), "5");
  EXPECT_EQ(server->stats().connections_accepted, 1u);
  EXPECT_EQ(client->fetch(request_to(url_of(*server, "/nowhere")))->status, 404);
}

TEST(Client, ReadsEventsAsTheyCome) {
  const auto server = start_server({}, {route("POST", "/events", [](const Request& request, const Responder& responder) {
                                     responder.start_events();
                                     responder.send_event(request.body);
                                     responder.send_comment("nothing");
                                     responder.send_event("two\nlines", "kind");
                                     responder.send_event("[DONE]");
                                     responder.finish();
                                   })});
  const auto client = make_client();
  std::mutex mutex;
  std::vector<std::string> events;
  int head_status = 0;
  std::atomic<bool> done{false};
  ClientHandlers handlers;
  handlers.on_head = [&](const ClientResponse& response) { head_status = response.status; };
  handlers.on_event = [&](SseEvent& event) {
    const std::lock_guard lock(mutex);
    events.push_back(event.event + ":" + event.data);
  };
  handlers.on_done = [&](const Status& status, const ClientResponse& response) {
    EXPECT_TRUE(status);
    EXPECT_TRUE(response.body.empty());
    EXPECT_GT(response.body_bytes, 0u);
    done = true;
  };
  client->start(request_to(url_of(*server, "/events"), "POST", "one"), std::move(handlers));
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(head_status, 200);
  EXPECT_EQ(events, (std::vector<std::string>{"message:one", "kind:two\nlines", "message:[DONE]"}));
}

TEST(Client, CancelsWhereverTheRequestIs) {
  std::atomic<bool> server_told{false};
  const auto server = start_server({}, {route("GET", "/held", [&](const Request&, const Responder& responder) {
                                     responder.on_gone([&, keep = std::make_shared<std::optional<Responder>>(responder)](Gone) {
                                       keep->reset();
                                       server_told = true;
                                     });
                                   })});
  std::atomic<int> cancelled{0};
  const auto client = make_client();  // ends first, and tells its last request so
  const auto start = [&](const std::string& url) {
    ClientHandlers handlers;
    handlers.on_done = [&](const Status& status, const ClientResponse&) {
      EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
      ++cancelled;
    };
    return client->start(request_to(url), std::move(handlers));
  };
  const Client::Call held = start(url_of(*server, "/held"));
  ASSERT_TRUE(eventually([&] { return server->stats().requests_active == 1; }));
  held.cancel();
  held.cancel();
  EXPECT_TRUE(eventually([&] { return server_told.load(); }));
  start(url_of(*server, "/held")).cancel();  // before it is sent
  EXPECT_TRUE(eventually([&] { return cancelled == 2; }));
  start(url_of(*server, "/held"));  // and by the client's end
}

TEST(Client, EveryWaitHasItsTimeout) {
  const auto server = start_server({}, {route("GET", "/silent",
                                              [](const Request&, const Responder& responder) {
                                                responder.on_gone([keep = std::make_shared<Responder>(responder)](Gone) {});
                                              }),
                                        route("GET", "/stalls", [](const Request&, const Responder& responder) {
                                          responder.start_stream(200, {});
                                          responder.write("some");
                                          responder.on_gone([keep = std::make_shared<Responder>(responder)](Gone) {});
                                        })});
  const auto client = make_client();
  const auto error_of = [&](const std::string& target, void (*set)(ClientRequest&)) {
    ClientRequest request = request_to(url_of(*server, target));
    set(request);
    const auto response = client->fetch(std::move(request));
    EXPECT_FALSE(response);
    return response ? std::string() : std::string(error_code_name(response.error().code)) + ": " + response.error().message;
  };
  EXPECT_NE(error_of("/silent", [](ClientRequest& r) { r.first_byte_timeout = 30ms; }).find("deadline: GET http"), std::string::npos);
  EXPECT_NE(error_of("/stalls", [](ClientRequest& r) { r.silence_timeout = 30ms; }).find("fell silent"), std::string::npos);
  EXPECT_NE(error_of("/stalls", [](ClientRequest& r) { r.total_timeout = 30ms; }).find("too long"), std::string::npos);
}

TEST(Client, TellsWhatIsWrongWithAResponse) {
  const auto client = make_client();
  const std::pair<const char*, ErrorCode> cases[] = {
      {"nonsense\r\n\r\n", ErrorCode::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", ErrorCode::kNetwork},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", ErrorCode::kNetwork},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", ErrorCode::kCorrupt},
      {"HTTP/1.1 101 Switching\r\n\r\n", ErrorCode::kCorrupt},
      {"", ErrorCode::kNetwork},
  };
  for (const auto& [bytes, code] : cases) {
    const Canned server(bytes);
    const auto response = client->fetch(request_to(server.url()));
    ASSERT_FALSE(response) << bytes;
    EXPECT_EQ(response.error().code, code) << bytes << response.error().message;
  }
  const Canned until_end("HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_EQ(client->fetch(request_to(until_end.url()))->body, "all of it");
  const Canned large("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'));
  ClientRequest request = request_to(large.url());
  request.max_body_bytes = 1000;
  EXPECT_EQ(client->fetch(std::move(request)).error().code, ErrorCode::kExhausted);
  for (const char* url : {"http://127.0.0.1:1/", "http://nothing.invalid/", "ftp://x/", "http://127.0.0.1:1/ x"})
    EXPECT_FALSE(client->fetch(request_to(url))) << url;
}

TEST(Client, SendsAgainWhatIsSafeWhenAKeptConnectionWasClosed) {
  const auto client = make_client();
  const Canned server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");  // closes although it says it keeps
  for (int i = 0; i < 20; ++i) {
    const auto response = client->fetch(request_to(server.url()));
    ASSERT_TRUE(response) << i << response.error().message;
    EXPECT_EQ(response->body, "ok");
  }
  EXPECT_EQ(server.connections(), 20);
}

TEST(Client, RunsAThousandRequestsAtOnce) {
  raise_descriptor_limit();
  std::mutex mutex;
  std::vector<Responder> waiting;
  const auto server = start_server({}, {route("GET", "/wait", [&](const Request&, const Responder& responder) {
                                     const std::lock_guard lock(mutex);
                                     waiting.push_back(responder);
                                   })});
  const auto client = make_client();
  constexpr std::size_t kRequests = 1000;
  std::atomic<std::size_t> done{0};
  for (std::size_t i = 0; i < kRequests; ++i) {
    ClientHandlers handlers;
    handlers.on_done = [&](const Status& status, const ClientResponse& response) {
      EXPECT_TRUE(status) << status.error().message;
      EXPECT_EQ(response.body, "now");
      ++done;
    };
    client->start(request_to(url_of(*server, "/wait")), std::move(handlers));
  }
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return waiting.size() == kRequests;
  }));
  for (const Responder& responder : waiting) responder.respond(Response::text(200, "now"));
  EXPECT_TRUE(eventually([&] { return done == kRequests; }));
  EXPECT_EQ(client->kept_connections(), kRequests);
}

TEST(Client, SpeaksToUnixSockets) {
  const weir::testing::TemporaryFolder folder;
  ServerOptions options;
  options.listen = {{"unix:" + (folder.path() / "s").string()}};
  const auto server = start_server(std::move(options));
  const auto client = make_client();
  ClientRequest request = request_to("http://weir/hello");
  request.unix_socket = (folder.path() / "s").string();
  const auto response = client->fetch(std::move(request));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "hello");
}

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_ = make_identity("test authority");
    authority_.save(file("ca.pem"), file("ca.key"));
    make_identity("first", &authority_).save(file("server.pem"), file("server.key"));
    make_identity("some client", &authority_).save(file("client.pem"), file("client.key"));
  }
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }
  std::unique_ptr<Server> start(bool client_certificates = false) {
    ServerOptions options;
    options.listen = {{.address = "127.0.0.1:0", .tls = true}};
    options.tls = {file("server.pem"), file("server.key"), client_certificates ? file("ca.pem") : "", client_certificates};
    return start_server(std::move(options), {route("GET", "/who",
                                                   [](const Request& request, const Responder& responder) {
                                                     responder.respond(Response::text(200, request.client_certificate));
                                                   }),
                                             route("GET", "/events", [this](const Request&, const Responder& responder) {
                                               responder.start_events();
                                               const std::lock_guard lock(mutex_);
                                               streams_.push_back(responder);
                                             })});
  }
  ClientTls trusting() const { return {file("ca.pem"), "", "", true}; }

  weir::testing::TemporaryFolder folder_;
  Identity authority_;
  std::mutex mutex_;
  std::vector<Responder> streams_;
};

TEST_F(Tls, VerifiesTheServerAndItsName) {
  const auto server = start();
  const std::string url = url_of(*server, "/echo", "https://");
  const auto client = make_client({.tls = trusting()});
  const auto response = client->fetch(request_to(url, "POST", std::string(200000, 'x')));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body.size(), 200000u);
  EXPECT_FALSE(make_client()->fetch(request_to(url)));  // the system does not know the authority
  ASSERT_TRUE(make_client({.tls = {"", "", "", false}})->fetch(request_to(url)));
  const std::string port = url.substr(url.rfind(':'));
  EXPECT_TRUE(client->fetch(request_to("https://localhost" + port, "POST", "x")));
  EXPECT_FALSE(client->fetch(request_to("https://127.0.0.2" + port, "POST", "x")));  // no name of the certificate
  RawClient plain(server->addresses().at(0));
  plain.send(get("/hello"));
  EXPECT_EQ(status_of(plain.receive_all()), 0);
  EXPECT_TRUE(plain.ended());
}

TEST_F(Tls, AsksForClientCertificates) {
  const auto server = start(true);
  const std::string url = url_of(*server, "/who", "https://");
  EXPECT_FALSE(make_client({.tls = trusting()})->fetch(request_to(url)));
  ClientTls known = trusting();
  known.certificate = file("client.pem");
  known.key = file("client.key");
  const auto response = make_client({.tls = known})->fetch(request_to(url));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "CN=some client");
}

TEST_F(Tls, ReloadsWithoutDroppingConnections) {
  const auto server = start();
  const auto client = make_client({.tls = trusting()});
  std::mutex mutex;
  std::string heard;
  std::atomic<bool> done{false};
  ClientHandlers handlers;
  handlers.on_event = [&](const SseEvent& event) {
    const std::lock_guard lock(mutex);
    heard += event.data;
  };
  handlers.on_done = [&](const Status& status, const ClientResponse&) {
    EXPECT_TRUE(status);
    done = true;
  };
  client->start(request_to(url_of(*server, "/events", "https://")), std::move(handlers));
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex_);
    return streams_.size() == 1;
  }));
  streams_[0].send_event("before ");

  const Identity other = make_identity("other authority");
  make_identity("second", &other).save(file("server.pem"), file("server.key"));
  ASSERT_TRUE(server->reload_tls());
  other.save(file("other.pem"), file("other.key"));
  const auto renewed = make_client({.tls = {file("other.pem"), "", "", true}})->fetch(request_to(url_of(*server, "/hello", "https://")));
  EXPECT_TRUE(renewed) << renewed.error().message;
  streams_[0].send_event("after");
  streams_[0].finish();
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(heard, "before after");

  std::ofstream(file("server.pem")) << "broken";
  const Status refused = server->reload_tls();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("server.pem"), std::string::npos);
  EXPECT_TRUE(make_client({.tls = {file("other.pem"), "", "", true}})->fetch(request_to(url_of(*server, "/hello", "https://"))));
}

TEST_F(Tls, TellsWhenTheClientGoes) {
  const auto server = start();
  auto client = make_client({.tls = trusting()});
  client->start(request_to(url_of(*server, "/events", "https://")), {});
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex_);
    return streams_.size() == 1;
  }));
  std::atomic<bool> told{false};
  streams_[0].on_gone([&](Gone) { told = true; });
  client.reset();
  EXPECT_TRUE(eventually([&] { return told.load(); }));
}

}  // namespace
}  // namespace weir::http::testing
