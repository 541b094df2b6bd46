// SPDX-License-Identifier: Apache-2.0
// What this machine does while a load runs, as readings like a server's own: its processors, the generator's share of them, the server's
// processes where they run here, memory, and GPUs where NVIDIA's library is there.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "energy/cpu_use.h"
#include "energy/nvml.h"
#include "loadgen/exposition.h"

namespace weir::loadgen {

class MachineSampler {
 public:
  struct Options {
    std::optional<int> server_pid;  // with whatever descends from it
    std::filesystem::path proc = "/proc";
    bool gpus = true;
    const energy::NvmlApi* nvml = nullptr;  // instead of the library
  };
  explicit MachineSampler(Options options);

  // Readings of now. Shares of time are those since the call before, and left out when that was less than kLeast ago.
  std::vector<MetricReading> sample(TimePoint now);
  void begin_anew();

  static constexpr Duration kLeast = std::chrono::milliseconds(100);

 private:
  void add_processors(double seconds, std::vector<MetricReading>& out);
  void add_server(double seconds, std::vector<MetricReading>& out);
  void add_gpus(TimePoint now, std::vector<MetricReading>& out);

  Options options_;
  std::unique_ptr<energy::NvmlMeter> gpus_;
  std::optional<TimePoint> before_;
  std::optional<energy::CpuTimes> cpu_;
  double own_cpu_s_ = 0;
  std::optional<energy::ProcessUse> server_;
};

}  // namespace weir::loadgen
