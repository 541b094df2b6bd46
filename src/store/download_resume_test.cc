// SPDX-License-Identifier: Apache-2.0
// What one run leaves for the next, and what happens when the disk is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "base/sha256.h"
#include "store/test_downloads.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string& body() {
  static const std::string content = sample_content(3'000'000);
  return content;
}

// A server that breaks its first answer off after a million bytes, and a bench whose first run was stopped then.
struct Interrupted {
  std::string etag = "\"v1\"";
  TestServer server{[this](const ServedRequest& request, ServedConnection& connection) {
    if (request.number > 0) return connection.file(request, body(), etag);
    connection.head("200 OK", {fmt::format("Content-Length: {}", body().size()), "ETag: " + etag});
    connection.send(std::string_view(body()).substr(0, 1'000'000));
    connection.hang();
  }};
  DownloadBench bench{server.url("/file")};
  std::atomic<bool> stop = false;

  explicit Interrupted(std::string with_etag = "\"v1\"") : etag(std::move(with_etag)) {
    bench.watcher.on_progress = [this](const Progress& progress) { stop = progress.done >= 1'000'000; };
    bench.watcher.should_stop = [this] { return stop.load(); };
  }
  void interrupt() {
    const auto file = bench.run();
    ASSERT_FALSE(file);
    ASSERT_EQ(file.error().code, ErrorCode::kCancelled);
    ASSERT_FALSE(bench.final_there());
    ASSERT_EQ(bench.part_size(), 1'000'000u);
    stop = false;
    bench.watcher.on_progress = nullptr;
  }
};

TEST(DownloadResume, NextRunContinuesWhereThisOneWasStopped) {
  Interrupted run;
  run.interrupt();
  ASSERT_EQ(run.bench.failure(), "");
  EXPECT_EQ(run.bench.content(), body());
  EXPECT_EQ(run.server.requests().at(1).header("range"), "bytes=1000000-");
  EXPECT_EQ(run.server.requests().at(1).header("if-range"), "\"v1\"");
  EXPECT_EQ(run.bench.files_left(), 1u);
}

TEST(DownloadResume, ChecksumCoversThePartOfTheEarlierRun) {
  Interrupted run;
  run.interrupt();
  run.bench.request.sha256 = sha256_of(body());
  const auto file = run.bench.run();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->sha256, sha256_of(body()));
  EXPECT_EQ(file->verified_by, VerifiedBy::kCatalogue);
}

TEST(DownloadResume, DamagedPartIsFoundOutAndLoadedAfresh) {
  Interrupted run;
  run.interrupt();
  run.bench.request.sha256 = sha256_of(body());
  std::string part = *read_file(run.bench.part());
  part[500'000] = static_cast<char>(part[500'000] ^ 1);
  ASSERT_TRUE(write_file_atomically(run.bench.part(), part));
  ASSERT_EQ(run.bench.failure(), "");
  EXPECT_EQ(run.bench.content(), body());
  EXPECT_EQ(run.server.requests().size(), 3u);
}

TEST(DownloadResume, UncheckablePartKeepsOnlyWhatHadReachedTheDisk) {
  Interrupted run;
  run.interrupt();
  std::string part = *read_file(run.bench.part());
  part += std::string(5000, '\0');  // as a crash may leave it: longer, but never written
  ASSERT_TRUE(write_file_atomically(run.bench.part(), part));
  ASSERT_EQ(run.bench.failure(), "");
  EXPECT_EQ(run.bench.content(), body());
  EXPECT_EQ(run.server.requests().at(1).header("range"), "bytes=1000000-");
}

TEST(DownloadResume, PartOfAnotherAddressIsDropped) {
  Interrupted run;
  run.interrupt();
  run.bench.request.url = run.server.url("/other");
  ASSERT_EQ(run.bench.failure(), "");
  EXPECT_EQ(run.bench.content(), body());
  EXPECT_EQ(run.server.requests().at(1).header("range"), "");
}

TEST(DownloadResume, DamagedNotesOnThePartDropIt) {
  Interrupted run;
  run.interrupt();
  ASSERT_TRUE(write_file_atomically(run.bench.part().string() + ".json", "{\"url_sha256\": 5"));
  ASSERT_EQ(run.bench.failure(), "");
  EXPECT_EQ(run.bench.content(), body());
  EXPECT_EQ(run.server.requests().at(1).header("range"), "");
}

TEST(DownloadResume, WholePartNeedsNoNetwork) {
  Interrupted run;
  run.interrupt();
  ASSERT_TRUE(write_file_atomically(run.bench.part(), body()));
  run.bench.request.sha256 = sha256_of(body());
  ASSERT_EQ(run.bench.failure(), "");
  EXPECT_EQ(run.bench.content(), body());
  EXPECT_EQ(run.server.requests().size(), 1u);
}

