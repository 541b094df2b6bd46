// SPDX-License-Identifier: Apache-2.0
// Everything that reads bytes without a socket: heads, bodies, responses, events, targets, trace headers.
#include <gtest/gtest.h>

#include "http/request_parser.h"
#include "http/response_parser.h"
#include "http/router.h"
#include "http/sse.h"
#include "http/trace_context.h"
#include "http/url.h"

namespace weir::http {
namespace {

// Feeds the pieces one after another, as a connection does, and gives back what is left unread.
std::string feed(RequestParser& parser, const std::vector<std::string>& pieces) {
  std::string pending;
  for (const std::string& piece : pieces) {
    pending += piece;
    while (!parser.failure() && !parser.done()) {
      const bool before = parser.head_done();
      const std::size_t used = parser.parse(pending);
      pending.erase(0, used);
      if (!before && parser.head_done() && !parser.failure()) parser.limit_body(1000);
      if (used == 0) break;
    }
  }
  return pending;
}

constexpr const char* kChunked =
    "POST /a/b?c=d HTTP/1.1\r\nHost: localhost:80\r\nTransfer-Encoding: chunked\r\nX-Empty:\r\n\r\n"
    "5;ext=\"v\"\r\nhello\r\nA\r\n, chunked \r\n0\r\nX-Trailer: dropped\r\n\r\n";

TEST(RequestParser, ReadsTheSameRequestAtEverySplit) {
  const std::string bytes = std::string(kChunked) + "GET";
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    for (const std::size_t second : {split, std::min(split + 1, bytes.size()), std::min(split + 7, bytes.size())}) {
      RequestParser parser({});
      const std::string rest = feed(parser, {bytes.substr(0, split), bytes.substr(split, second - split), bytes.substr(second)});
      ASSERT_TRUE(parser.done()) << split << " " << (parser.failure() ? parser.failure()->message : "");
      const Request& request = parser.request();
      EXPECT_EQ(request.method, "POST");
      EXPECT_EQ(request.path, "/a/b");
      EXPECT_EQ(request.query, "c=d");
      EXPECT_EQ(request.body, "hello, chunked ");
      EXPECT_EQ(request.header("x-EMPTY"), "");
      EXPECT_FALSE(request.headers.has("X-Trailer"));
      EXPECT_EQ(rest, "GET");
    }
  }
}

TEST(RequestParser, ReadsTheSameRequestByteByByte) {
  RequestParser parser({});
  std::vector<std::string> bytes;
  for (const char c : std::string(kChunked)) bytes.emplace_back(1, c);
  EXPECT_EQ(feed(parser, bytes), "");
  ASSERT_TRUE(parser.done());
  EXPECT_EQ(parser.request().body, "hello, chunked ");
}

TEST(Parsers, ReadAnEmptyChunkedBodyByteByByte) {  // Beast 1.81 would abort on this
  RequestParser parser({});
  std::vector<std::string> bytes;
  for (const char c : std::string("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"))
    bytes.emplace_back(1, c);
  EXPECT_EQ(feed(parser, bytes), "");
  EXPECT_TRUE(parser.done());
  ResponseParser response(false);
  std::string pending, body;
  for (const char c : std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) {
    pending += c;
    pending.erase(0, response.parse(pending, body));
  }
  EXPECT_TRUE(response.done());
}

TEST(RequestParser, StopsBehindItsRequest) {
  RequestParser parser({});
  EXPECT_EQ(feed(parser, {"\r\nPOST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabcdef"}), "def");
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.request().body, "abc");
  EXPECT_FALSE(parser.request().keep_alive);
}

struct Refused {
  const char* bytes;
  int status;
};

TEST(RequestParser, RefusesWhatAnotherServerMightReadDifferently) {
  const Refused cases[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a:port\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n\tfolded: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01z\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX\x80: b\r\n\r\n", 400},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
      {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 400},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", 400},
      {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /%2 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0b"
       "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\nx\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\"\n\"\r\nx\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000001\r\nx", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx", 413},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx", 413},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n", 413},
  };
  for (const Refused& one : cases) {
    RequestParser parser({});
    feed(parser, {one.bytes});
    ASSERT_TRUE(parser.failure()) << one.bytes;
    EXPECT_EQ(parser.failure()->status, one.status) << one.bytes << parser.failure()->message;
  }
}

TEST(RequestParser, TakesTargetsOfAbsoluteForm) {
  const auto target_of = [](const std::string& target) {
    RequestParser parser({});
    feed(parser, {"GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n"});
    return parser.failure() ? std::string(parser.failure()->message) : parser.request().target + " " + parser.request().path;
  };
  EXPECT_EQ(target_of("http://example.com:80/a/b?c=d"), "/a/b?c=d /a/b");
  EXPECT_EQ(target_of("HTTPS://[::1]/"), "/ /");
  EXPECT_EQ(target_of("http://h"), "/ /");
  EXPECT_EQ(target_of("http://h?x"), "/?x /");
  for (const char* target :
       {"http://", "http:///a", "http://u@h/a", "http://h:port/a", "ftp://h/a", "h:443", "http:/a", "http://h#a", "?a"})
    EXPECT_EQ(target_of(target), "the request's target is malformed") << target;
}

