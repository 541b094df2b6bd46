// SPDX-License-Identifier: Apache-2.0
#include "serving/keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/file_io.h"
#include "serving/key_file.h"

namespace weir::serving {
namespace {

constexpr std::string_view kScheme = "hmac-sha256:";
constexpr std::size_t kShortestKey = 20, kLongestKey = 1024;
using Salt = std::array<unsigned char, 16>;

// The hash as the bytes of a string, which is how maps find it.
std::string hash_of(std::string_view key, const Salt& salt) {
  std::string hash(32, '\0');
  unsigned size = 0;
  WEIR_CHECK(::HMAC(::EVP_sha256(), salt.data(), static_cast<int>(salt.size()), reinterpret_cast<const unsigned char*>(key.data()),
                    key.size(), reinterpret_cast<unsigned char*>(hash.data()), &size));
  return hash;
}

std::string hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) (text += kDigits[byte >> 4]) += kDigits[byte & 15];
  return text;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool parse_hex(std::string_view text, std::span<unsigned char> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

}  // namespace

std::string make_key() {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 43> random{};
  WEIR_CHECK(::RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
  std::string key = "sk-weir-";
  for (const unsigned char byte : random) key += kLetters[byte & 63];
  return key;
}

Result<std::string> hash_key(std::string_view key, std::optional<Salt> salt) {
  if (key.size() < kShortestKey || key.size() > kLongestKey)
    return fail(ErrorCode::kInvalidArgument, "a key should have {} to {} characters, chosen at random: this one has {}", kShortestKey,
                kLongestKey, key.size());
  if (!salt) {
    salt.emplace();
    WEIR_CHECK(::RAND_bytes(salt->data(), static_cast<int>(salt->size())) == 1);
  }
  const std::string hash = hash_of(key, *salt);
  return std::string(kScheme) + hex(*salt) + ":" + hex({reinterpret_cast<const unsigned char*>(hash.data()), hash.size()});
}

Result<KeyHash> parse_key_hash(std::string_view text) {
  KeyHash parsed;
  const bool known = text.starts_with(kScheme);
  if (known) text.remove_prefix(kScheme.size());
  const std::size_t colon = text.find(':');
  if (!known || colon == std::string_view::npos || !parse_hex(text.substr(0, colon), parsed.salt) ||
      !parse_hex(text.substr(colon + 1), parsed.hash))
    return fail(ErrorCode::kCorrupt,
                "not a hash of a key: it should look like {}<32 hex digits>:<64 hex digits>, as `weir serve --hash-key` prints it",
                kScheme);
  return parsed;
}

Result<KeyTable> KeyTable::parse(std::string_view toml, std::string_view what, const KeyLimits& defaults) {
  KeyTable table;
  WEIR_ASSIGN(auto entries, parse_key_file(toml, what, defaults));
  for (KeyEntry& entry : entries)
    if (auto added = table.add(std::move(entry.record), entry.hash); !added)
      return std::unexpected(std::move(added.error()).with_context(fmt::format("{}:{}", what, entry.line)));
  return table;
}

Result<KeyTable> KeyTable::read(const std::filesystem::path& path, const KeyLimits& defaults) {
  WEIR_ASSIGN(const std::string text, read_file(path, 64u << 20));
  return parse(text, path.string(), defaults);
}

Status KeyTable::add(KeyRecord record, const std::optional<KeyHash>& hash) {
  const std::size_t index = keys_.size();
  if (index >= kMostKeys) return fail(ErrorCode::kExhausted, "more than {} keys", kMostKeys);
  if (!names_.emplace(record.name, index).second) return fail(ErrorCode::kCorrupt, "there is another key named '{}'", record.name);
  if (hash) {
    auto salt = std::find_if(salts_.begin(), salts_.end(), [&](const OfSalt& other) { return other.salt == hash->salt; });
    if (salt == salts_.end()) {
      if (salts_.size() >= kMostSalts)
        return fail(ErrorCode::kExhausted, "more than {} different salts: hash the keys with the salt of the file's first one", kMostSalts);
      salt = salts_.insert(salt, {hash->salt, {}});
    }
    std::string bytes(reinterpret_cast<const char*>(hash->hash.data()), hash->hash.size());
    if (!salt->by_hash.emplace(std::move(bytes), index).second)
      return fail(ErrorCode::kCorrupt, "the key '{}' has the same hash as another", record.name);
  }
  if (!record.certificate.empty() && !certificates_.emplace(record.certificate, index).second)
    return fail(ErrorCode::kCorrupt, "the certificate of '{}' stands for another key already", record.name);
  keys_.push_back(std::move(record));
  return {};
}

const KeyRecord* KeyTable::find(std::string_view key) const {
  if (key.empty() || key.size() > kLongestKey) return nullptr;
  const KeyRecord* found = nullptr;
  for (const OfSalt& salt : salts_) {
    // Who times the lookup learns about hashes that he cannot steer without knowing the salt; the last word is a comparison of all bytes.
    const std::string hash = hash_of(key, salt.salt);
    const auto entry = salt.by_hash.find(hash);
    if (entry != salt.by_hash.end() && ::CRYPTO_memcmp(entry->first.data(), hash.data(), hash.size()) == 0) found = &keys_[entry->second];
  }
  return found;
}

const KeyRecord* KeyTable::find_certificate(std::string_view subject) const {
  if (subject.empty()) return nullptr;
  const auto found = certificates_.find(std::string(subject));
  return found == certificates_.end() ? nullptr : &keys_[found->second];
}

std::optional<Salt> KeyTable::salt() const { return salts_.empty() ? std::nullopt : std::optional(salts_.front().salt); }

bool may_use_model(const KeyRecord& key, std::string_view model) {
  if (key.models.empty()) return true;
  return std::any_of(key.models.begin(), key.models.end(), [&](std::string_view allowed) {
    if (!allowed.ends_with('*')) return allowed == model;
    allowed.remove_suffix(1);
    return model.starts_with(allowed);
  });
}

}  // namespace weir::serving
