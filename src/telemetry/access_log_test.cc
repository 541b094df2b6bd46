// SPDX-License-Identifier: Apache-2.0
// Lines that are valid whatever clients send, without texts unless asked; bounded, reopened, and never in the way of a request.
#include "telemetry/access_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file_io.h"
#include "base/json.h"
#include "base/testing.h"
#include "telemetry/json_line.h"

namespace weir::telemetry {
namespace {

constexpr std::int64_t kTime = 1'764'664'230'123;  // 2025-12-02 08:30:30.123 UTC

AccessEntry entry() {
  AccessEntry e;
  e.http_id = 7;
  e.id = "chatcmpl-1";
  e.method = "POST";
  e.route = "/v1/chat/completions";
  e.peer = "127.0.0.1:4711";
  e.user_agent = "OpenAI/Python 2.0";
  e.status = 200;
  e.bytes_in = 120;
  e.bytes_out = 3456;
  e.total_ms = 56.789;
  e.streamed = true;
  e.caller = "alice";
  e.model = "smollm2";
  e.prompt_tokens = 12;
  e.generated_tokens = 34;
  e.ttft_ms = 5.25;
  e.finish_reasons = {"stop", "length"};
  e.prompt = "a secret prompt";
  e.answer = "a secret answer";
  return e;
}

json::Object parsed(const std::string& line) {
  const auto value = json::parse(line, "line");
  EXPECT_TRUE(value && value->is_object()) << line;
  return value && value->is_object() ? value->get_object() : json::Object();
}

std::size_t lines_of(const std::filesystem::path& path) {
  const std::string text = read_file(path).value_or("");
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(AccessLine, IsOneObjectWithWhatIsKnown) {
  const json::Object line = parsed(access_line(entry(), {}, kTime));
  EXPECT_EQ(line.at("time"), "2025-12-02T08:30:30.123Z");
  EXPECT_EQ(line.at("method"), "POST");
  EXPECT_EQ(line.at("route"), "/v1/chat/completions");
  EXPECT_EQ(line.at("status"), 200);
  EXPECT_EQ(line.at("bytes_out"), 3456);
  EXPECT_EQ(line.at("total_ms"), 56.789);
  EXPECT_EQ(line.at("key"), "alice");
  EXPECT_EQ(line.at("prompt_tokens"), 12);
  EXPECT_EQ(line.at("ttft_ms"), 5.25);
  EXPECT_EQ(line.at("finish_reasons"), (json::Array{"stop", "length"}));
  EXPECT_FALSE(line.contains("cached_tokens"));  // not known
  EXPECT_FALSE(line.contains("error"));
}

TEST(AccessLine, HoldsTextsOnlyWhenAsked) {
  for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
    const std::string without = access_line(entry(), {.format = format}, kTime);
    EXPECT_EQ(without.find("secret"), std::string::npos) << without;
    const std::string with = access_line(entry(), {.format = format, .prompts = true, .max_text = 8}, kTime);
    EXPECT_NE(with.find("a secret"), std::string::npos) << with;
    EXPECT_EQ(with.find("a secret p"), std::string::npos) << with;  // cut at 8 bytes
  }
}

TEST(AccessLine, WhatClientsSendCannotForgeOrBreakIt) {
  AccessEntry e = entry();
  e.user_agent = "x\"}\n{\"status\":500,\x01\xff\xc3\x28 \xed\xa0\x80 \xf0\x9f\x98\x80";
  e.peer = "1\n2";
  for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
    const std::string line = access_line(e, {.format = format}, kTime);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    if (format != LogFormat::kJson) continue;
    const json::Object object = parsed(line);
    EXPECT_EQ(object.at("status"), 200);
    EXPECT_EQ(object.at("user_agent"),
              "x\"}\n{\"status\":500,\x01\xEF\xBF\xBD\xEF\xBF\xBD( \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xf0\x9f\x98\x80");
  }
}

TEST(AccessLine, ValuesOfTextCannotPassForOtherFields) {
  AccessEntry e = entry();
  e.model = "x status=500";
  EXPECT_NE(access_line(e, {.format = LogFormat::kText}, kTime).find(" model=\"x status=500\" "), std::string::npos);
}

TEST(AccessLine, TextIsForReading) {
  EXPECT_EQ(access_line(entry(), {.format = LogFormat::kText}, kTime),
            "2025-12-02T08:30:30.123Z 127.0.0.1:4711 POST /v1/chat/completions 200 3456B 56.8ms id=chatcmpl-1 key=alice model=smollm2 "
            "prompt_tokens=12 generated_tokens=34 ttft=5.2ms finish=stop finish=length");
}

TEST(CutText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcd", 3), "abc");
  EXPECT_EQ(cut_text("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(cut_text("\xf0\x9f\x98\x80", 3), "");
}

TEST(AccessLog, AllLinesArriveFromManyThreads) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "access.log";
  {
    auto log = AccessLog::open({.file = file});
    ASSERT_TRUE(log);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 250; ++i) (*log)->write(entry());
      });
    for (std::thread& thread : threads) thread.join();
    (*log)->flush();
    EXPECT_EQ(lines_of(file), 1000u);
    (*log)->write(entry());
    EXPECT_EQ((*log)->dropped(), 0u);
  }
  EXPECT_EQ(lines_of(file), 1001u);  // the end writes what waits
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) parsed(line);
}

