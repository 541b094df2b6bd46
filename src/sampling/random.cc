// SPDX-License-Identifier: Apache-2.0
#include "sampling/random.h"

#include <sys/random.h>

#include "base/check.h"

namespace weir::sampling {

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMul0 * c[0], p1 = kMul1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

double uniform(std::uint64_t seed, std::uint64_t sequence, std::uint64_t position) {
  const auto bits = philox4x32_10({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                                   static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
                                  {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t wide = (static_cast<std::uint64_t>(bits[0]) << 32) | bits[1];
  return static_cast<double>(wide >> 11) * 0x1.0p-53;
}

std::uint64_t fresh_seed() {
  std::uint64_t seed = 0;
  WEIR_CHECK(::getrandom(&seed, sizeof seed, 0) == static_cast<ssize_t>(sizeof seed), "no random bytes from the system");
  return seed;
}

}  // namespace weir::sampling
