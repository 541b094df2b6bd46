// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library, looked for at run time: energy since the driver was loaded where the GPU counts it (Volta and later), else
// its power. The functions are in a table, so that tests bring their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "energy/meter.h"

namespace weir::energy {

struct NvmlUse {
  unsigned gpu = 0, memory = 0;  // per cent
};
struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};

// The library's C functions that are used; 0 is success.
struct NvmlApi {
  using Device = void*;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;  // mJ
  int (*power)(Device, unsigned*) = nullptr;             // mW
  int (*use)(Device, NvmlUse*) = nullptr;
  int (*memory)(Device, NvmlMemory*) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

// Not there: kNotFound.
Result<NvmlApi> load_nvml(const std::string& library = "libnvidia-ml.so.1");

struct GpuState {
  std::string uuid, name;
  double use = 0;    // 0 to 1
  double watts = 0;  // now
  double memory_used = 0, memory_total = 0;
};

class NvmlMeter final : public Meter {
 public:
  static Result<std::unique_ptr<NvmlMeter>> open(const NvmlApi& api);
  ~NvmlMeter() override;
  std::string source() const override { return "nvml"; }
  void sample(TimePoint at) override;
  const std::vector<GpuState>& gpus() const { return gpus_; }  // as of the latest sample

 private:
  explicit NvmlMeter(const NvmlApi& api) : api_(api) {}
  void add(unsigned index);

  struct Gpu {
    NvmlApi::Device device = nullptr;
    bool counts = false;  // its energy
    Account account;
  };
  NvmlApi api_;
  std::vector<Gpu> devices_;
  std::vector<GpuState> gpus_;
};

}  // namespace weir::energy
