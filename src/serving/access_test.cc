// SPDX-License-Identifier: Apache-2.0
// Who may call and how much, from the headers of a request to its ticket; and files that are read again while requests run.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/file_io.h"
#include "base/testing.h"
#include "serving/access_keys.h"

namespace weir::serving {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kAlice = "sk-weir-alice-0123456789abcdef";
constexpr std::string_view kBob = "sk-weir-bob-0123456789abcdefgh";

std::string entry(std::string_view name, std::string_view key, std::string_view more = {}) {
  return fmt::format("[[keys]]\nname = \"{}\"\nhash = \"{}\"\n{}\n", name, hash_key(key).value(), more);
}

http::Request head(std::string_view name, std::string_view value) {
  http::Request request;
  request.headers.add(name, value);
  return request;
}

// A server's door with keys, on a clock of its own.
struct Door {
  FakeClock clock;
  std::int64_t unix_now = 1'800'000'000;
  std::shared_ptr<KeyedAccess> access;

  explicit Door(const std::string& toml) {
    auto table = KeyTable::parse(toml, "keys.toml");
    EXPECT_TRUE(table) << table.error().message;
    access = std::make_shared<KeyedAccess>(std::move(*table), clock, [this] { return unix_now; });
  }
  Caller caller(std::string_view key) const { return access->identify(head("Authorization", fmt::format("Bearer {}", key))).value(); }
};

TEST(OpenAccess, LetsEverybodyDoEverything) {
  const auto access = open_access();
  const auto caller = access->identify({});
  ASSERT_TRUE(caller);
  EXPECT_TRUE(caller->name.empty());
  EXPECT_TRUE(caller->admin);
  EXPECT_TRUE(access->may_use(*caller, "any"));
  auto ticket = access->admit(*caller, 1 << 30, 1 << 30);
  ASSERT_TRUE(ticket);
  (*ticket)->settle(1, 1);
}

TEST(KeyedAccess, TakesTheKeyFromTheHeadersThatClientsUse) {
  const Door s(entry("alice", kAlice, "tenant = \"t\"\nmax_priority = 3\nadmin = true"));
  for (const auto& [name, format] : {std::pair("Authorization", "Bearer {}"),
                                     {"authorization", "bearer   {}  "},
                                     {"x-api-key", "{}"},
                                     {"X-API-Key", " {} "},
                                     {"api-key", "{}"}}) {
    const auto caller = s.access->identify(head(name, fmt::format(fmt::runtime(format), kAlice)));
    ASSERT_TRUE(caller) << name;
    EXPECT_EQ(caller->name, "alice");
    EXPECT_EQ(caller->tenant, "t");
    EXPECT_EQ(caller->max_priority, 3);
    EXPECT_TRUE(caller->admin);
  }
}

TEST(KeyedAccess, RefusesWithoutRepeatingTheKey) {
  const Door s(entry("alice", kAlice));
  const std::pair<http::Request, const char*> cases[] = {
      {http::Request{}, "missing_api_key"},
      {head("Authorization", ""), "missing_api_key"},
      {head("Authorization", "Bearer"), "missing_api_key"},
      {head("Authorization", fmt::format("Basic {}", kAlice)), "missing_api_key"},
      {head("Authorization", "Bearer sk-weir-wrong-wrong-wrong"), "invalid_api_key"},
      {head("x-api-key", fmt::format("{}x", kAlice)), "invalid_api_key"},
      {head("Authorization", fmt::format("Bearer {}, {}", kAlice, kAlice)), "invalid_api_key"},
  };
  for (const auto& [request, code] : cases) {
    const auto caller = s.access->identify(request);
    ASSERT_FALSE(caller);
    EXPECT_EQ(caller.error().status, 401);
    EXPECT_EQ(caller.error().code, code);
    EXPECT_EQ(caller.error().message.find("sk-weir"), std::string::npos);
  }
}

TEST(KeyedAccess, ACertificateStandsForItsKey) {
  const Door s("[[keys]]\nname = \"jobs\"\ncertificate = \"CN=jobs\"\n");
  http::Request request;
  request.client_certificate = "CN=jobs";
  EXPECT_EQ(s.access->identify(request)->name, "jobs");
  request.headers.add("x-api-key", "sk-weir-wrong-wrong-wrong");  // a wrong key is not made good by a certificate
  EXPECT_FALSE(s.access->identify(request));
  request = {};
  request.client_certificate = "CN=other";
  EXPECT_FALSE(s.access->identify(request));
}

TEST(KeyedAccess, KeysExpire) {
  Door s(entry("alice", kAlice, "expires = 2027-01-31T12:00:00Z"));  // 1801396800
  s.unix_now = 1801396799;
  EXPECT_EQ(s.caller(kAlice).name, "alice");
  s.unix_now = 1801396800;
  const auto caller = s.access->identify(head("x-api-key", kAlice));
  ASSERT_FALSE(caller);
  EXPECT_EQ(caller.error().code, "expired_api_key");
}

TEST(KeyedAccess, ModelsAreThoseOfTheKey) {
  const Door s(entry("alice", kAlice, "models = [\"smollm2\"]") + entry("bob", kBob));
  EXPECT_TRUE(s.access->may_use(s.caller(kAlice), "smollm2"));
  EXPECT_TRUE(s.access->may_use(s.caller(kBob), "big"));
  const auto refused = s.access->may_use(s.caller(kAlice), "big");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 403);
  EXPECT_EQ(refused.error().code, "model_not_allowed");
}

