// SPDX-License-Identifier: Apache-2.0
// One way to say how a quantity varies (lengths, waiting times, a server's pace), from a short text:
//   250ms | uniform:100ms,300ms | normal:250ms,25ms | lognormal:250ms,80ms | exp:250ms | empirical:100ms,100ms,900ms
// Normal and lognormal take the mean and the standard deviation of the values themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "loadgen/random.h"

namespace weir::loadgen {

// "500ms", "2s", "1.5us", "3m", "1h"; a bare number is in `bare_unit` seconds. Never negative.
Result<double> parse_seconds(std::string_view text, double bare_unit = 1);
Result<double> parse_number(std::string_view text, std::string_view what);  // finite
Result<std::int64_t> parse_count(std::string_view text, std::string_view what, std::int64_t min, std::int64_t max);
std::vector<std::string_view> split(std::string_view text, char separator);
Duration to_duration(double seconds);

class Distribution {
 public:
  enum class Kind { kConstant, kUniform, kNormal, kLognormal, kExponential, kEmpirical };
  enum class Unit { kPlain, kSeconds };

  Distribution() = default;
  static Distribution constant(double value);
  static Distribution empirical(std::vector<double> values);  // drawn evenly; not empty
  static Result<Distribution> parse(std::string_view text, Unit unit);

  double draw(Random& random) const;  // never below zero
  double mean() const;                // of the distribution as declared
  bool is_constant() const { return kind_ == Kind::kConstant; }
  std::string description() const;

 private:
  Kind kind_ = Kind::kConstant;
  double a_ = 0, b_ = 0;
  std::vector<double> values_;
};

}  // namespace weir::loadgen
