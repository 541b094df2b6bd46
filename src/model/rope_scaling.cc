// SPDX-License-Identifier: Apache-2.0
#include "model/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weir::model {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

std::vector<double> plain_frequencies(const RopeSpec& spec) {
  std::vector<double> frequencies(static_cast<std::size_t>(spec.rotary_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(spec.theta, -2.0 * static_cast<double>(i) / spec.rotary_dim);
  return frequencies;
}

// Short wavelengths stay, long ones are divided by the factor, those between are blended.
void apply_llama3(const RopeSpec& spec, std::vector<double>& frequencies) {
  const double low_wavelength = spec.original_context / spec.low_freq_factor;
  const double high_wavelength = spec.original_context / spec.high_freq_factor;
  for (double& f : frequencies) {
    const double wavelength = kTwoPi / f;
    if (wavelength < high_wavelength) continue;
    if (wavelength > low_wavelength) {
      f /= spec.factor;
      continue;
    }
    const double smooth = (spec.original_context / wavelength - spec.low_freq_factor) / (spec.high_freq_factor - spec.low_freq_factor);
    f = (1 - smooth) * f / spec.factor + smooth * f;
  }
}

// A ramp over the dimensions from extrapolation (fast ones) to interpolation (slow ones).
void apply_yarn(const RopeSpec& spec, std::vector<double>& frequencies) {
  const auto dimension_of = [&](double rotations) {
    return spec.rotary_dim * std::log(spec.original_context / (rotations * kTwoPi)) / (2 * std::log(spec.theta));
  };
  double low = dimension_of(spec.beta_fast), high = dimension_of(spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, spec.rotary_dim - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / spec.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

std::vector<double> divided(std::vector<double> frequencies, const std::vector<double>& divisors) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= divisors[i];
  return frequencies;
}

double yarn_attention_factor(const RopeSpec& spec) {
  if (spec.attention_factor) return *spec.attention_factor;
  if (spec.mscale != 0 && spec.mscale_all_dim != 0)
    return yarn_magnitude(spec.factor, spec.mscale) / yarn_magnitude(spec.factor, spec.mscale_all_dim);
  return yarn_magnitude(spec.factor, 1);
}

double long_attention_factor(const RopeSpec& spec) {
  if (spec.attention_factor) return *spec.attention_factor;
  return spec.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(spec.factor) / std::log(spec.original_context));
}

Status check_list(const std::vector<double>& values, std::size_t expected, const char* what) {
  if (values.size() != expected) return fail(ErrorCode::kCorrupt, "rope: {} has {} entries, expected {}", what, values.size(), expected);
  for (const double v : values)
    if (!std::isfinite(v) || v <= 0) return fail(ErrorCode::kCorrupt, "rope: {} holds {}, expected positive numbers", what, v);
  return {};
}

Status check_positive(double value, const char* what) {
  if (std::isfinite(value) && value > 0) return {};
  return fail(ErrorCode::kCorrupt, "rope: {} is {}, expected a positive number", what, value);
}

Status check(const RopeSpec& spec) {
  if (spec.rotary_dim <= 0 || spec.rotary_dim % 2)
    return fail(ErrorCode::kCorrupt, "rope: {} rotated dimensions, expected an even number", spec.rotary_dim);
  WEIR_TRY(check_positive(spec.theta, "theta"));
  WEIR_TRY(check_positive(spec.factor, "factor"));
  if (spec.attention_factor) WEIR_TRY(check_positive(*spec.attention_factor, "attention_factor"));
  const auto half = static_cast<std::size_t>(spec.rotary_dim / 2);
  if (!spec.divisors.empty()) WEIR_TRY(check_list(spec.divisors, half, "the list of frequency factors"));
  if (spec.scaling == RopeScaling::kNone || spec.scaling == RopeScaling::kLinear) return {};
  if (spec.original_context < 2) return fail(ErrorCode::kCorrupt, "rope: original context of {} positions", spec.original_context);
  switch (spec.scaling) {
    case RopeScaling::kLlama3:
      WEIR_TRY(check_positive(spec.low_freq_factor, "low_freq_factor"));
      WEIR_TRY(check_positive(spec.high_freq_factor - spec.low_freq_factor, "high_freq_factor - low_freq_factor"));
      break;
    case RopeScaling::kYarn:
      WEIR_TRY(check_positive(spec.beta_fast, "beta_fast"));
      WEIR_TRY(check_positive(spec.beta_slow, "beta_slow"));
      if (spec.theta <= 1) return fail(ErrorCode::kCorrupt, "rope: theta {} with yarn, expected above 1", spec.theta);
      break;
    default: WEIR_TRY(check_list(spec.short_factors, half, "short_factor")); WEIR_TRY(check_list(spec.long_factors, half, "long_factor"));
  }
  return {};
}

}  // namespace

double yarn_magnitude(double factor, double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

Result<RopeTraits> resolve_rope(const RopeSpec& spec) {
  WEIR_TRY(check(spec));
  RopeTraits rope;
  rope.pairs = spec.pairs;
  rope.rotary_dim = spec.rotary_dim;
  std::vector<double> frequencies = plain_frequencies(spec);
  switch (spec.scaling) {
    case RopeScaling::kNone: break;
    case RopeScaling::kLinear:
      for (double& f : frequencies) f /= spec.factor;
      break;
    case RopeScaling::kLlama3: apply_llama3(spec, frequencies); break;
    case RopeScaling::kYarn:
      apply_yarn(spec, frequencies);
      rope.magnitude = yarn_attention_factor(spec);
      break;
    case RopeScaling::kLong:
      rope.long_frequencies = divided(frequencies, spec.long_factors);
      rope.long_above = spec.original_context;
      frequencies = divided(std::move(frequencies), spec.short_factors);
      rope.magnitude = rope.long_magnitude = long_attention_factor(spec);
      break;
  }
  if (!spec.divisors.empty()) frequencies = divided(std::move(frequencies), spec.divisors);
  rope.inverse_frequencies = std::move(frequencies);
  return rope;
}

}  // namespace weir::model
