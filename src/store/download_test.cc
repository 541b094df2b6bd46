// SPDX-License-Identifier: Apache-2.0
#include "store/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "store/test_downloads.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;

const std::string& body() {
  static const std::string content = sample_content(3'000'000);
  return content;
}

TEST(Download, BringsTheWholeFileAndItsChecksum) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, body()); });
  DownloadBench bench(server.url("/file"));
  std::vector<std::uint64_t> seen;
  bench.watcher.on_progress = [&](const Progress& progress) { seen.push_back(progress.done); };
  const auto file = bench.run();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size, body().size());
  EXPECT_EQ(file->sha256, sha256_of(body()));
  EXPECT_EQ(file->verified_by, VerifiedBy::kNobody);
  EXPECT_EQ(bench.content(), body());
  EXPECT_EQ(bench.files_left(), 1u);
  EXPECT_EQ(seen.front(), 0u);
  EXPECT_EQ(seen.back(), body().size());
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST(Download, ContinuesAfterABrokenConnection) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.number > 0) return connection.file(request, body());
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: \"v1\""});
    connection.send(std::string_view(body()).substr(0, 1'000'000));
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].header("range"), "bytes=1000000-");
  EXPECT_EQ(requests[1].header("if-range"), "\"v1\"");
}

TEST(Download, StartsAgainWhenNothingTellsTheVersion) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.number > 0) return connection.file(request, body(), "");
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size())});
    connection.send(std::string_view(body()).substr(0, 1'000'000));
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
  EXPECT_EQ(server.requests()[1].header("range"), "");
}

TEST(Download, ContinuesWithoutAnEtagWhenTheChecksumIsKnown) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.number > 0) return connection.file(request, body(), "W/\"weak\"");
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: W/\"weak\""});
    connection.send(std::string_view(body()).substr(0, 1'000'000));
  });
  DownloadBench bench(server.url("/file"));
  bench.request.sha256 = sha256_of(body());
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
  EXPECT_EQ(server.requests()[1].header("range"), "bytes=1000000-");
  EXPECT_EQ(server.requests()[1].header("if-range"), "");
}

TEST(Download, GivesUpAfterBoundedTriesAndKeepsThePart) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) {  // promises more than it ever sends
    connection.head("200 OK", {"Content-Length: 1000", "ETag: \"v1\""});
    connection.send(std::string(10, 'x'));
  });
  DownloadBench bench(server.url("/file"));
  bench.limits.retries = 3;
  EXPECT_THAT(bench.failure(), HasSubstr("repeat the command to continue"));
  EXPECT_EQ(server.requests().size(), 4u);
  EXPECT_EQ(bench.waits,
            (std::vector<std::chrono::milliseconds>{std::chrono::seconds(1), std::chrono::seconds(2), std::chrono::seconds(4)}));
  EXPECT_FALSE(bench.final_there());
  EXPECT_GT(bench.part_size(), 0u);
}

TEST(Download, LengthThatContradictsTheCatalogueIsRefusedBeforeTheBody) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, body()); });
  DownloadBench bench(server.url("/file"));
  bench.request.size = body().size() + 1;
  EXPECT_THAT(bench.failure(), HasSubstr("3000000 bytes where the catalogue says 3000001"));
  EXPECT_EQ(bench.files_left(), 0u);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(Download, WrongChecksumLeavesNothing) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, body()); });
  DownloadBench bench(server.url("/file"));
  bench.request.sha256 = sha256_of("something else");
  const auto file = bench.run();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(file.error().message, HasSubstr(sha256_of(body())));
  EXPECT_EQ(bench.files_left(), 0u);
}

TEST(Download, ServerWithoutRangesIsReadFromTheStart) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: \"v1\""});
    connection.send(request.number > 0 ? std::string_view(body()) : std::string_view(body()).substr(0, 2'000'000));
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
  EXPECT_EQ(server.requests()[1].header("range"), "bytes=2000000-");
}

TEST(Download, NewVersionBetweenTriesReplacesTheOldPart) {
  const std::string newer = sample_content(2'500'000, 7);
  TestServer server([&](const ServedRequest& request, ServedConnection& connection) {
    if (request.number > 0) return connection.file(request, newer, "\"v2\"");
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: \"v1\""});
    connection.send(std::string_view(body()).substr(0, 1'000'000));
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), newer);
}

