// SPDX-License-Identifier: Apache-2.0
// SHA-256 of content that comes in pieces, as lower-case hex. OpenSSL beneath.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  std::string hex();  // ends this digest; the object then starts a new one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_of(std::string_view bytes);
Result<std::string> sha256_of_file(const std::filesystem::path& path);

// Exactly 64 hexadecimal digits, of either case.
bool is_sha256(std::string_view text);

}  // namespace weir
