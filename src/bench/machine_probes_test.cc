// SPDX-License-Identifier: Apache-2.0
// Nodes, disk and loopback: that each is measured within its bounds, ends, cleans up, and says why where it cannot. Not how fast.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/testing.h"
#include "bench/disk_speed.h"
#include "bench/loopback_socket.h"
#include "bench/loopback_speed.h"
#include "bench/numa_speed.h"
#include "bench/probe_file.h"
#include "kernels/limits/core_sharing.h"

namespace weir::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMiB = 1u << 20;

const std::function<bool()> kGoOn = [] { return true; };
const std::function<bool()> kStop = [] { return false; };

// True `times` times.
std::function<bool()> go_on_for(int times) {
  return [left = std::make_shared<int>(times)] { return (*left)-- > 0; };
}

TEST(Latency, FiguresAreSomeThatOccurred) {
  std::vector<double> seconds;
  for (int i = 200; i >= 1; --i) seconds.push_back(i);
  const Latency latency = latency_of(seconds);
  EXPECT_EQ(latency.median_s, 100);
  EXPECT_EQ(latency.p99_s, 198);
  EXPECT_EQ(latency.count, 200);
  EXPECT_EQ(latency_of({3}).p99_s, 3);
  EXPECT_EQ(latency_of({}).count, 0);
  EXPECT_EQ(latency_us(latency_of({0.5})).at("median").as_double(), 5e5);
}

NumaNode own_node() {
  return {
      .number = 0, .processors = kernels::allowed_processors(), .memory_bytes = 1024 * kMiB, .free_bytes = 64 * kMiB, .distances = {10}};
}

NumaOptions small_numa() { return {.caches = {.l3 = kMiB, .l3_processors = 2}, .most_threads = 2, .seconds = 0.005}; }

TEST(NumaSpeed, SizesExceedTheCachesAndStayWithinTheFreeMemory) {
  const kernels::CacheSizes caches{.l3 = 96 * kMiB, .l3_processors = 8};
  constexpr std::uint64_t kPlenty = 1 << 20;
  EXPECT_EQ(node_bytes_per_thread(caches, 16, kPlenty * kMiB) * 16, 4 * 2 * 96 * kMiB);
  EXPECT_EQ(node_bytes_per_thread({}, 2, kPlenty * kMiB), 96 * kMiB);
  EXPECT_EQ(node_bytes_per_thread(caches, 16, 128 * kMiB), kMiB);
  EXPECT_EQ(node_bytes_per_thread(caches, 0, 0), 0u);
}

TEST(NumaSpeed, ANodeReadsItsOwnMemory) {
  const NodeRead read = measure_node_read(own_node(), own_node(), small_numa());
  EXPECT_GE(read.threads, 1);
  EXPECT_LE(read.threads, 2);
  EXPECT_LE(read.bytes_per_thread * static_cast<std::uint64_t>(read.threads), 8 * kMiB);
  if (!read.problem.empty()) GTEST_SKIP() << read.problem;  // containers may forbid the system calls
  EXPECT_GT(read.bytes_per_s.min, 0);
}

TEST(NumaSpeed, WhatCannotBeMeasuredSaysWhy) {
  NumaNode empty = own_node(), full = own_node(), absent = own_node();
  empty.processors = {60000};
  full.free_bytes = kMiB;
  absent.number = 900;
  EXPECT_THAT(measure_node_read(empty, own_node(), small_numa()).problem, HasSubstr("none of the node's processors"));
  EXPECT_THAT(measure_node_read(own_node(), full, small_numa()).problem, HasSubstr("too little free memory"));
  EXPECT_THAT(measure_node_read(own_node(), absent, small_numa()).problem, HasSubstr("node 900"));
}

