// SPDX-License-Identifier: Apache-2.0
#include "loadgen/arrivals.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr double kMaxRate = 1e7;
constexpr std::size_t kMaxRequests = 50'000'000;

struct Name {
  std::string_view text;
  ArrivalProcess::Kind kind;
  std::size_t min_values, max_values;
};

constexpr Name kNames[] = {
    {"constant", ArrivalProcess::Kind::kConstant, 1, 1}, {"poisson", ArrivalProcess::Kind::kPoisson, 1, 1},
    {"gamma", ArrivalProcess::Kind::kGamma, 2, 2},       {"bursts", ArrivalProcess::Kind::kBursts, 2, 2},
    {"ramp", ArrivalProcess::Kind::kRamp, 2, 2},         {"expramp", ArrivalProcess::Kind::kExponentialRamp, 2, 2},
    {"stairs", ArrivalProcess::Kind::kStairs, 1, 1000},  {"diurnal", ArrivalProcess::Kind::kDiurnal, 3, 3},
};

const Name& name_of(ArrivalProcess::Kind kind) {
  return *std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.kind == kind; });
}

Result<double> parse_rate(std::string_view text) {
  WEIR_ASSIGN(const double rate, parse_number(text, "rate"));
  if (rate <= 0 || rate > kMaxRate)
    return fail(ErrorCode::kInvalidArgument, "a rate is above 0 and at most {:g} a second, not '{}'", kMaxRate, text);
  return rate;
}

// The expected number of arrivals until `at`, of a process whose rate changes over `length`.
double expected_until(const ArrivalProcess& p, double at, double length) {
  const double first = p.rates.front(), last = p.rates.back();
  switch (p.kind) {
    case ArrivalProcess::Kind::kRamp: return first * at + (last - first) * at * at / (2 * length);
    case ArrivalProcess::Kind::kExponentialRamp: {
      const double growth = std::log(last / first) / length;
      return std::abs(growth) < 1e-12 ? first * at : first * std::expm1(growth * at) / growth;
    }
    case ArrivalProcess::Kind::kStairs: {
      const double step = length / static_cast<double>(p.rates.size());
      double sum = 0;
      for (std::size_t i = 0; i < p.rates.size(); ++i) sum += p.rates[i] * std::clamp(at - step * static_cast<double>(i), 0.0, step);
      return sum;
    }
    case ArrivalProcess::Kind::kDiurnal: {
      const double turn = 2 * std::numbers::pi / p.period_s;
      return first * (at - p.swing / turn * std::sin(turn * at));
    }
    default: return first * at;
  }
}

// Where the expected number reaches `count`: bisection, as the function only rises. Beyond `length` gives a value above it.
double time_of(const ArrivalProcess& p, double count, double length) {
  double low = 0, high = length;
  if (expected_until(p, high, length) < count) return length * 2;
  for (int i = 0; i < 100 && high - low > 1e-10; ++i) {
    const double middle = (low + high) / 2;
    (expected_until(p, middle, length) < count ? low : high) = middle;
  }
  return high;
}

// The length in which a changing process brings that many requests on average.
double length_for(const ArrivalProcess& p, double requests) {
  if (p.kind != ArrivalProcess::Kind::kDiurnal) return requests / p.mean_rate();
  double length = requests / p.rates.front();
  while (expected_until(p, length, length) < requests) length += p.period_s / 64;
  return length;
}

// Gap by gap, in seconds.
class Gaps {
 public:
  Gaps(const ArrivalProcess& process, std::uint64_t seed, double length) : p_(process), random_(seed, kArrivalStream), length_(length) {}

  double next() {  // the moment of the next arrival
    switch (p_.kind) {
      case ArrivalProcess::Kind::kConstant: return static_cast<double>(count_++) / p_.rates[0];
      case ArrivalProcess::Kind::kBursts: return static_cast<double>(count_++ / p_.burst) * static_cast<double>(p_.burst) / p_.rates[0];
      case ArrivalProcess::Kind::kGamma: return at_ += random_.gamma(p_.burstiness, 1 / (p_.rates[0] * p_.burstiness));
      case ArrivalProcess::Kind::kPoisson: return at_ += random_.exponential(1 / p_.rates[0]);
      default:  // a Poisson process of rate 1 in the time in which one arrival is expected
        return time_of(p_, at_ += random_.exponential(1), length_);
    }
  }

 private:
  const ArrivalProcess& p_;
  Random random_;
  double length_, at_ = 0;
  std::int64_t count_ = 0;
};

bool changes(ArrivalProcess::Kind kind) { return kind >= ArrivalProcess::Kind::kRamp; }

}  // namespace

