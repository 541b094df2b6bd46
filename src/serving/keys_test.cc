// SPDX-License-Identifier: Apache-2.0
// Keys files: what they grant, that they hold no keys, and what is refused in them.
#include "serving/keys.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/testing.h"

namespace weir::serving {
namespace {

constexpr std::string_view kAlice = "sk-weir-alice-0123456789abcdef";
constexpr std::string_view kBob = "sk-weir-bob-0123456789abcdefgh";

std::string entry(std::string_view name, std::string_view key, std::string_view more = {}) {
  return fmt::format("[[keys]]\nname = \"{}\"\nhash = \"{}\"\n{}\n", name, hash_key(key).value(), more);
}

std::string error_of(std::string_view toml) {
  const auto table = KeyTable::parse(toml, "keys.toml");
  return table ? "no error" : table.error().message;
}

TEST(KeyHash, IsSaltedAndHoldsNoKey) {
  const std::string one = hash_key(kAlice).value(), two = hash_key(kAlice).value();
  EXPECT_NE(one, two);
  EXPECT_EQ(one.find("alice"), std::string::npos);
  EXPECT_EQ(one.size(), std::string("hmac-sha256:").size() + 32 + 1 + 64);
  const KeyHash parsed = parse_key_hash(one).value();
  EXPECT_EQ(hash_key(kAlice, parsed.salt).value(), one);
  EXPECT_NE(parse_key_hash(hash_key(kBob, parsed.salt).value())->hash, parsed.hash);
}

// HMAC-SHA-256 with the salt as its key, so that other programs can make hashes too (checked with Python's hmac).
TEST(KeyHash, IsHmacSha256) {
  std::array<unsigned char, 16> salt{};
  for (std::size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<unsigned char>(i);
  EXPECT_EQ(hash_key("sk-weir-0123456789abcdefghij", salt).value(),
            "hmac-sha256:000102030405060708090a0b0c0d0e0f:20573373ad97a23e4f1b0c582aebb2e642ed60e0f05cd218cf279161a2af8488");
}

TEST(KeyHash, ShortKeysAreRefusedAndMadeOnesAreLong) {
  EXPECT_FALSE(hash_key("password"));
  EXPECT_FALSE(hash_key(std::string(2000, 'k')));
  const std::string key = make_key();
  EXPECT_EQ(key.size(), 51u);
  EXPECT_TRUE(key.starts_with("sk-weir-"));
  EXPECT_NE(key, make_key());
  EXPECT_TRUE(hash_key(key));
}

TEST(KeyHash, MalformedOnesAreErrors) {
  const std::string good = hash_key(kAlice).value();
  for (const std::string& bad : {std::string(), std::string("sha256:") + good.substr(12), good.substr(0, good.size() - 1), good + "0",
                                 std::string(good).replace(15, 1, "g"), std::string(good).replace(44, 1, "-")})
    EXPECT_FALSE(parse_key_hash(bad)) << bad;
}

TEST(KeyTable, FindsKeysAndNothingElse) {
  const auto table = KeyTable::parse(entry("alice", kAlice) + entry("bob", kBob), "keys.toml");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_NE(table->find(kAlice), nullptr);
  EXPECT_EQ(table->find(kAlice)->name, "alice");
  EXPECT_EQ(table->find(kBob)->name, "bob");
  EXPECT_EQ(table->find(""), nullptr);
  EXPECT_EQ(table->find(kAlice.substr(1)), nullptr);
  EXPECT_EQ(table->find(std::string(kAlice) + "x"), nullptr);
  EXPECT_EQ(table->find(table->keys()[0].name), nullptr);
  EXPECT_EQ(table->find(std::string(1 << 20, 'a')), nullptr);
}

TEST(KeyTable, ReadsWhatAKeyMayDo) {
  const auto table = KeyTable::parse(entry("alice", kAlice, R"(tenant = "research"
requests_per_minute = 60
tokens_per_minute = 100000
concurrent = 4
models = ["smollm2", "qwen*"]
max_priority = 5
admin = true
expires = 2027-01-31T12:00:00+02:00
comment = "by mail")") + entry("bob", kBob, "expires = 2027-01-31") +
                                         "[[keys]]\nname = \"jobs\"\ncertificate = \"CN=jobs\"\n",
                                     "keys.toml", {.requests_per_minute = 7, .concurrent = 9});
  ASSERT_TRUE(table) << table.error().message;
  const KeyRecord& alice = table->keys()[0];
  EXPECT_EQ(alice.tenant, "research");
  EXPECT_EQ(alice.limits, (KeyLimits{60, 100000, 4}));
  EXPECT_EQ(alice.max_priority, 5);
  EXPECT_TRUE(alice.admin);
  EXPECT_EQ(alice.expires, 1801389600);
  EXPECT_TRUE(may_use_model(alice, "smollm2"));
  EXPECT_FALSE(may_use_model(alice, "smollm2-large"));
  EXPECT_TRUE(may_use_model(alice, "qwen2.5"));
  const KeyRecord& bob = table->keys()[1];
  EXPECT_EQ(bob.tenant, "bob");
  EXPECT_EQ(bob.limits, (KeyLimits{7, 0, 9}));  // the defaults
  EXPECT_EQ(bob.expires, 1801440000);           // the end of the day
  EXPECT_TRUE(may_use_model(bob, "anything"));
  EXPECT_EQ(table->find_certificate("CN=jobs")->name, "jobs");
  EXPECT_EQ(table->find_certificate("CN=other"), nullptr);
  EXPECT_EQ(table->find_certificate(""), nullptr);
}

TEST(KeyTable, ErrorsNameTheLineAndWhatIsRight) {
  const std::string good = entry("alice", kAlice);
  EXPECT_EQ(error_of(good + "[[keys]]\nname = \"bob\"\n"), "keys.toml:5: the key 'bob' needs either a 'hash' or a 'certificate'");
  EXPECT_EQ(error_of(entry("alice", kAlice, "tokens_per_minut = 3")),
            "keys.toml:1: there is no 'tokens_per_minut' of a key; did you mean 'tokens_per_minute'?");
  EXPECT_EQ(error_of(good + entry("alice", kBob)), "keys.toml:5: there is another key named 'alice'");
  EXPECT_NE(error_of(good + fmt::format("[[keys]]\nname = \"eve\"\nhash = \"{}\"\n", parse_key_hash("").has_value())), "no error");
  EXPECT_EQ(error_of("[[keys]]\nhash = \"x\"\n"), "keys.toml:1: a key needs a 'name'");
  EXPECT_EQ(error_of("key = 1\n"), "keys.toml:1: 'key' means nothing here: a keys file has [[keys]] only");
  EXPECT_EQ(error_of("keys = 1\n"), "keys.toml: 'keys' should be tables: [[keys]]");
  for (const char* more : {"requests_per_minute = -1", "concurrent = \"4\"", "models = []", "models = [1]", "expires = \"2027-01-31\"",
                           "expires = 2027", "admin = 1", "tenant = \"\"", "max_priority = 99999999", "name = \"twice\""})
    EXPECT_NE(error_of(entry("alice", kAlice, more)), "no error") << more;
  EXPECT_NE(error_of("[[keys"), "no error");
  EXPECT_EQ(error_of(""), "no error");  // nobody may do anything
}

TEST(KeyTable, TheSameKeyTwiceIsAnError) {
  const std::string hash = hash_key(kAlice).value();
  const std::string twice = fmt::format("[[keys]]\nname = \"a\"\nhash = \"{0}\"\n[[keys]]\nname = \"b\"\nhash = \"{0}\"\n", hash);
  EXPECT_EQ(error_of(twice), "keys.toml:4: the key 'b' has the same hash as another");
}

TEST(KeyTable, ManySaltsAreAnErrorAndOneSaltServesManyKeys) {
  std::string toml;
  for (std::size_t i = 0; i <= KeyTable::kMostSalts; ++i) toml += entry("k" + std::to_string(i), kAlice);
  EXPECT_NE(error_of(toml).find("different salts"), std::string::npos);
  const auto salt = parse_key_hash(hash_key(kAlice).value())->salt;
  toml.clear();
  for (int i = 0; i < 2000; ++i)
    toml += fmt::format("[[keys]]\nname = \"k{0}\"\nhash = \"{1}\"\n", i,
                        hash_key(fmt::format("sk-weir-0123456789abcdef-{}", i), salt).value());
  const auto table = KeyTable::parse(toml, "keys.toml");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->find("sk-weir-0123456789abcdef-1234")->name, "k1234");
  EXPECT_EQ(table->salt(), salt);
}

TEST(KeyTable, AFileThatIsNotThereIsAnError) { EXPECT_FALSE(KeyTable::read("/does/not/exist/keys.toml")); }

}  // namespace
}  // namespace weir::serving
