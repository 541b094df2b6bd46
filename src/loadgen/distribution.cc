// SPDX-License-Identifier: Apache-2.0
#include "loadgen/distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMaxValues = 1u << 20;
constexpr double kMaxSeconds = 1e8;  // three years: sums stay far from the end of 64-bit nanoseconds

struct Name {
  std::string_view text;
  Distribution::Kind kind;
  std::size_t values;  // 0: one or more
};

constexpr Name kNames[] = {
    {"constant", Distribution::Kind::kConstant, 1},       {"fixed", Distribution::Kind::kConstant, 1},
    {"uniform", Distribution::Kind::kUniform, 2},         {"normal", Distribution::Kind::kNormal, 2},
    {"lognormal", Distribution::Kind::kLognormal, 2},     {"exp", Distribution::Kind::kExponential, 1},
    {"exponential", Distribution::Kind::kExponential, 1}, {"empirical", Distribution::Kind::kEmpirical, 0},
};

}  // namespace

Result<double> parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return fail(ErrorCode::kInvalidArgument, "{}: '{}' is not a number", what, text);
  return value;
}

Result<std::int64_t> parse_count(std::string_view text, std::string_view what, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    return fail(ErrorCode::kInvalidArgument, "{}: '{}' is not a whole number from {} to {}", what, text, min, max);
  return value;
}

Result<double> parse_seconds(std::string_view text, double bare_unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3},
                                                            {"s", 1},     {"m", 60},    {"min", 60},  {"h", 3600}};
  const std::size_t digits = std::min(text.find_first_not_of("+-.0123456789eE"), text.size());
  double unit = digits == text.size() ? bare_unit : 0;
  for (const auto& [name, seconds] : kUnits)
    if (text.substr(digits) == name) unit = seconds;
  if (unit == 0) return fail(ErrorCode::kInvalidArgument, "'{}' is not a time: write it as 500ms, 2s, 50us or 1h", text);
  WEIR_ASSIGN(const double value, parse_number(text.substr(0, digits), "time"));
  if (value < 0 || value * unit > kMaxSeconds) return fail(ErrorCode::kInvalidArgument, "the time '{}' is out of range", text);
  return value * unit;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Duration to_duration(double seconds) { return Duration(std::llround(std::clamp(seconds, -kMaxSeconds, kMaxSeconds) * 1e9)); }

Distribution Distribution::constant(double value) {
  Distribution d;
  d.a_ = value;
  return d;
}

Distribution Distribution::empirical(std::vector<double> values) {
  WEIR_CHECK(!values.empty());
  Distribution d;
  d.kind_ = Kind::kEmpirical;
  d.values_ = std::move(values);
  return d;
}

Result<Distribution> Distribution::parse(std::string_view text, Unit unit) {
  const std::size_t colon = text.find(':');
  const Name* name = &kNames[0];
  if (colon != std::string_view::npos) {
    const auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.text == text.substr(0, colon); });
    if (found == std::end(kNames))
      return fail(ErrorCode::kInvalidArgument, "'{}': there are constant, uniform, normal, lognormal, exp and empirical", text);
    name = found;
  }
  std::vector<double> values;
  for (const std::string_view part : split(colon == std::string_view::npos ? text : text.substr(colon + 1), ',')) {
    WEIR_ASSIGN(const double value, unit == Unit::kSeconds ? parse_seconds(part) : parse_number(part, text));
    if (value < 0) return fail(ErrorCode::kInvalidArgument, "'{}': values below zero make no sense here", text);
    values.push_back(value);
    if (values.size() > kMaxValues) return fail(ErrorCode::kInvalidArgument, "more than {} values", kMaxValues);
  }
  if (name->values != 0 && values.size() != name->values)
    return fail(ErrorCode::kInvalidArgument, "'{}': {} takes {} value{}", text, name->text, name->values, name->values > 1 ? "s" : "");
  if (name->kind == Kind::kEmpirical) return empirical(std::move(values));
  Distribution d;
  d.kind_ = name->kind;
  d.a_ = values[0];
  d.b_ = values.size() > 1 ? values[1] : 0;
  if (d.kind_ == Kind::kUniform && d.b_ < d.a_) return fail(ErrorCode::kInvalidArgument, "'{}': the first value is the smaller one", text);
  if (d.kind_ == Kind::kLognormal && d.a_ <= 0) return fail(ErrorCode::kInvalidArgument, "'{}': the mean must be above zero", text);
  return d;
}

double Distribution::draw(Random& random) const {
  switch (kind_) {
    case Kind::kConstant: return a_;
    case Kind::kUniform: return a_ + (b_ - a_) * random.uniform();
    case Kind::kNormal: return std::max(0.0, random.normal(a_, b_));
    case Kind::kLognormal: {
      const double variance = std::log1p((b_ / a_) * (b_ / a_));
      return std::exp(random.normal(std::log(a_) - variance / 2, std::sqrt(variance)));
    }
    case Kind::kExponential: return random.exponential(a_);
    case Kind::kEmpirical: return values_[random.below(values_.size())];
  }
  return a_;
}

double Distribution::mean() const {
  if (kind_ == Kind::kUniform) return (a_ + b_) / 2;
  if (kind_ == Kind::kEmpirical) return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
  return a_;
}

std::string Distribution::description() const {
  switch (kind_) {
    case Kind::kConstant: return fmt::format("{:g}", a_);
    case Kind::kUniform: return fmt::format("uniform {:g} to {:g}", a_, b_);
    case Kind::kNormal: return fmt::format("normal, mean {:g}, deviation {:g}", a_, b_);
    case Kind::kLognormal: return fmt::format("lognormal, mean {:g}, deviation {:g}", a_, b_);
    case Kind::kExponential: return fmt::format("exponential, mean {:g}", a_);
    case Kind::kEmpirical: return fmt::format("{} values, mean {:g}", values_.size(), mean());
  }
  return {};
}

}  // namespace weir::loadgen
