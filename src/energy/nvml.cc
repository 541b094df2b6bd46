// SPDX-License-Identifier: Apache-2.0
#include "energy/nvml.h"

#include <dlfcn.h>

#include <algorithm>

namespace weir::energy {
namespace {

constexpr unsigned kMostGpus = 64;

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

std::string text_of(int (*function)(NvmlApi::Device, char*, unsigned), NvmlApi::Device device) {
  char text[97] = {};
  if (function == nullptr || function(device, text, sizeof text - 1) != 0) return "";
  return text;
}

}  // namespace

// The library stays loaded to the end of the process: it has threads of its own.
Result<NvmlApi> load_nvml(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(ErrorCode::kNotFound, "{} is not here", library);
  NvmlApi api;
  const bool complete = find(handle, "nvmlInit_v2", api.init) && find(handle, "nvmlShutdown", api.shutdown) &&
                        find(handle, "nvmlDeviceGetCount_v2", api.count) && find(handle, "nvmlDeviceGetHandleByIndex_v2", api.by_index);
  if (!complete) return fail(ErrorCode::kUnsupported, "{} is too old", library);
  find(handle, "nvmlDeviceGetUUID", api.uuid);
  find(handle, "nvmlDeviceGetName", api.name);
  find(handle, "nvmlDeviceGetTotalEnergyConsumption", api.energy);
  find(handle, "nvmlDeviceGetPowerUsage", api.power);
  find(handle, "nvmlDeviceGetUtilizationRates", api.use);
  find(handle, "nvmlDeviceGetMemoryInfo", api.memory);
  find(handle, "nvmlErrorString", api.error_text);
  return api;
}

Result<std::unique_ptr<NvmlMeter>> NvmlMeter::open(const NvmlApi& api) {
  const auto told = [&](int error) { return api.error_text ? std::string(api.error_text(error)) : fmt::format("error {}", error); };
  if (const int error = api.init(); error != 0) return fail(ErrorCode::kIo, "NVML does not start: {}", told(error));
  std::unique_ptr<NvmlMeter> meter(new NvmlMeter(api));
  unsigned count = 0;
  if (const int error = api.count(&count); error != 0) return fail(ErrorCode::kIo, "NVML names no GPUs: {}", told(error));
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) meter->add(i);
  if (meter->devices_.empty()) return fail(ErrorCode::kNotFound, "NVML knows no GPU");
  return meter;
}

NvmlMeter::~NvmlMeter() { api_.shutdown(); }

void NvmlMeter::add(unsigned index) {
  Gpu gpu;
  if (api_.by_index(index, &gpu.device) != 0) return;
  unsigned long long millijoules = 0;
  unsigned milliwatts = 0;
  gpu.counts = api_.energy != nullptr && api_.energy(gpu.device, &millijoules) == 0;
  const bool shows_power = api_.power != nullptr && api_.power(gpu.device, &milliwatts) == 0;
  domains_.push_back({.name = fmt::format("GPU {}", index), .part = Part::kGpu, .counted = gpu.counts || shows_power});
  gpus_.push_back({.uuid = text_of(api_.uuid, gpu.device), .name = text_of(api_.name, gpu.device)});
  devices_.push_back(std::move(gpu));
}

void NvmlMeter::sample(TimePoint at) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Gpu& gpu = devices_[i];
    GpuState& state = gpus_[i];
    unsigned milliwatts = 0;
    const bool has_power = api_.power != nullptr && api_.power(gpu.device, &milliwatts) == 0;
    if (has_power) state.watts = milliwatts * 1e-3;
    unsigned long long millijoules = 0;
    if (gpu.counts && api_.energy(gpu.device, &millijoules) == 0)
      gpu.account.counter(domains_[i], static_cast<double>(millijoules) * 1e-3, 0, at);
    else if (!gpu.counts && has_power)
      gpu.account.power(domains_[i], state.watts, at);
    else
      gpu.account.missing(domains_[i]);
    if (NvmlUse use; api_.use != nullptr && api_.use(gpu.device, &use) == 0) state.use = use.gpu * 1e-2;
    if (NvmlMemory memory; api_.memory != nullptr && api_.memory(gpu.device, &memory) == 0) {
      state.memory_used = static_cast<double>(memory.used);
      state.memory_total = static_cast<double>(memory.total);
    }
  }
}

}  // namespace weir::energy
