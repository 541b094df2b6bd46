// SPDX-License-Identifier: Apache-2.0
// All meters that this machine has, none of them counted twice, or the declared one when it has none.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "energy/declared.h"
#include "energy/meter.h"
#include "energy/nvml.h"

namespace weir::energy {

struct SourceOptions {
  std::filesystem::path sysfs = "/sys", proc = "/proc";
  std::string nvml = "libnvidia-ml.so.1";  // empty: not looked for
  const NvmlApi* nvml_api = nullptr;       // instead of the library
  std::optional<DeclaredPower> declared;   // used when nothing that is measured counts
};

struct Sources {
  std::vector<std::unique_ptr<Meter>> meters;
  NvmlMeter* gpus = nullptr;       // one of them, or null
  std::vector<std::string> notes;  // what could not be used, and what to do; what is not in the sum

  bool counts() const;       // is there anything to add up
  bool estimate() const;     // is anything of it not measured
  std::string name() const;  // "rapl", "rapl+nvml", "model"; "none"
  void sample(TimePoint at);
  double joules() const;
  double watts() const;
};

Sources open_sources(const SourceOptions& options);

}  // namespace weir::energy
