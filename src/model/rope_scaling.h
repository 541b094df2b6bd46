// SPDX-License-Identifier: Apache-2.0
// Rotary embedding: a base and a way of stretching it to longer contexts, resolved once to plain inverse frequencies and a
// magnitude, all in double. The formulas are those of transformers (modeling_rope_utils); papers: RoPE arXiv:2104.09864,
// YaRN arXiv:2309.00071, LongRoPE arXiv:2402.13753.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/traits.h"

namespace weir::model {

enum class RopeScaling { kNone, kLinear, kLlama3, kYarn, kLong };

struct RopeSpec {
  bool pairs = false;
  std::int32_t rotary_dim = 0;
  double theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;
  std::int32_t original_context = 0;                    // needed by llama3, yarn and longrope
  std::optional<double> attention_factor{};             // the magnitude; computed when absent
  double low_freq_factor = 1, high_freq_factor = 4;     // llama3
  double beta_fast = 32, beta_slow = 1;                 // yarn
  double mscale = 0, mscale_all_dim = 0;                // yarn; 0 = not given
  bool truncate = true;                                 // yarn: round the ends of the ramp outwards
  std::vector<double> short_factors{}, long_factors{};  // longrope
  std::int32_t only_up_to = 0;                          // dynamic scaling: plain frequencies up to this many positions, 0 = everywhere
  std::vector<double> divisors{};                       // each frequency is divided by its entry (GGUF's rope_freqs); empty = none
};

// kCorrupt naming the value that makes no sense: an odd dimension, a factor that is not positive, lists of the wrong length.
Result<RopeTraits> resolve_rope(const RopeSpec& spec);

// What YaRN multiplies into scores to keep their entropy: 1 + 0.1·mscale·ln(factor), 1 when nothing is stretched.
double yarn_magnitude(double factor, double mscale);

}  // namespace weir::model
