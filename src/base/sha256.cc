// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace weir {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { restart(); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  void restart() { WEIR_CHECK(context && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1, "OpenSSL offers no SHA-256"); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) { WEIR_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1); }

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  WEIR_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  state_->restart();
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.hex();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::kIo, "cannot open {}: {}", path.string(), std::strerror(errno));
  Sha256 digest;
  std::vector<std::byte> buffer(1 << 20);
  ssize_t got = 0;
  while ((got = ::read(fd, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR))
    if (got > 0) digest.update(std::span(buffer).first(static_cast<std::size_t>(got)));
  const int code = errno;
  ::close(fd);
  if (got < 0) return fail(ErrorCode::kIo, "cannot read {}: {}", path.string(), std::strerror(code));
  return digest.hex();
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace weir