TEST(KeyedAccess, LimitsAreEachKeysOwnAndSayWhenToComeAgain) {
  Door s(entry("alice", kAlice, "requests_per_minute = 1") + entry("bob", kBob, "requests_per_minute = 1"));
  ASSERT_TRUE(s.access->admit(s.caller(kAlice), 10, 10));
  const auto refused = s.access->admit(s.caller(kAlice), 10, 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_EQ(refused.error().code, "rate_limit_exceeded");
  EXPECT_NEAR(refused.error().retry_after_s, 60, 0.001);
  EXPECT_EQ(refused.error().message, "The key 'alice' has reached its limit of 1 requests per minute. Try again in 1m0s.");
  EXPECT_TRUE(s.access->admit(s.caller(kBob), 10, 10));
  s.clock.advance(60s);
  EXPECT_TRUE(s.access->admit(s.caller(kAlice), 10, 10));
}

TEST(KeyedAccess, TicketsGiveBackWhatWasNotGenerated) {
  Door s(entry("alice", kAlice, "tokens_per_minute = 1000\nconcurrent = 1"));
  const Caller alice = s.caller(kAlice);
  const auto left = [&] { return s.access->limit_headers(alice).at(1).second; };
  {
    auto ticket = s.access->admit(alice, 100, 800);
    ASSERT_TRUE(ticket);
    EXPECT_EQ(left(), "100");
    EXPECT_EQ(s.access->admit(alice, 1, 1).error().code, "concurrency_limit_exceeded");
    (*ticket)->settle(100, 50);
  }
  EXPECT_EQ(left(), "850");
  {
    ASSERT_TRUE(s.access->admit(alice, 50, 100));
  }  // dropped without a word: stays charged, and is over
  EXPECT_EQ(left(), "700");
  EXPECT_TRUE(s.access->admit(alice, 1, 1));
  const auto huge = s.access->admit(alice, INT64_MAX, INT64_MAX);  // sums do not overflow
  EXPECT_FALSE(huge);
}

TEST(KeyedAccess, AReloadChangesKeysAndLimitsAndKeepsWhatWasUsed) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "keys.toml";
  ASSERT_TRUE(write_file_atomically(file, entry("alice", kAlice, "requests_per_minute = 10")));
  FakeClock clock;
  auto access = KeyedAccess::open(file, {}, clock);
  ASSERT_TRUE(access) << access.error().message;
  const Caller alice = (*access)->identify(head("x-api-key", kAlice)).value();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE((*access)->admit(alice, 1, 1));
  auto ticket = (*access)->admit(alice, 1, 1);
  EXPECT_FALSE(ticket);

  ASSERT_TRUE(write_file_atomically(file, entry("alice", kAlice, "requests_per_minute = 20") + entry("bob", kBob)));
  ASSERT_TRUE((*access)->reload());
  EXPECT_TRUE((*access)->identify(head("x-api-key", kBob)));
  EXPECT_FALSE((*access)->admit(alice, 1, 1));  // still nothing left
  clock.advance(3s);
  EXPECT_TRUE((*access)->admit(alice, 1, 1));

  ASSERT_TRUE(write_file_atomically(file, "[[keys]]\nname = \"broken\"\n"));
  EXPECT_FALSE((*access)->reload());
  EXPECT_TRUE((*access)->identify(head("x-api-key", kBob)));  // the old ones stay

  ASSERT_TRUE(write_file_atomically(file, entry("bob", kBob)));
  ASSERT_TRUE((*access)->reload());
  EXPECT_FALSE((*access)->identify(head("x-api-key", kAlice)));
  EXPECT_EQ((*access)->admit(alice, 1, 1).error().status, 401);  // identified before the reload
  EXPECT_FALSE((*access)->may_use(alice, "smollm2"));
}

TEST(KeyedAccess, ReloadsWhileRequestsRun) {
  Door s(entry("alice", kAlice, "concurrent = 3") + entry("bob", kBob));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        const auto caller = s.access->identify(head("x-api-key", kAlice));
        ASSERT_TRUE(caller);
        if (auto ticket = s.access->admit(*caller, 1, 1)) (*ticket)->settle(1, 1);
        s.access->limit_headers(*caller);
      }
    });
  for (int i = 0; i < 200; ++i) s.access->replace(KeyTable::parse(entry("alice", kAlice, "concurrent = 3"), "keys.toml").value());
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(s.access->admit(s.caller(kAlice), 1, 1));  // all tickets were counted off
}

}  // namespace
}  // namespace weir::serving