TEST(AccessLog, AMovedFileIsWrittenAnewAfterReopening) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "access.log", old = folder.path() / "access.log.1";
  auto log = AccessLog::open({.file = file});
  ASSERT_TRUE(log);
  (*log)->write(entry());
  (*log)->flush();
  std::filesystem::rename(file, old);
  (*log)->write(entry());
  (*log)->flush();
  EXPECT_EQ(lines_of(old), 2u);
  ASSERT_TRUE((*log)->reopen());
  (*log)->write(entry());
  (*log)->flush();
  EXPECT_EQ(lines_of(old), 2u);
  EXPECT_EQ(lines_of(file), 1u);
}

TEST(AccessLog, WhatCannotBeReopenedLeavesTheOldFile) {
  const testing::TemporaryFolder folder;
  const auto inner = folder.path() / "logs";
  std::filesystem::create_directory(inner);
  auto log = AccessLog::open({.file = inner / "access.log"});
  ASSERT_TRUE(log);
  std::filesystem::rename(inner, folder.path() / "moved");
  EXPECT_FALSE((*log)->reopen());
  (*log)->write(entry());
  (*log)->flush();
  EXPECT_EQ(lines_of(folder.path() / "moved" / "access.log"), 1u);
}

TEST(AccessLog, ADiskThatDoesNotTakeLinesLosesThemAndHoldsNobodyUp) {
  const testing::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);  // reads nothing for now
  auto log = AccessLog::open({.file = pipe, .max_queued = 64u << 10});
  ASSERT_TRUE(log);
  for (int i = 0; i < 2000; ++i) (*log)->write(entry());  // the pipe holds 64 KiB, the queue as much
  EXPECT_GT((*log)->dropped(), 0u);
  EXPECT_LT((*log)->dropped(), 2000u);
  ::signal(SIGPIPE, SIG_IGN);
  ::close(reader);  // the write that waits fails now
  log->reset();
}

TEST(AccessLog, AFullDiskIsCounted) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto log = AccessLog::open({.file = "/dev/full"});
  ASSERT_TRUE(log);
  (*log)->write(entry());
  (*log)->flush();
  EXPECT_EQ((*log)->dropped(), 1u);
}

TEST(AccessLog, AFileThatCannotBeOpenedIsAnError) {
  const auto log = AccessLog::open({.file = "/does/not/exist/access.log"});
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("/does/not/exist/access.log"), std::string::npos);
}

}  // namespace
}  // namespace weir::telemetry