TEST(Download, PartialAnswerOfAnotherVersionIsNotAppended) {
  const std::string newer = sample_content(3'000'000, 7);  // same length; the server ignores If-Range
  TestServer server([&](const ServedRequest& request, ServedConnection& connection) {
    if (request.number == 0) {
      connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: \"v1\""});
      connection.send(std::string_view(body()).substr(0, 1'000'000));
    } else if (request.range_start() > 0) {
      connection.answer("206 Partial Content", std::string_view(newer).substr(request.range_start()),
                        {"ETag: \"v2\"", fmt::format("Content-Range: bytes {}-2999999/3000000", request.range_start())});
    } else {
      connection.file(request, newer, "\"v2\"");
    }
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), newer);
}

TEST(Download, PartialAnswerForAnotherRangeIsNotAppended) {
  TestServer server([&](const ServedRequest& request, ServedConnection& connection) {
    if (request.number == 0) {
      connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: \"v1\""});
      connection.send(std::string_view(body()).substr(0, 1'000'000));
    } else if (request.range_start() > 0) {
      connection.answer("206 Partial Content", std::string_view(body()).substr(500'000),
                        {"ETag: \"v1\"", "Content-Range: bytes 500000-2999999/3000000"});
    } else {
      connection.file(request, body());
    }
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
}

TEST(Download, StalledTransferIsGivenUpAndContinued) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.number > 0) return connection.file(request, body());
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: \"v1\""});
    connection.send(std::string_view(body()).substr(0, 1'000'000));
    connection.hang();
  });
  DownloadBench bench(server.url("/file"));
  bench.limits.timeouts.stall = std::chrono::milliseconds(500);
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
  EXPECT_EQ(server.requests().at(1).header("range"), "bytes=1000000-");
}

TEST(Download, ServerThatNeverAnswersIsADeadline) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) { connection.hang(); });
  DownloadBench bench(server.url("/file"));
  bench.limits.timeouts.stall = std::chrono::milliseconds(200);
  bench.limits.retries = 1;
  const auto file = bench.run();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kDeadline);
  EXPECT_EQ(bench.files_left(), 0u);
}

TEST(Download, SlowButSteadyTransferSucceeds) {
  const std::string content = sample_content(80);
  TestServer server([&](const ServedRequest&, ServedConnection& connection) {
    connection.head("200 OK", {"Content-Length: 80"});
    for (char c : content) {
      connection.send({&c, 1});
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  DownloadBench bench(server.url("/file"));
  bench.limits.timeouts.stall = std::chrono::milliseconds(3000);  // less than the whole takes
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), content);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(Download, BodyBeyondTheKnownSizeIsCutOff) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.head("200 OK", {"Transfer-Encoding: chunked"});
    for (int i = 0; i < 100 && connection.send("10000\r\n" + std::string(0x10000, 'x') + "\r\n"); ++i) {
    }
    connection.send("0\r\n\r\n");
  });
  DownloadBench bench(server.url("/file"));
  bench.request.size = 100'000;
  EXPECT_THAT(bench.failure(), HasSubstr("more than the 100000 bytes"));
  EXPECT_FALSE(bench.final_there());
  EXPECT_LE(bench.part_size(), 100'000u);
}

TEST(Download, ChunkedBodyOfUnknownLengthIsAccepted) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.head("200 OK", {"Transfer-Encoding: chunked"});
    connection.send("5\r\nhello\r\n0\r\n\r\n");
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), "hello");
}

TEST(Download, BodyThatOnlyEndsWithTheConnectionIsRefusedUnlessItCanBeChecked) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.head("200 OK");
    connection.send("hello");
  });
  DownloadBench unsure(server.url("/file"));
  EXPECT_THAT(unsure.failure(), HasSubstr("does not say how long"));
  EXPECT_EQ(unsure.files_left(), 0u);
  DownloadBench sure(server.url("/file"));
  sure.request.sha256 = sha256_of("hello");
  EXPECT_EQ(sure.failure(), "");
}

TEST(Download, WrongKindOfFileIsNoticedAtItsFirstBytes) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) { connection.answer("200 OK", "<html>please log in</html>"); });
  DownloadBench bench(server.url("/file.gguf"));
  bench.request.magic = "GGUF";
  EXPECT_THAT(bench.failure(), HasSubstr("does not begin with 'GGUF'"));
  EXPECT_EQ(bench.files_left(), 0u);
}

TEST(Download, EmptyFileIsAFile) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) { connection.answer("200 OK"); });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_TRUE(bench.final_there());
  EXPECT_EQ(bench.content(), "");
}

TEST(Download, NobodyListeningIsReported) {
  std::string url;
  {
    url = TestServer([](const ServedRequest&, ServedConnection&) {}).url("/file");
  }
  DownloadBench bench(url);
  EXPECT_THAT(bench.failure(), HasSubstr("onnect"));
  EXPECT_EQ(bench.waits.size(), 3u);
  EXPECT_EQ(bench.files_left(), 0u);
}

}  // namespace
}  // namespace weir::store
