// SPDX-License-Identifier: Apache-2.0
#include "energy/declared.h"

#include <charconv>

namespace weir::energy {
namespace {

std::optional<double> watts(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 1e7)) return std::nullopt;
  return value;
}

}  // namespace

Result<DeclaredPower> DeclaredPower::parse(std::string_view text) {
  const std::size_t comma = text.find(',');
  const auto idle = watts(text.substr(0, comma));
  const auto peak = comma == std::string_view::npos ? std::nullopt : watts(text.substr(comma + 1));
  if (!idle || !peak || *peak < *idle)
    return fail(ErrorCode::kInvalidArgument, "'{}': power is declared as IDLE,PEAK in watts, say 60,180, the peak not below idle", text);
  return DeclaredPower{*idle, *peak};
}

Result<std::unique_ptr<DeclaredMeter>> DeclaredMeter::open(DeclaredPower power, std::filesystem::path proc) {
  if (!read_cpu_times(proc)) return fail(ErrorCode::kNotFound, "{} does not tell how busy the processors are", (proc / "stat").string());
  std::unique_ptr<DeclaredMeter> meter(new DeclaredMeter(power, std::move(proc)));
  meter->domains_.push_back({.name = "machine", .part = Part::kMachine, .watts = power.idle_w});
  return meter;
}

void DeclaredMeter::sample(TimePoint at) {
  const auto now = read_cpu_times(proc_);
  Domain& domain = domains_.front();
  if (!now) {
    ++domain.interrupted;
    return;
  }
  if (last_ && at > at_) {
    domain.watts = power_.at(busy_share(*last_, *now));
    domain.joules += domain.watts * to_seconds(at - at_);
  }
  last_ = now;
  at_ = at;
}

}  // namespace weir::energy