TEST(NumaSpeed, PairsAreNodesWithProcessorsAndNodesWithMemory) {
  NumaNode processors_only = own_node(), memory_only = own_node();
  processors_only.number = 1, processors_only.processors = {60000}, processors_only.memory_bytes = processors_only.free_bytes = 0;
  memory_only.number = 2, memory_only.processors = {};
  const auto numa = measure_numa({own_node(), processors_only, memory_only}, small_numa(), kGoOn);
  ASSERT_TRUE(numa) << numa.error().message;
  std::vector<std::pair<int, int>> pairs;
  for (const NodeRead& read : numa->reads) pairs.emplace_back(read.processors_of, read.memory_of);
  EXPECT_THAT(pairs, ::testing::ElementsAre(std::pair(0, 0), std::pair(0, 2), std::pair(1, 0), std::pair(1, 2)));
  EXPECT_THAT(numa->reads[2].problem, ::testing::Not(IsEmpty()));
  const json::Object out = to_json(*numa);
  EXPECT_THAT(out.at("nodes").as_array(), SizeIs(3));
  EXPECT_THAT(out.at("reads").as_array(), SizeIs(4));
  EXPECT_FALSE(out.at("reads").as_array()[2].as_object().contains("gb_per_s"));
}

TEST(NumaSpeed, OneNodeIsNotCompared) {
  const auto numa = measure_numa({own_node()}, small_numa(), kStop);
  ASSERT_TRUE(numa);
  EXPECT_THAT(numa->reads, IsEmpty());
  EXPECT_EQ(measure_numa({own_node(), own_node()}, small_numa(), kStop).error().code, ErrorCode::kCancelled);
}

TEST(NumaSpeed, PairsAreBounded) {
  NumaNode unusable = own_node();
  unusable.processors = {60000};  // so that none of them takes time
  const auto numa = measure_numa(std::vector<NumaNode>(20, unusable), small_numa(), kGoOn);
  ASSERT_TRUE(numa);
  EXPECT_THAT(numa->nodes, SizeIs(20));
  EXPECT_THAT(numa->reads, SizeIs(64));
}

