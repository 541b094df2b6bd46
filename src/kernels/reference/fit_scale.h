// SPDX-License-Identifier: Apache-2.0
// Scales for a group of values: a handful of candidates, each refined by least squares, the one with the least squared
// error wins.
#pragma once

#include <cstdint>
#include <span>

namespace weir::kernels {

struct GroupFit {
  float scale = 0;
  float offset = 0;
};

// Levels scale · q for q in [-below, above]. The scale may be negative, so that the larger side holds the largest value.
GroupFit fit_symmetric(std::span<const float> x, int below, int above);

// Levels scale · q + offset for q in [0, max]; `negative_offset`: the offset is at most 0.
GroupFit fit_with_offset(std::span<const float> x, int max, bool negative_offset);

// Levels scale · levels[i].
GroupFit fit_codebook(std::span<const float> x, std::span<const std::int8_t> levels);

// Index of the level nearest to `value`; the first of equals.
int nearest_entry(float value, std::span<const std::int8_t> levels);

}  // namespace weir::kernels
