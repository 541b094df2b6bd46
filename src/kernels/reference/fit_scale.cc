// SPDX-License-Identifier: Apache-2.0
// Least squares: for levels l_i chosen with a trial scale, the best scale is Σ x·l / Σ l².
#include "kernels/reference/fit_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::kernels {
namespace {

constexpr int kCandidates = 9;  // trial scales around the one that just holds the extreme value

float extreme(std::span<const float> x) {
  float found = 0;
  for (const float v : x)
    if (std::fabs(v) > std::fabs(found)) found = v;
  return found;
}

// Tries scales; round(value) gives the level for x / scale.
template <class Round>
GroupFit best_scale(std::span<const float> x, float first_scale, Round round) {
  GroupFit best;
  double least = std::numeric_limits<double>::infinity();
  for (int c = 0; c < kCandidates; ++c) {
    const float trial = first_scale * (0.8f + 0.05f * static_cast<float>(c));
    if (trial == 0) break;
    double xl = 0, ll = 0;
    for (const float v : x) {
      const double level = round(v / trial);
      xl += v * level, ll += level * level;
    }
    const auto scale = static_cast<float>(ll > 0 ? xl / ll : 0);
    if (scale == 0) continue;
    double error = 0;
    for (const float v : x) {
      const double off = v - scale * round(v / scale);
      error += off * off;
    }
    if (error < least) least = error, best.scale = scale;
  }
  return best;
}

}  // namespace

GroupFit fit_symmetric(std::span<const float> x, int below, int above) {
  const float largest = extreme(x);
  // The extreme value takes the side that reaches further.
  const float side = below > above ? -static_cast<float>(below) : static_cast<float>(above);
  return best_scale(x, largest / side,
                    [&](float v) { return std::clamp(std::nearbyint(v), -static_cast<float>(below), static_cast<float>(above)); });
}

GroupFit fit_with_offset(std::span<const float> x, int max, bool negative_offset) {
  auto [low, high] = std::ranges::minmax(x);
  if (negative_offset) low = std::min(low, 0.0f);
  GroupFit best{0, low};
  double least = std::numeric_limits<double>::infinity();
  for (int c = 0; c < kCandidates; ++c) {
    const float trial = (high - low) / static_cast<float>(max) * (0.8f + 0.05f * static_cast<float>(c));
    if (!(trial > 0)) break;
    // Scale and offset together by least squares over the levels of the trial.
    double n = 0, sum_l = 0, sum_ll = 0, sum_x = 0, sum_xl = 0;
    const auto level = [&](float v, float scale, float offset) {
      return std::clamp(std::nearbyint((v - offset) / scale), 0.0f, static_cast<float>(max));
    };
    for (const float v : x) {
      const double l = level(v, trial, low);
      n += 1, sum_l += l, sum_ll += l * l, sum_x += v, sum_xl += v * l;
    }
    const double determinant = n * sum_ll - sum_l * sum_l;
    const bool solvable = determinant > 0;  // else all values take one level
    auto scale = solvable ? static_cast<float>((n * sum_xl - sum_l * sum_x) / determinant) : trial;
    auto offset = solvable ? static_cast<float>((sum_x - scale * sum_l) / n) : low;
    if (negative_offset && offset > 0) {
      offset = 0;
      scale = static_cast<float>(sum_ll > 0 ? sum_xl / sum_ll : 0);
    }
    if (!(scale > 0)) continue;
    double error = 0;
    for (const float v : x) {
      const double off = v - (scale * level(v, scale, offset) + offset);
      error += off * off;
    }
    if (error < least) least = error, best = {scale, offset};
  }
  return best;
}

int nearest_entry(float value, std::span<const std::int8_t> levels) {
  int best = 0;
  for (int i = 1; i < static_cast<int>(levels.size()); ++i) {
    const auto distance = [&](int at) { return std::fabs(value - static_cast<float>(levels[static_cast<std::size_t>(at)])); };
    if (distance(i) < distance(best)) best = i;
  }
  return best;
}

GroupFit fit_codebook(std::span<const float> x, std::span<const std::int8_t> levels) {
  const float outermost = static_cast<float>(std::ranges::min(levels));
  return best_scale(x, extreme(x) / outermost,
                    [&](float v) { return static_cast<float>(levels[static_cast<std::size_t>(nearest_entry(v, levels))]); });
}

}  // namespace weir::kernels
