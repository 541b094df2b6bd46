// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A draw
// is a pure function of its key and counter; nothing is kept between draws.
#pragma once

#include <array>
#include <cstdint>

namespace weir::sampling {

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Uniform in [0, 1), 53 bits, of (seed, sequence, position). `sequence` tells apart answers of one request (n > 1), so that
// the same request gives the same text at any time.
double uniform(std::uint64_t seed, std::uint64_t sequence, std::uint64_t position);

// A seed that nobody can guess, from the operating system.
std::uint64_t fresh_seed();

}  // namespace weir::sampling
