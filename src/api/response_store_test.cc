// SPDX-License-Identifier: Apache-2.0
#include "api/response_store.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir::api {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const StoredResponse> answer(std::string document) {
  return std::make_shared<const StoredResponse>(StoredResponse{.document = std::move(document)});
}

TEST(ResponseStoreTest, GivesAnAnswerToItsTenantOnly) {
  ResponseStore store;
  EXPECT_TRUE(store.put("alice", "resp_1", answer("hers")));
  EXPECT_TRUE(store.put("bob", "resp_1", answer("his")));
  EXPECT_EQ(store.get("alice", "resp_1")->document, "hers");
  EXPECT_EQ(store.get("bob", "resp_1")->document, "his");
  EXPECT_EQ(store.get("", "resp_1"), nullptr);
  EXPECT_EQ(store.get("alice", "resp_2"), nullptr);

  EXPECT_FALSE(store.remove("carol", "resp_1"));
  EXPECT_TRUE(store.remove("alice", "resp_1"));
  EXPECT_FALSE(store.remove("alice", "resp_1"));
  EXPECT_EQ(store.get("alice", "resp_1"), nullptr);
  EXPECT_EQ(store.get("bob", "resp_1")->document, "his");
}

TEST(ResponseStoreTest, TheLeastRecentlyUsedGoesWhenThereAreTooMany) {
  ResponseStore store({.max_responses = 3});
  for (const char* id : {"a", "b", "c"}) store.put("t", id, answer(id));
  EXPECT_NE(store.get("t", "a"), nullptr);
  store.put("t", "d", answer("d"));
  EXPECT_EQ(store.size(), 3u);
  EXPECT_EQ(store.get("t", "b"), nullptr);
  for (const char* id : {"a", "c", "d"}) EXPECT_NE(store.get("t", id), nullptr) << id;
}

TEST(ResponseStoreTest, BytesAreBoundedAndGivenBack) {
  ResponseStore store({.max_bytes = 10'000, .max_response_bytes = 5'000});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(store.put("t", std::to_string(i), answer(std::string(1'000, 'x'))));
  EXPECT_LE(store.bytes(), 10'000u);
  EXPECT_GE(store.size(), 5u);
  EXPECT_FALSE(store.put("t", "large", answer(std::string(5'000, 'x'))));
  EXPECT_EQ(store.get("t", "large"), nullptr);
  for (int i = 0; i < 100; ++i) store.remove("t", std::to_string(i));
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_EQ(store.size(), 0u);
}

TEST(ResponseStoreTest, SharedItemsCountForEachAnswer) {
  const auto item = std::make_shared<const std::string>(std::string(3'000, 'x'));
  ResponseStore store({.max_bytes = 10'000});
  for (const char* id : {"a", "b", "c", "d"})
    store.put("t", id, std::make_shared<const StoredResponse>(StoredResponse{.document = "{}", .context = {item}}));
  EXPECT_EQ(store.size(), 2u);
  EXPECT_EQ(*store.get("t", "d")->context[0], *item);
}

TEST(ResponseStoreTest, WhoStoresMuchLosesOwnAnswersFirst) {
  ResponseStore store({.max_responses = 10});
  store.put("quiet", "q", answer("q"));
  for (int i = 0; i < 100; ++i) store.put("busy", std::to_string(i), answer("x"));
  EXPECT_EQ(store.size(), 10u);
  EXPECT_NE(store.get("quiet", "q"), nullptr);
  EXPECT_NE(store.get("busy", "99"), nullptr);
}

TEST(ResponseStoreTest, OldAnswersGoEvenWhenTheyAreRead) {
  FakeClock clock;
  ResponseStore store({.max_age = 10min}, clock);
  store.put("t", "old", answer("old"));
  clock.advance(6min);
  store.put("t", "new", answer("new"));
  EXPECT_NE(store.get("t", "old"), nullptr);
  clock.advance(5min);
  EXPECT_EQ(store.get("t", "old"), nullptr);
  EXPECT_NE(store.get("t", "new"), nullptr);
  clock.advance(24h);
  EXPECT_EQ(store.get("t", "new"), nullptr);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStoreTest, AnIdStoredTwiceIsReplaced) {
  ResponseStore store;
  store.put("t", "a", answer("one"));
  store.put("t", "a", answer("two"));
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.get("t", "a")->document, "two");
}

TEST(ResponseStoreTest, ThreadsShareIt) {
  ResponseStore store({.max_responses = 50});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&store, t] {
      const std::string tenant = std::to_string(t % 2);
      for (int i = 0; i < 500; ++i) {
        const std::string id = std::to_string(i % 60);
        store.put(tenant, id, answer(tenant + id));
        if (const auto found = store.get(tenant, id)) {
          EXPECT_EQ(found->document, tenant + id);
        }
        if (i % 7 == 0) store.remove(tenant, id);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store.size(), 50u);
}

}  // namespace
}  // namespace weir::api