TEST(DownloadResume, PartThatIsALinkIsNotWrittenThrough) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) { connection.file(request, body()); });
  DownloadBench bench(server.url("/file"));
  const fs::path victim = bench.folder.path() / "victim";
  ASSERT_TRUE(write_file_atomically(victim, "precious"));
  fs::create_symlink(victim, bench.part());
  EXPECT_NE(bench.failure(), "");
  EXPECT_EQ(*read_file(victim), "precious");
}

TEST(DownloadResume, StoppingWhileWaitingForARetryStops) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) { connection.answer("503 Service Unavailable"); });
  DownloadBench bench(server.url("/file"));
  bool stop = false;
  bench.limits.sleep = [&](std::chrono::milliseconds) { stop = true; };
  bench.watcher.should_stop = [&] { return stop; };
  const auto file = bench.run();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(server.requests().size(), 1u);
}

// Two disks of one megabyte: a small tmpfs, where this process may mount one, and a limit on file sizes, which needs no
// rights. Both make write() fail in the middle of a transfer.
class SmallTmpfs {
 public:
  explicit SmallTmpfs(const fs::path& folder)
      : folder_(folder), mounted_(::mount("weir-test", folder.c_str(), "tmpfs", 0, "size=1m") == 0) {}
  ~SmallTmpfs() {
    if (mounted_) ::umount(folder_.c_str());
  }
  SmallTmpfs(const SmallTmpfs&) = delete;
  SmallTmpfs& operator=(const SmallTmpfs&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path folder_;
  bool mounted_;
};

class SmallQuota {
 public:
  SmallQuota() : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{1 << 20, before_.rlim_max};
    WEIR_CHECK(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  ~SmallQuota() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  SmallQuota(const SmallQuota&) = delete;
  SmallQuota& operator=(const SmallQuota&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// Chunked: the size is not known before, so that only the write can tell.
void send_chunked(ServedConnection& connection, std::string_view content) {
  connection.head("200 OK", {"Transfer-Encoding: chunked", "ETag: \"v1\""});
  connection.send(fmt::format("{:x}\r\n", content.size()));
  connection.send(content);
  connection.send("\r\n0\r\n\r\n");
}

void expect_exhausted(DownloadBench& bench) {
  const auto file = bench.run();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kExhausted) << file.error().message;
  EXPECT_THAT(file.error().message, HasSubstr("WEIR_HOME"));
  EXPECT_FALSE(bench.final_there());
  EXPECT_GT(bench.part_size(), 0u);
  EXPECT_LE(bench.part_size(), 1u << 20);
  EXPECT_EQ(*read_file(bench.part()), body().substr(0, bench.part_size()));
  EXPECT_TRUE(bench.waits.empty());  // trying again would not make room
}

TEST(FullDisk, OfATmpfsLeavesNoFileUnderTheFinalName) {
  TestServer server([](const ServedRequest&, ServedConnection& connection) { send_chunked(connection, body()); });
  DownloadBench bench(server.url("/file"));
  const SmallTmpfs disk(bench.folder.path());
  if (!disk.mounted()) GTEST_SKIP() << "this user may not mount a tmpfs; the quota test covers the same error";
  expect_exhausted(bench);
}

TEST(FullDisk, OfAQuotaLeavesNoFileAndTheNextRunContinues) {
  TestServer server([](const ServedRequest& request, ServedConnection& connection) {
    request.number == 0 ? send_chunked(connection, body()) : connection.file(request, body());
  });
  DownloadBench bench(server.url("/file"));
  {
    const SmallQuota quota;
    expect_exhausted(bench);
  }
  ASSERT_EQ(bench.failure(), "");
  EXPECT_EQ(bench.content(), body());
  EXPECT_EQ(server.requests().at(1).header("range"), fmt::format("bytes={}-", 1 << 20));
}

TEST(FullDisk, IsNoticedBeforeTheTransferWhenTheSizeIsKnown) {
  EXPECT_TRUE(check_free_space("/tmp", 1));
  const Status status = check_free_space("/tmp", std::uint64_t{1} << 60);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted);
  TestServer server([](const ServedRequest&, ServedConnection& connection) {
    connection.head("200 OK", {"Content-Length: 2000000000000000", "ETag: \"v1\""});
    connection.hang();
  });
  DownloadBench bench(server.url("/file"));
  bench.limits.max_bytes = std::uint64_t{1} << 60;
  EXPECT_THAT(bench.failure(), HasSubstr("its disk has only"));
  EXPECT_EQ(bench.files_left(), 0u);
}

}  // namespace
}  // namespace weir::store
