// SPDX-License-Identifier: Apache-2.0
// API keys as an operator keeps them: a TOML file with a salted hash for each, never the key. Keys are random and long, so that a fast
// hash (HMAC-SHA-256 with the salt) is as safe as a slow one and costs a microsecond at each request; slow ones would let anybody
// keep the server busy with wrong keys. All keys of a file should share one salt: then a lookup is one hash however many there are.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "serving/limits.h"

namespace weir::serving {

struct KeyRecord {
  std::string name;    // unique; for logs and metrics
  std::string tenant;  // whose share it uses, and who shares its cached prefixes; by default the name
  KeyLimits limits = {};
  std::vector<std::string> models = {};  // "llama*" stands for all that begin so; empty: all models
  std::int32_t max_priority = 0;
  bool admin = false;
  std::optional<std::int64_t> expires = {};  // seconds since 1970
  std::string certificate = {};              // subject of a client certificate that stands for this key, instead of a hash
};

// A key as it is kept: "hmac-sha256:<salt, hex>:<hash, hex>".
struct KeyHash {
  std::array<unsigned char, 16> salt = {};
  std::array<unsigned char, 32> hash = {};
  friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

// A new random key: "sk-weir-" and 43 letters, 256 bits.
std::string make_key();
// The line for the file; a salt is made when none is given. kInvalidArgument for keys under 20 characters: they can be guessed.
Result<std::string> hash_key(std::string_view key, std::optional<std::array<unsigned char, 16>> salt = {});
Result<KeyHash> parse_key_hash(std::string_view text);

class KeyTable {
 public:
  static constexpr std::size_t kMostKeys = 100'000;
  static constexpr std::size_t kMostSalts = 256;  // each costs a hash at every wrong key

  // `defaults`: the limits of keys that name none. Errors name the key and the line.
  static Result<KeyTable> parse(std::string_view toml, std::string_view what, const KeyLimits& defaults = {});
  static Result<KeyTable> read(const std::filesystem::path& path, const KeyLimits& defaults = {});

  // Who that is, or null. Takes as long for wrong keys as for right ones.
  const KeyRecord* find(std::string_view key) const;
  const KeyRecord* find_certificate(std::string_view subject) const;
  const std::vector<KeyRecord>& keys() const { return keys_; }
  // The file's first salt, for hashes to be added to it.
  std::optional<std::array<unsigned char, 16>> salt() const;

 private:
  struct OfSalt {
    std::array<unsigned char, 16> salt = {};
    std::unordered_map<std::string, std::size_t> by_hash;  // an index into keys_
  };
  Status add(KeyRecord record, const std::optional<KeyHash>& hash);

  std::vector<KeyRecord> keys_;
  std::vector<OfSalt> salts_;
  std::unordered_map<std::string, std::size_t> names_, certificates_;
};

bool may_use_model(const KeyRecord& key, std::string_view model);

}  // namespace weir::serving
