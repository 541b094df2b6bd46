// SPDX-License-Identifier: Apache-2.0
// The pool runs everything exactly once, and the parsing of CPU limits.
#include "base/thread_pool.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/file_io.h"
#include "base/processors.h"
#include "base/testing.h"

namespace weir {
namespace {

TEST(ThreadPool, RunsTheBodyOncePerIndex) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(threads));
      pool.run([&](int thread) { seen[static_cast<std::size_t>(thread)].fetch_add(1); });
      for (const auto& count : seen) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, ParallelForCoversTheRangeInPiecesOfTheGrain) {
  ThreadPool pool(3);
  for (const std::int64_t count : {0, 1, 7, 64, 1000}) {
    for (const std::int64_t grain : {1, 8, 64, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_EQ(begin % grain, 0);
        EXPECT_LT(begin, end);
        for (std::int64_t i = begin; i < end; ++i) seen[static_cast<std::size_t>(i)].fetch_add(1);
      });
      for (const auto& n : seen) ASSERT_EQ(n.load(), 1);
    }
  }
}

TEST(ThreadPool, AnIndexStaysWithItsThread) {
  ThreadPool pool(2);
  std::thread::id worker;
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> arrived{0};
    std::vector<std::thread::id> ids(2);
    pool.run([&](int thread) {
      ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
      arrived.fetch_add(1);
      while (arrived.load() < 2) std::this_thread::yield();  // both take part
    });
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    if (round > 0) {
      EXPECT_EQ(ids[1], worker);
    }
    worker = ids[1];
  }
}

TEST(ThreadPool, ASlowWorkerIsWaitedForAfterItHasBegun) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> begun{false};
    int written = 0;
    pool.run([&](int thread) {
      if (thread == 0) {
        while (!begun.load()) std::this_thread::yield();
        return;
      }
      begun.store(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than the caller spins
      written = 42;
    });
    EXPECT_EQ(written, 42);
  }
}

TEST(ThreadPool, WakesParkedWorkers) {
  ThreadPool pool(2);
  std::int64_t total = 0;
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough for the worker to park
    std::vector<std::int64_t> sums(2);
    pool.run([&](int thread) { sums[static_cast<std::size_t>(thread)] = thread + 1; });
    total += std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
  }
  EXPECT_EQ(total, 9);
}

TEST(Processors, ReadsTheQuotaOfVersion2) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000 0"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("-5 100"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("99999999999999999999999 1"), std::nullopt);
}

TEST(Processors, ReadsTheQuotaOfVersion1) {
  EXPECT_EQ(parse_cfs_quota("400000\n", "100000\n"), 4.0);
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("", ""), std::nullopt);
}

TEST(Processors, FindsTheGroupOfTheProcess) {
  const char* hybrid = "12:memory:/a\n4:cpu,cpuacct:/docker/x\n0::/unified\n";
  EXPECT_EQ(parse_cgroup_path(hybrid, ""), "/unified");
  EXPECT_EQ(parse_cgroup_path(hybrid, "cpu"), "/docker/x");
  EXPECT_EQ(parse_cgroup_path(hybrid, "cpuacct"), "/docker/x");
  EXPECT_EQ(parse_cgroup_path(hybrid, "io"), std::nullopt);
  EXPECT_EQ(parse_cgroup_path("garbage\n:\n0:\n", ""), std::nullopt);
}

TEST(Processors, TakesTheSmallestQuotaOnTheWayToTheRoot) {
  const testing::TemporaryFolder temporary;
  const auto& root = temporary.path();
  std::filesystem::create_directories(root / "a/b");
  ASSERT_TRUE(write_file_atomically(root / "a/cpu.max", "200000 100000"));
  ASSERT_TRUE(write_file_atomically(root / "a/b/cpu.max", "400000 100000"));
  EXPECT_EQ(cgroup_processors(root, "0::/a/b\n"), 2.0);
  EXPECT_EQ(cgroup_processors(root, "0::/\n"), std::nullopt);
  EXPECT_EQ(cgroup_processors(root, "0::/../../elsewhere\n"), std::nullopt);

  std::filesystem::create_directories(root / "cpu/job");
  ASSERT_TRUE(write_file_atomically(root / "cpu/job/cpu.cfs_quota_us", "50000"));
  ASSERT_TRUE(write_file_atomically(root / "cpu/job/cpu.cfs_period_us", "100000"));
  EXPECT_EQ(cgroup_processors(root, "3:cpu:/job\n"), 0.5);
}

TEST(Processors, AtLeastOneIsUsable) { EXPECT_GE(usable_processors(), 1); }

}  // namespace
}  // namespace weir
