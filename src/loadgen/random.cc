// SPDX-License-Identifier: Apache-2.0
#include "loadgen/random.h"

#include <cmath>
#include <numbers>

namespace weir::loadgen {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) : state_(mix(seed + kGolden) ^ mix(stream * kGolden + 0x1234567)) {}

std::uint64_t Random::next() { return mix(state_ += kGolden); }

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::uint64_t Random::below(std::uint64_t bound) {
  return next() % bound;  // the bias is below bound × 2^-64
}

double Random::exponential(double mean) { return -mean * std::log1p(-uniform()); }

double Random::normal(double mean, double deviation) {
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return mean + deviation * radius * std::cos(2 * std::numbers::pi * uniform());
}

double Random::gamma(double shape, double scale) {
  if (shape < 1) {
    const double u = 1 - uniform();
    return gamma(shape + 1, scale) * std::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(0, 1), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

}  // namespace weir::loadgen
