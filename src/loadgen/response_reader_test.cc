// SPDX-License-Identifier: Apache-2.0
#include "loadgen/response_reader.h"

#include <gtest/gtest.h>

#include "loadgen/answer_parser.h"

namespace weir::loadgen {
namespace {

struct Parsed {
  std::string body;
  std::size_t taken = 0;
  ResponseReader reader;
};

Parsed parse(std::string_view bytes, std::size_t piece) {
  Parsed out;
  for (std::size_t at = 0; at < bytes.size() && !out.reader.done() && !out.reader.failed(); at += piece)
    out.taken += out.reader.feed(bytes.substr(at, piece), [&](std::string_view body) { out.body += body; });
  return out;
}

TEST(ResponseReader, EveryCutOfAChunkedStream) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
      "6;x=y\r\ndata: \r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Parsed p = parse(bytes + "HTTP/1.1", piece);
    EXPECT_TRUE(p.reader.done()) << piece;
    EXPECT_EQ(p.body, "data: hello") << piece;
    EXPECT_LE(p.taken, bytes.size()) << piece;
    EXPECT_TRUE(p.reader.event_stream() && p.reader.keep_alive());
    EXPECT_EQ(p.reader.status(), 200);
  }
}

TEST(ResponseReader, LengthsAndConnectionEnds) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabcdef", 100).body, "abc");
  EXPECT_FALSE(parse("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", 100).reader.keep_alive());
  EXPECT_TRUE(parse("HTTP/1.1 204 No Content\r\n\r\n", 3).reader.done());
  Parsed open = parse("HTTP/1.0 200 OK\r\n\r\nabc", 4);
  EXPECT_FALSE(open.reader.done());
  open.reader.end_of_input();
  EXPECT_TRUE(open.reader.done());
  EXPECT_FALSE(open.reader.keep_alive());
  Parsed cut = parse("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 4);
  cut.reader.end_of_input();
  EXPECT_TRUE(cut.reader.failed());
}

TEST(ResponseReader, RefusesWhatIsNotHttp) {
  for (const char* bad :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 xyz no\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "HTTP/1.1 999 ?\r\n\r\n"})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}}) EXPECT_TRUE(parse(bad, piece).reader.failed()) << bad;
  EXPECT_TRUE(parse("HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'a'), 1000).reader.failed());
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 1000; ++i) many += "A: b\r\n";
  EXPECT_TRUE(parse(many, 1000).reader.failed());
}

TEST(AnswerParser, FindsWhatCounts) {
  const AnswerPiece role = parse_event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", true);
  EXPECT_TRUE(role.valid);
  EXPECT_FALSE(role.content);
  EXPECT_EQ(parse_event(R"({"choices":[{"delta":{"content":"hé"}}]})", true).text, "hé");
  EXPECT_TRUE(parse_event(R"({"choices":[{"text":"x"}]})", false).content);
  EXPECT_TRUE(parse_event(R"({"choices":[{"delta":{"reasoning_content":"x"}}]})", false).content);
  EXPECT_TRUE(parse_event(R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})", false).content);
  EXPECT_FALSE(parse_event(R"({"choices":[{"delta":{"content":null,"tool_calls":[]}}]})", false).content);
  EXPECT_TRUE(parse_event("[DONE]", false).done);
  const AnswerPiece usage = parse_event(
      R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}},"timings":{"prompt_ms":5,"predicted_ms":2.5}})",
      false);
  EXPECT_EQ(usage.prompt_tokens, 9);
  EXPECT_EQ(usage.completion_tokens, 4);
  EXPECT_EQ(usage.cached_tokens, 8);
  EXPECT_DOUBLE_EQ(usage.prefill_s, 0.005);
  EXPECT_DOUBLE_EQ(usage.decode_s, 0.0025);
  EXPECT_EQ(usage.queue_s, -1);
}

TEST(AnswerParser, ErrorsAndNonsense) {
  const AnswerPiece error = parse_event(R"({"error":{"message":"out of memory","code":500}})", false);
  EXPECT_TRUE(error.error);
  EXPECT_EQ(error.text, "out of memory");
  EXPECT_EQ(parse_event(R"({"error":"plain"})", false).text, "plain");
  EXPECT_FALSE(parse_event(R"({"error":null,"choices":[]})", false).error);
  for (const char* bad : {"", "{", "[1]", "7", "{\"a\":}", "{} {}"}) EXPECT_FALSE(parse_event(bad, false).valid) << bad;
  EXPECT_FALSE(parse_event(std::string(100000, '['), false).valid);
  EXPECT_EQ(parse_event(R"({"usage":{"prompt_tokens":-5,"completion_tokens":"x"}})", false).prompt_tokens, -1);
}

}  // namespace
}  // namespace weir::loadgen
