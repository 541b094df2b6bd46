// SPDX-License-Identifier: Apache-2.0
// Statuses, redirects, tokens and the checksums that a server states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "store/test_downloads.h"

namespace weir::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kBody = sample_content(50'000);

std::string failure_with_status(std::string_view status, std::vector<std::string> headers = {}) {
  TestServer server([&](const ServedRequest&, ServedConnection& connection) { connection.answer(status, "a page for people", headers); });
  DownloadBench bench(server.url("/file?signature=geheim"));
  const std::string failure = bench.failure();
  EXPECT_EQ(bench.files_left(), 0u);
  EXPECT_EQ(server.requests().size(), status.starts_with('5') || status.starts_with("429") ? 7u : 1u) << status;
  EXPECT_THAT(failure, AllOf(HasSubstr(server.url("/file")), Not(HasSubstr("geheim"))));
  return failure;
}

TEST(DownloadStatus, SaysWhatToDo) {
  EXPECT_THAT(failure_with_status("404 Not Found"), HasSubstr("no such file (404)"));
  EXPECT_THAT(failure_with_status("403 Forbidden", {"X-Error-Message: Access to model x is \x1b[31mrestricted"}),
              AllOf(HasSubstr("set HF_TOKEN"), HasSubstr("restricted"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(failure_with_status("401 Unauthorized"), HasSubstr("set HF_TOKEN"));
  EXPECT_THAT(failure_with_status("416 Range Not Satisfiable"), HasSubstr("416"));
  EXPECT_THAT(failure_with_status("500 Internal Server Error"), HasSubstr("cannot answer now (500)"));
  EXPECT_THAT(failure_with_status("418 I'm a teapot"), HasSubstr("status 418"));
}

TEST(DownloadStatus, BusyServerIsAskedAgainWhenItSaysSo) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.number == 0) return connection.answer("503 Service Unavailable", "", {"Retry-After: 7"});
    if (request.number == 1) return connection.answer("429 Too Many Requests");
    connection.file(request, kBody);
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), kBody);
  EXPECT_EQ(bench.waits, (std::vector<std::chrono::milliseconds>{std::chrono::seconds(7), std::chrono::seconds(2)}));
}

TEST(DownloadStatus, RejectedRangeStartsAgain) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.number == 0) {
      connection.head("200 OK", {"Content-Length: 60000", "ETag: \"v1\""});
      connection.send(std::string(55'000, 'x'));
    } else {
      connection.file(request, kBody, "\"v1\"");  // now shorter than the part: 416
    }
  });
  DownloadBench bench(server.url("/file"));
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), kBody);
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(DownloadRedirect, IsFollowedAndBounded) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    if (request.path == "/loop") return connection.redirect("/loop");
    if (request.path == "/file") return connection.redirect("elsewhere/data?x=1");
    connection.file(request, kBody);
  });
  DownloadBench good(server.url("/file"));
  ASSERT_EQ(good.failure(), "");
  EXPECT_EQ(good.content(), kBody);
  EXPECT_EQ(server.requests()[1].path, "/elsewhere/data?x=1");
  DownloadBench loop(server.url("/loop"));
  EXPECT_THAT(loop.failure(), HasSubstr("more than 10 redirects"));
  EXPECT_EQ(server.requests().size(), 13u);
  EXPECT_EQ(loop.files_left(), 0u);
}

TEST(DownloadRedirect, LeavesHttpForNothingElse) {
  for (const char* target :
       {"ftp://127.0.0.1/file", "file:///etc/passwd", "http://192.0.2.1/file", "gopher://x/", "http://user:pw@127.0.0.1/"}) {
    TestServer server([&](const ServedRequest&, ServedConnection& connection) { connection.redirect(target); });
    DownloadBench bench(server.url("/file"));
    EXPECT_NE(bench.failure(), "") << target;
    EXPECT_EQ(bench.files_left(), 0u) << target;
    EXPECT_EQ(server.requests().size(), 1u) << target;
  }
}

TEST(DownloadToken, GoesToItsOriginOnly) {
  TestServer other([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, kBody); });
  TestServer server([&](const ServedRequest& request, ServedConnection& connection) {
    connection.redirect(request.path == "/file" ? "/again" : other.url("/data"));
  });
  DownloadBench bench(server.url("/file"));
  bench.request.token = "hf_secret";
  ASSERT_EQ(bench.failure(), "");
  for (const ServedRequest& request : server.requests()) EXPECT_EQ(request.header("authorization"), "Bearer hf_secret");
  ASSERT_EQ(server.requests().size(), 2u);
  ASSERT_EQ(other.requests().size(), 1u);
  EXPECT_EQ(other.requests()[0].header("authorization"), "");
}

