// SPDX-License-Identifier: Apache-2.0
// Live percentiles and the line that shows them.
#include <gtest/gtest.h>

#include <thread>

#include "loadgen/progress_line.h"
#include "loadgen/random.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

TEST(LatencySketch, BucketsAreNarrowAndInOrder) {
  EXPECT_EQ(LatencySketch::bucket(-5ms), 0u);
  EXPECT_EQ(LatencySketch::bucket(15us), 15u);
  EXPECT_EQ(LatencySketch::bucket(16us), 16u);
  EXPECT_EQ(LatencySketch::bucket(31us), 31u);
  EXPECT_EQ(LatencySketch::bucket(33us), 32u);
  EXPECT_EQ(LatencySketch::bucket(34us), 33u);
  EXPECT_EQ(LatencySketch::bucket(Duration::max()), 511u);
  std::size_t before = 0;
  for (Duration at = 1us; at < 4h; at += at / 50 + 1us) {
    const std::size_t bucket = LatencySketch::bucket(at);
    ASSERT_GE(bucket, before);
    ASSERT_LT(bucket, 512u);
    before = bucket;
  }
}

TEST(LatencySketch, PercentilesAreWithinThreePerCent) {
  LatencySketch sketch;
  EXPECT_EQ(sketch.percentile(50), 0);
  for (int i = 1; i <= 10000; ++i) sketch.add(100us * i);  // 0.1 ms … 1 s
  EXPECT_EQ(sketch.count(), 10000u);
  for (const double p : {1.0, 10.0, 50.0, 90.0, 99.0}) EXPECT_NEAR(sketch.percentile(p), p / 100, 0.032 * p / 100) << p;
}

TEST(LatencySketch, ThreadsAddAtOnce) {
  LatencySketch sketch;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) sketch.add(1ms);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sketch.count(), 40000u);
}

TEST(ProgressLine, SaysHowFarItIsAndHowFast) {
  Progress progress;
  ProgressWatch watch;
  progress.sent = 20;
  progress.done = 10;
  EXPECT_EQ(progress_text(watch.look(progress, 2)), "2 s: sent 20 (10.0/s), done 10 (5.0/s), 10 in flight");
  progress.sent = 40;
  progress.done = 30;
  progress.failed = 2;
  progress.waiting = 3;
  progress.tokens = 400;
  for (int i = 0; i < 100; ++i) progress.ttft.add(250ms), progress.itl.add(20ms);
  ProgressView view = watch.look(progress, 4);
  view.expected = 64;
  EXPECT_EQ(progress_text(view),
            "4 s: sent 40 (10.0/s), done 32 of 64 (11.0/s), 8 in flight, 3 waiting, 2 failed; TTFT p50 250 ms p99 250 ms; "
            "ITL p50 20 ms p99 20 ms; 200 tokens/s; about 4 s left");
  view.length_s = 10;
  EXPECT_DOUBLE_EQ(time_left(view), 6);
  view.elapsed_s = 11;
  EXPECT_NE(progress_text(view).find("waiting for the last answers"), std::string::npos);
  EXPECT_LT(time_left({}), 0);
}

}  // namespace
}  // namespace weir::loadgen