Result<ArrivalProcess> ArrivalProcess::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  ArrivalProcess process;
  if (colon == std::string_view::npos) {
    WEIR_ASSIGN(process.rates[0], parse_rate(text));
    return process;
  }
  const auto name = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.text == text.substr(0, colon); });
  if (name == std::end(kNames))
    return fail(ErrorCode::kInvalidArgument, "'{}': there are constant, poisson, gamma, bursts, ramp, expramp, stairs and diurnal", text);
  const auto values = split(text.substr(colon + 1), ',');
  if (name->kind != Kind::kStairs && (values.size() < name->min_values || values.size() > name->max_values))
    return fail(ErrorCode::kInvalidArgument, "'{}': {} takes {} value{}", text, name->text, name->min_values,
                name->min_values > 1 ? "s" : "");
  if (values.size() > 1000) return fail(ErrorCode::kInvalidArgument, "at most 1000 stairs");
  process.kind = name->kind;
  process.rates.clear();
  const std::size_t rates = process.kind == Kind::kStairs ? values.size() : changes(process.kind) && process.kind != Kind::kDiurnal ? 2 : 1;
  for (std::size_t i = 0; i < rates; ++i) {
    WEIR_ASSIGN(const double rate, parse_rate(values[i]));
    process.rates.push_back(rate);
  }
  if (process.kind == Kind::kGamma) {
    WEIR_ASSIGN(process.burstiness, parse_number(values[1], "burstiness"));
    if (process.burstiness < 0.01 || process.burstiness > 1e6) return fail(ErrorCode::kInvalidArgument, "burstiness is 0.01 to 1000000");
  } else if (process.kind == Kind::kBursts) {
    WEIR_ASSIGN(process.burst, parse_count(values[1], "burst", 1, 1'000'000));
  } else if (process.kind == Kind::kDiurnal) {
    WEIR_ASSIGN(process.swing, parse_number(values[1], "swing"));
    WEIR_ASSIGN(process.period_s, parse_seconds(values[2]));
    if (process.swing < 0 || process.swing > 1 || process.period_s < 1e-3)
      return fail(ErrorCode::kInvalidArgument, "'{}': the swing is 0 to 1, the period at least 1 ms", text);
  }
  return process;
}

double ArrivalProcess::mean_rate() const {
  if (kind == Kind::kExponentialRamp && rates[0] != rates[1]) return (rates[1] - rates[0]) / std::log(rates[1] / rates[0]);
  return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
}

ArrivalProcess ArrivalProcess::at_rate(double rate) const {
  ArrivalProcess other = *this;
  for (double& r : other.rates) r *= rate / mean_rate();
  return other;
}

double ArrivalProcess::rate_at(double at, double length) const {
  switch (kind) {
    case Kind::kRamp: return rates[0] + (rates[1] - rates[0]) * at / length;
    case Kind::kExponentialRamp: return rates[0] * std::pow(rates[1] / rates[0], at / length);
    case Kind::kStairs: return rates[std::min(rates.size() - 1, static_cast<std::size_t>(at / length * static_cast<double>(rates.size())))];
    case Kind::kDiurnal: return rates[0] * (1 - swing * std::cos(2 * std::numbers::pi * at / period_s));
    default: return rates[0];
  }
}

std::string ArrivalProcess::description() const {
  std::string values;
  for (const double rate : rates) values += fmt::format("{}{:g}", values.empty() ? "" : ",", rate);
  if (kind == Kind::kGamma) values += fmt::format(",{:g}", burstiness);
  if (kind == Kind::kBursts) values += fmt::format(",{}", burst);
  if (kind == Kind::kDiurnal) values += fmt::format(",{:g},{:g}s", swing, period_s);
  return fmt::format("{}:{}", name_of(kind).text, values);
}

Result<std::vector<Duration>> schedule(const ArrivalProcess& process, const RunSize& size, std::uint64_t seed) {
  if (!size.requests && !size.length) return fail(ErrorCode::kInvalidArgument, "how many requests, or for how long?");
  if (size.requests && (*size.requests < 1 || static_cast<std::size_t>(*size.requests) > kMaxRequests))
    return fail(ErrorCode::kInvalidArgument, "the number of requests is 1 to {}", kMaxRequests);
  const double length = size.length ? to_seconds(*size.length) : length_for(process, static_cast<double>(*size.requests));
  if (!(length > 0)) return fail(ErrorCode::kInvalidArgument, "the run's length must be above zero");
  if (!size.requests && length * process.mean_rate() > static_cast<double>(kMaxRequests))
    return fail(ErrorCode::kExhausted, "that would be more than {} requests", kMaxRequests);
  std::vector<Duration> moments;
  Gaps gaps(process, seed, length);
  const std::size_t most = size.requests ? static_cast<std::size_t>(*size.requests) : kMaxRequests;
  while (moments.size() < most) {
    const double at = gaps.next();
    if ((size.length && at >= length) || (changes(process.kind) && at > length)) break;
    moments.push_back(to_duration(at));
  }
  return moments;
}

}  // namespace weir::loadgen