TEST(DiskSpeed, TakesATenthOfTheFreeSpaceAtMost) {
  EXPECT_EQ(bounded_disk_bytes(256 * kMiB, 100'000 * kMiB), 256 * kMiB);
  EXPECT_EQ(bounded_disk_bytes(256 * kMiB, 1000 * kMiB), 100 * kMiB);
  EXPECT_EQ(bounded_disk_bytes(256 * kMiB, 79 * kMiB), 4 * kMiB);
  EXPECT_EQ(bounded_disk_bytes(256 * kMiB, 39 * kMiB), 0u);
  EXPECT_EQ(bounded_disk_bytes(UINT64_MAX, UINT64_MAX) % (4 * kMiB), 0u);
}

TEST(DiskSpeed, MeasuresPastTheCacheAndWithoutThatAndLeavesNothing) {
  const testing::TemporaryFolder folder;
  for (const bool direct : {true, false}) {
    bool seen_empty = true;
    const auto watch = [&] { return seen_empty = seen_empty && std::filesystem::is_empty(folder.path()), true; };
    const auto disk =
        measure_disk({.folder = folder.path(), .bytes = 8 * kMiB, .direct = direct, .random_reads = 20, .seconds = 600}, watch);
    ASSERT_TRUE(disk) << disk.error().message;
    EXPECT_TRUE(seen_empty) << "the file has a name while it is used";
    EXPECT_EQ(disk->bytes, 8 * kMiB);
    EXPECT_LE(disk->direct, direct);  // tmpfs cannot
    EXPECT_EQ(disk->write_bytes_per_s.count, 4);
    EXPECT_EQ(disk->read_bytes_per_s.count, 4);
    EXPECT_GT(disk->read_bytes_per_s.min, 0);
    EXPECT_EQ(disk->random_read.count, 20);
    EXPECT_EQ(to_json(*disk).at("direct").as_bool(), disk->direct);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DiskSpeed, EndsWhenItsTimeIsUpWithWhatItHas) {
  const testing::TemporaryFolder folder;
  const auto disk = measure_disk({.folder = folder.path(), .bytes = 64 * kMiB, .random_reads = 1000, .seconds = 0}, kGoOn);
  ASSERT_TRUE(disk) << disk.error().message;
  EXPECT_EQ(disk->bytes, kMiB);
  EXPECT_EQ(disk->write_bytes_per_s.count, 1);
  EXPECT_EQ(disk->read_bytes_per_s.count, 1);
  EXPECT_EQ(disk->random_read.count, 0);
}

TEST(DiskSpeed, CanBeCancelledAtEveryStage) {
  const testing::TemporaryFolder folder;
  for (const int steps : {0, 5, 10, 17}) {  // 8 blocks are written, 8 read
    const auto disk = measure_disk({.folder = folder.path(), .bytes = 8 * kMiB, .random_reads = 20, .seconds = 600}, go_on_for(steps));
    ASSERT_FALSE(disk) << steps;
    EXPECT_EQ(disk.error().code, ErrorCode::kCancelled);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(DiskSpeed, RefusesWhatIsNoFolderAndTooLittle) {
  const testing::TemporaryFolder folder;
  const auto missing = measure_disk({.folder = folder.path() / "missing"}, kGoOn);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("missing"));
  EXPECT_EQ(measure_disk({.folder = folder.path(), .bytes = kMiB}, kGoOn).error().code, ErrorCode::kExhausted);
}

TEST(ProbeFile, AFileThatEndsTooSoonIsAnError) {
  const testing::TemporaryFolder folder;
  auto file = ProbeFile::create(folder.path(), false);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->is_direct());
  std::vector<std::byte> block(4096, std::byte{3}), back(4096);
  ASSERT_TRUE(file->write(block, 4096));
  ASSERT_TRUE(file->sync());
  file->forget(0, 0);
  ASSERT_TRUE(file->read(back, 4096));
  EXPECT_EQ(back, block);
  EXPECT_THAT(file->read(back, 8192).error().message, HasSubstr("too soon"));
}

TEST(Loopback, IsMeasuredAndEnds) {
  const auto speed = measure_loopback(0.02, kGoOn);
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_EQ(speed->stream_bytes_per_s.count, 5);
  EXPECT_GT(speed->stream_bytes_per_s.min, 0);
  EXPECT_GE(speed->round_trip.count, 5);
  EXPECT_GE(speed->round_trip.p99_s, speed->round_trip.median_s);
  EXPECT_EQ(speed->connections_per_s.count, 5);
  EXPECT_GT(speed->connections_per_s.min, 0);
  EXPECT_TRUE(to_json(*speed).at("round_trip_us").as_object().contains("p99"));
}

TEST(Loopback, CanBeCancelledAtEveryStage) {
  for (const int runs : {0, 4, 7, 12}) {
    const auto speed = measure_loopback(0, go_on_for(runs));
    ASSERT_FALSE(speed) << runs;
    EXPECT_EQ(speed.error().code, ErrorCode::kCancelled);
  }
}

TEST(Loopback, PairsAreOfThisProcess) {
  const auto pair = connected_pair();
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->server.peer_port(), pair->client.port());
  EXPECT_EQ(pair->client.peer_port(), pair->server.port());
}

TEST(Loopback, ASilentPeerIsADeadlineAndAGoneOneAnError) {
  auto pair = connected_pair();
  ASSERT_TRUE(pair) << pair.error().message;
  std::vector<std::byte> byte(1);
  EXPECT_EQ(pair->client.receive(byte).error().code, ErrorCode::kDeadline);
  {
    const Socket gone = std::move(pair->server);
  }
  EXPECT_EQ(pair->client.receive(byte).value_or(1), 0u);
  Status sent;
  for (int i = 0; sent && i < 1000; ++i) sent = pair->client.send(byte);  // the first ones may be on their way before it is known
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kNetwork);
}

TEST(Loopback, NobodyListeningIsAnError) {
  std::uint16_t port = 0;
  {
    const auto listener = Socket::listen();
    ASSERT_TRUE(listener) << listener.error().message;
    port = listener->port();
  }
  EXPECT_EQ(Socket::connect(port).error().code, ErrorCode::kNetwork);
}

}  // namespace
}  // namespace weir::bench