TEST(DownloadToken, IsNeverInMessages) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) { connection.answer("403 Forbidden"); });
  DownloadBench bench(server.url("/file"));
  bench.request.token = "hf_secret";
  EXPECT_THAT(bench.failure(), AllOf(HasSubstr("not enough"), Not(HasSubstr("hf_secret"))));
}

TEST(DownloadServerChecksum, IsCheckedWhenTheCatalogueHasNone) {
  const std::string sha256 = sha256_of(kBody);
  TestServer storage([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, kBody); });
  TestServer hub([&](const ServedRequest&, ServedConnection& connection) {
    connection.redirect(storage.url("/blob"), {"X-Linked-Etag: \"" + sha256 + "\"", "X-Linked-Size: 50000"});
  });
  DownloadBench bench(hub.url("/file"));
  const auto file = bench.run();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->verified_by, VerifiedBy::kServer);
  EXPECT_EQ(file->sha256, sha256);
}

TEST(DownloadServerChecksum, RefusesWhatDoesNotFitIt) {
  const std::string wrong = sha256_of("another file");
  TestServer server([&](const ServedRequest& request, ServedConnection& connection) {
    if (request.path == "/lies") return connection.file(request, kBody, "\"v1\"", {"X-Linked-Etag: " + wrong});
    connection.file(request, kBody, "\"v1\"", {"X-Linked-Size: 1234"});
  });
  DownloadBench lies(server.url("/lies"));
  EXPECT_THAT(lies.failure(), HasSubstr("where the server says " + wrong));
  EXPECT_EQ(lies.files_left(), 0u);
  DownloadBench contradicts(server.url("/size"));
  EXPECT_THAT(contradicts.failure(), HasSubstr("contradicts itself"));
  DownloadBench changed(server.url("/lies"));
  changed.request.sha256 = sha256_of(kBody);
  EXPECT_THAT(changed.failure(), HasSubstr("not the expected file"));
}

TEST(DownloadServerChecksum, OfAnotherHostCountsForNothing) {
  TestServer storage([](const ServedRequest& request, ServedConnection& connection) {
    connection.file(request, kBody, "\"v1\"", {"X-Linked-Etag: " + sha256_of(kBody)});
  });
  TestServer hub([&](const ServedRequest&, ServedConnection& connection) { connection.redirect(storage.url("/blob")); });
  DownloadBench bench(hub.url("/file"));
  const auto file = bench.run();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->verified_by, VerifiedBy::kNobody);
}

TEST(DownloadTransport, PlainHttpIsForThisMachineUnlessAllowed) {
  DownloadBench bench("http://192.0.2.1/file");
  EXPECT_THAT(bench.failure(), HasSubstr("--allow-http"));
}

TEST(DownloadTransport, ProxyOfTheEnvironmentIsUsed) {
  TestServer proxy([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, kBody); });
  const ScopedVariable variable("http_proxy", proxy.origin().c_str());
  const ScopedVariable none("no_proxy", nullptr);
  const ScopedVariable none_upper("NO_PROXY", nullptr);
  DownloadBench bench("http://models.invalid/file");
  bench.request.allow_http = true;
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(proxy.requests().at(0).line, "GET http://models.invalid/file HTTP/1.1");
}

TEST(ResponseHead, MalformedHeadersCountAsAbsent) {
  ResponseHead head;
  for (const char* line :
       {"HTTP/1.1 206 Partial Content\r\n", "Content-Length: -5\r\n", "content-range: bytes a-b/c\r\n", "ETag: \"a b\"\r\n",
        "X-Linked-Etag: \"1234\"\r\n", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", "no colon here\r\n"})
    read_header_line(line, head);
  EXPECT_EQ(head.status, 206);
  EXPECT_FALSE(head.content_length);
  EXPECT_FALSE(head.content_range);
  EXPECT_EQ(head.etag, "");
  EXPECT_EQ(head.linked_sha256, "");
  EXPECT_FALSE(head.retry_after);
  EXPECT_FALSE(head.framed);
}

TEST(ResponseHead, ReadsRangesOfAllForms) {
  ResponseHead head;
  read_header_line("Content-Range: bytes 10-99/200\r\n", head);
  ASSERT_TRUE(head.content_range);
  EXPECT_EQ(head.content_range->first, 10u);
  EXPECT_EQ(head.content_range->total, 200u);
  read_header_line("Content-Range: bytes 10-99/*\r\n", head);
  EXPECT_EQ(head.content_range->first, 10u);
  EXPECT_FALSE(head.content_range->total);
  read_header_line("Content-Range: bytes */200\r\n", head);
  EXPECT_FALSE(head.content_range->first);
  EXPECT_EQ(head.content_range->total, 200u);
}

}  // namespace
}  // namespace weir::store