TEST(RequestParser, RefusesNulBytes) {
  const std::string good = "GET /abc HTTP/1.1\r\nHost: host\r\nX-Name: value\r\n\r\n";
  for (std::size_t at = 0; at + 1 < good.size(); ++at) {
    std::string bytes = good;
    bytes.insert(at, 1, '\0');
    RequestParser parser({});
    feed(parser, {bytes});
    EXPECT_TRUE(parser.failure()) << at;
  }
}

TEST(RequestParser, LimitsTargetHeadLinesAndChunkHeads) {
  const auto status_of = [](const std::string& bytes) {
    RequestParser parser({.max_head_bytes = 2000, .max_target_bytes = 500, .max_lines = 20});
    feed(parser, {bytes});
    return parser.failure() ? parser.failure()->status : 0;
  };
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(status_of("GET /" + std::string(600, 'a')), 414);  // before its line ends
  EXPECT_EQ(status_of("GET /" + std::string(500, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status_of("GET /" + std::string(499, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
  EXPECT_EQ(status_of(begin + "X: " + std::string(2000, 'a')), 431);
  std::string many = begin;
  for (int i = 0; i < 19; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 0);
  EXPECT_EQ(status_of(many + "X: y\r\n\r\n"), 431);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(chunked + "1;" + std::string(5000, 'a')), 400);
  EXPECT_EQ(status_of(chunked + "0\r\nX: " + std::string(5000, 'a')), 400);
}

TEST(ResponseParser, ReadsTheSameResponseAtEverySplit) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nHTTP";
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    ResponseParser parser(false);
    std::string body, pending;
    for (const std::string& piece : {bytes.substr(0, split), bytes.substr(split)}) {
      pending += piece;
      pending.erase(0, parser.parse(pending, body));
    }
    ASSERT_TRUE(parser.done()) << split << parser.failure();
    EXPECT_EQ(parser.status(), 200);
    EXPECT_EQ(parser.headers().get("x"), "y");
    EXPECT_TRUE(parser.keep_alive());
    EXPECT_EQ(body, "abcde");
    EXPECT_EQ(pending, "HTTP");
  }
}

TEST(ResponseParser, TellsACutBodyFromOneThatEndsWithTheConnection) {
  std::string body;
  ResponseParser until_end(false);
  until_end.parse("HTTP/1.1 200 OK\r\n\r\nabc", body);
  until_end.end();
  EXPECT_TRUE(until_end.done());
  EXPECT_EQ(body, "abc");
  EXPECT_FALSE(until_end.keep_alive());
  for (const char* bytes : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na"}) {
    ResponseParser cut(false);
    cut.parse(bytes, body);
    cut.end();
    EXPECT_FALSE(cut.done()) << bytes;
    EXPECT_FALSE(cut.failure().empty()) << bytes;
  }
}

std::vector<SseEvent> events_of(const std::vector<std::string>& pieces) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (const std::string& piece : pieces) EXPECT_TRUE(parser.feed(piece, [&](SseEvent& event) { events.push_back(std::move(event)); }));
  return events;
}

TEST(SseParser, GivesTheSameEventsAtEverySplit) {
  const std::string bytes =
      "\xef\xbb\xbf: comment\n\ndata: one\n\nevent: named\r\nid: 7\r\ndata:two\r\ndata:  three\r\n\r\ndata\rretry: 20\r\r"
      "event: lost\n\n:\ndata: \xc3\xa9\nunknown: x\n\ndata: [DONE]\n\n";
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      const auto events = events_of({bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)});
      ASSERT_EQ(events.size(), 5u) << first << " " << second;
      EXPECT_EQ(events[0].data, "one");
      EXPECT_EQ(events[0].event, "message");
      EXPECT_EQ(events[1].data, "two\n three");
      EXPECT_EQ(events[1].event, "named");
      EXPECT_EQ(events[1].id, "7");
      EXPECT_EQ(events[2].data, "");
      EXPECT_EQ(events[3].data, "\xc3\xa9");
      EXPECT_EQ(events[3].event, "message");
      EXPECT_EQ(events[3].id, "7");
      EXPECT_EQ(events[4].data, "[DONE]");
    }
  }
}

TEST(SseParser, ReadsBackWhatIsFormatted) {
  for (const std::string data : {"", "plain", "two\nlines", "\n", "a\n\n\nb", " space", ":colon", "{\"a\":\"b\"}"}) {
    const auto events = events_of({format_event(data, "kind", "id\n3"), format_comment("a\nb")});
    ASSERT_EQ(events.size(), 1u) << data;
    EXPECT_EQ(events[0].data, data);
    EXPECT_EQ(events[0].event, "kind");
    EXPECT_EQ(events[0].id, "id3");
  }
  EXPECT_EQ(events_of({format_event("a\r\nb\rc")}).at(0).data, "a\nb\nc");
}

