// SPDX-License-Identifier: Apache-2.0
#include "http/chunked_body.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::http {
namespace {

struct Reading {
  std::string body;
  std::size_t used = 0;
  int status = 0;  // of the failure
  bool done = false;
  friend bool operator==(const Reading&, const Reading&) = default;
};

Reading read(std::string_view bytes, std::size_t step, std::uint64_t max_bytes = 1000) {
  ChunkedBody chunks;
  Reading reading;
  while (reading.used < bytes.size() && !chunks.done() && !chunks.failure())
    reading.used += chunks.parse(bytes.substr(reading.used, step), max_bytes, reading.body);
  reading.done = chunks.done();
  if (chunks.failure()) reading.status = chunks.failure()->status;
  return reading;
}

TEST(ChunkedBody, ReadsTheSameInPiecesOfAnySize) {
  const std::string bytes = "5;a=\"\\\";\" ; b\r\nhello\r\n0a \t;x\r\n0123456789\r\n000\r\nX-Trailer: v\r\nY:\r\n\r\nGET";
  for (std::size_t step = 1; step <= bytes.size(); ++step)
    EXPECT_EQ(read(bytes, step), (Reading{"hello0123456789", bytes.size() - 3, 0, true})) << step;
}

// What a client sent last, and after which it waits: an answer must not need another byte.
TEST(ChunkedBody, RefusesAtTheFirstByteThatIsWrong) {
  struct Case {
    std::string bytes;
    int status;
  };
  const std::vector<Case> cases = {
      {"z", 400},
      {"\r", 400},
      {"\n", 400},
      {" ", 400},
      {"-", 400},
      {"+", 400},
      {";", 400},
      {"0x", 400},
      {"1z", 400},
      {"1\n", 400},
      {"1 2", 400},
      {"1 \r", 400},
      {"1\r\r", 400},
      {"1\rx", 400},
      {"1;a=\"\r", 400},
      {"1;a=\n", 400},
      {"1;a\rb", 400},
      {"1;\x01", 400},
      {"1;a=\x80", 400},
      {"1;a/", 400},
      {"1\r\nxy", 400},
      {"1\r\nx\n", 400},
      {"1\r\nx\rx", 400},
      {"1\r\nx\r\nz", 400},
      {"0\r\n:", 400},
      {"0\r\n ", 400},
      {"0\r\nX ", 400},
      {"0\r\nX\r", 400},
      {"0\r\n\n", 400},
      {"0\r\n\rx", 400},
      {"0\r\nX: a\n", 400},
      {"0\r\nX: a\rb", 400},
      {"0\r\nX: \x01", 400},
      {"0\r\ncontent-LENGTH:", 400},
      {"0\r\nTransfer-Encoding:", 400},
      {"0\r\nHost:", 400},
      {std::string(17, '0'), 400},
      {"3e9", 413},
      {"fff", 413},
      {"1f4\r\n" + std::string(500, 'a') + "\r\n1f5", 413},
  };
  for (const Case& one : cases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{1000}}) {
      const Reading reading = read(one.bytes, step);
      EXPECT_EQ(reading.status, one.status) << one.bytes;
      EXPECT_EQ(reading.used, one.bytes.size()) << one.bytes;  // and not before
    }
  }
}

TEST(ChunkedBody, TakesWhatIsJustAllowed) {
  EXPECT_TRUE(read(std::string(16, '0') + "\r\n\r\n", 3).done);
  EXPECT_TRUE(read("3e8\r\n" + std::string(1000, 'a') + "\r\n0\r\n\r\n", 7).done);
  EXPECT_TRUE(read("FfF\r\n" + std::string(4095, 'a') + "\r\n0\r\n\r\n", 7, 5000).done);
}

TEST(ChunkedBody, BoundsExtensionsAndTrailers) {
  const auto extension = [](std::size_t bytes) { return ";" + std::string(bytes - 1, 'a'); };
  EXPECT_TRUE(read("0" + extension(ChunkedBody::kMaxExtension) + "\r\n\r\n", 100).done);
  EXPECT_EQ(read("0" + extension(ChunkedBody::kMaxExtension + 1), 100).status, 400);
  EXPECT_EQ(read("0" + std::string(ChunkedBody::kMaxExtension + 1, ' '), 100).status, 400);
  std::string many;
  for (std::size_t total = 0; total < ChunkedBody::kMaxExtensions; total += 1024) many += "1" + extension(1024) + "\r\nx\r\n";
  EXPECT_TRUE(read(many + "0\r\n\r\n", 100).done);
  EXPECT_EQ(read(many + "0;", 100).status, 400);
  const std::string lines = "0\r\nX: " + std::string(2000, 'a') + "\r\nY: ";
  EXPECT_TRUE(read(lines + std::string(2000, 'a') + "\r\n\r\n", 100).done);
  EXPECT_EQ(read(lines + std::string(2100, 'a'), 100).status, 400);
  EXPECT_EQ(read("0\r\n" + std::string(5000, 'a'), 100).status, 400);
}

}  // namespace
}  // namespace weir::http
