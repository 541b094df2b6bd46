// SPDX-License-Identifier: Apache-2.0
#include "kernels/thread_choice.h"

#include <gmock/gmock.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "base/thread_pool.h"

namespace weir::kernels {
namespace {

using ::testing::ElementsAre;

TEST(ThreadChoice, CandidatesAreQuartersOfTheProcessors) {
  EXPECT_THAT(thread_candidates(1), ElementsAre(1));
  EXPECT_THAT(thread_candidates(2), ElementsAre(1, 2));
  EXPECT_THAT(thread_candidates(6), ElementsAre(1, 3, 4, 6));
  EXPECT_THAT(thread_candidates(64), ElementsAre(16, 32, 48, 64));
}

TEST(ThreadChoice, TakesTheFewestThatAreAsGood) {
  const ThreadSpeed cores[] = {{1, 450, 30}, {2, 900, 42}};
  EXPECT_EQ(best_thread_count(cores), 2);
  const ThreadSpeed shared_core[] = {{1, 450, 30}, {2, 455, 30.5}};
  EXPECT_EQ(best_thread_count(shared_core), 1);
  const ThreadSpeed shared_cores_that_hide_latency[] = {{2, 900, 40}, {4, 905, 46}};
  EXPECT_EQ(best_thread_count(shared_cores_that_hide_latency), 4);
  const ThreadSpeed memory_saturated[] = {{16, 16, 95}, {32, 32, 100}, {48, 33, 98}, {64, 33, 90}};
  EXPECT_EQ(best_thread_count(memory_saturated), 32);
}

TEST(ThreadChoice, IsMeasuredOnceForAKey) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "cache" / "threads";
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return 3;
  };
  EXPECT_EQ(remembered_thread_count(file, "a", 8, measure), 3);
  EXPECT_EQ(remembered_thread_count(file, "a", 8, measure), 3);
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(remembered_thread_count(file, "b", 8, measure), 3);
  EXPECT_EQ(remembered_thread_count(file, "a", 8, measure), 3);
  EXPECT_EQ(measured, 2);
  EXPECT_EQ(remembered_thread_count(file, "a", 2, [] { return 2; }), 2);  // what is kept is beyond what may be used
  ASSERT_TRUE(write_file_atomically(file, "nonsense\n\n"));
  EXPECT_EQ(remembered_thread_count(file, "a", 8, measure), 3);
  EXPECT_EQ(remembered_thread_count(file, "c", 8, [] { return 0; }), 8);
  EXPECT_EQ(remembered_thread_count({}, "c", 8, measure), 3);
}

TEST(ThreadChoice, NeverTakesMoreThreadsThanProcessors) {
  const int usable = usable_processors();
  EXPECT_EQ(choose_threads(usable).threads, usable);
  EXPECT_EQ(choose_threads(usable).note, "");
  const ThreadChoice many = choose_threads(usable + 1000);
  EXPECT_EQ(many.threads, usable);
  EXPECT_NE(many.note.find("asked for"), std::string::npos);
}

}  // namespace
}  // namespace weir::kernels