TEST(SseParser, StopsAtItsLimitAndDropsAnUnfinishedEvent) {
  SseParser parser(100);
  int events = 0;
  const auto count = [&](SseEvent&) { ++events; };
  EXPECT_TRUE(parser.feed("data: " + std::string(80, 'a') + "\n\ndata: b\n", count));
  EXPECT_EQ(events, 1);
  EXPECT_TRUE(parser.pending());
  EXPECT_FALSE(parser.feed("data: " + std::string(100, 'a'), count));
  EXPECT_FALSE(parser.feed("\n\n", count));
  EXPECT_EQ(events, 1);
}

TEST(Router, LiteralsWinOverParametersAndTheRestTakesSlashes) {
  std::vector<Route> routes;
  for (const char* pattern : {"/v1/models/{id*}", "/v1/models/loaded", "/v1/{kind}/{name}/x", "/"}) {
    routes.push_back({"GET", pattern, [](const Request&, const Responder&) {}});
  }
  routes.push_back({"DELETE", "/v1/models/{id*}", [](const Request&, const Responder&) {}});
  const auto router = Router::make(routes);
  ASSERT_TRUE(router);
  EXPECT_EQ(router->match("GET", "/v1/models/loaded").route->pattern, "/v1/models/loaded");
  const auto rest = router->match("GET", "/v1/models/owner%2Fname/q4");
  EXPECT_EQ(rest.route->pattern, "/v1/models/{id*}");
  ASSERT_EQ(rest.parameters.size(), 1u);
  EXPECT_EQ(rest.parameters[0].second, "owner/name/q4");
  EXPECT_EQ(router->match("DELETE", "/v1/models/loaded").parameters.at(0).second, "loaded");
  EXPECT_EQ(router->match("HEAD", "/").route->method, "GET");
  EXPECT_EQ(router->match("POST", "/v1/models/a").route, nullptr);
  EXPECT_EQ(router->match("POST", "/v1/models/a").allow, "DELETE, GET, HEAD, OPTIONS");
  EXPECT_EQ(router->match("GET", "/v1/models/").route, nullptr);  // a parameter takes no empty segment
  EXPECT_EQ(router->match("GET", "/v1//y/x").route, nullptr);
  EXPECT_TRUE(router->match("GET", "/v1/models/%00").bad_path);
  EXPECT_EQ(router->match("GET", "/nowhere").allow, "");
}

TEST(Router, RefusesTablesThatAreAmbiguous) {
  const auto handler = [](const Request&, const Responder&) {};
  EXPECT_FALSE(Router::make({{"GET", "/a/{x}", handler}, {"GET", "/a/{y}", handler}}));
  EXPECT_FALSE(Router::make({{"GET", "a", handler}}));
  EXPECT_FALSE(Router::make({{"GET", "/{x*}/y", handler}}));
  EXPECT_FALSE(Router::make({{"GET", "/a{x}", handler}}));
  EXPECT_FALSE(Router::make({{"G T", "/", handler}}));
  EXPECT_FALSE(Router::make({{"GET", "/", nullptr}}));
}

TEST(Message, DecodesQueriesAndFindsTokens) {
  Request request;
  request.query = "a=1+2&b=%41%2f&a=3&empty";
  EXPECT_EQ(request.query_parameter("a"), "1 2");
  EXPECT_EQ(request.query_parameter("b"), "A/");
  EXPECT_EQ(request.query_parameter("empty"), "");
  EXPECT_EQ(request.query_parameter("c"), std::nullopt);
  Headers headers;
  headers.add("Connection", "keep-alive, Upgrade");
  EXPECT_TRUE(headers.has_token("connection", "upgrade"));
  EXPECT_FALSE(headers.has_token("connection", "up"));
  EXPECT_EQ(header_safe("a\r\nX: b"), "a  X: b");
}

TEST(Url, TakesUrlsApart) {
  const auto url = parse_url("https://[::1]:8443/v1?x=1#part");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, "8443");
  EXPECT_EQ(url->authority, "[::1]:8443");
  EXPECT_EQ(url->target, "/v1?x=1");
  EXPECT_EQ(parse_url("http://host?x")->target, "/?x");
  EXPECT_EQ(parse_url("http://host")->port, "80");
  for (const char* bad : {"host/path", "ftp://host", "http://", "http://u:p@host/", "http://host:/", "http://host:99999/", "http://a b/",
                          "http://[::1/", "http://h/\r\nX: y"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

TEST(TraceContext, ReadsTheHeaderStrictlyAndWritesItBack) {
  const std::string header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto context = parse_traceparent(header);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_id, "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(format_traceparent(*context), header);
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more"));
  for (const char* bad :
       {"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
  EXPECT_TRUE(parse_traceparent(format_traceparent({make_trace_id(0, 0), make_span_id(0), false})));
}

}  // namespace
}  // namespace weir::http
