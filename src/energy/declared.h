// SPDX-License-Identifier: Apache-2.0
// Power as its user declares it: idle watts, and up to peak watts in proportion to how busy the processors are. An estimate, and told as
// one: real machines are not linear, and memory is not a processor.
#pragma once

#include <filesystem>
#include <string_view>

#include "energy/cpu_use.h"
#include "energy/meter.h"

namespace weir::energy {

struct DeclaredPower {
  double idle_w = 0, peak_w = 0;
  static Result<DeclaredPower> parse(std::string_view text);  // "60,180"
  double at(double utilisation) const { return idle_w + (peak_w - idle_w) * utilisation; }
};

class DeclaredMeter final : public Meter {
 public:
  // kNotFound when the system does not tell how busy it is.
  static Result<std::unique_ptr<DeclaredMeter>> open(DeclaredPower power, std::filesystem::path proc = "/proc");
  std::string source() const override { return "model"; }
  bool estimate() const override { return true; }
  void sample(TimePoint at) override;

 private:
  DeclaredMeter(DeclaredPower power, std::filesystem::path proc) : power_(power), proc_(std::move(proc)) {}
  DeclaredPower power_;
  std::filesystem::path proc_;
  std::optional<CpuTimes> last_;
  TimePoint at_{};
};

}  // namespace weir::energy
