// SPDX-License-Identifier: Apache-2.0
// This machine's readings, from a /proc and a table of GPUs made by hand.
#include "loadgen/machine_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/file_io.h"
#include "base/testing.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

const TimePoint kZero{1000s};

std::optional<double> value_of(const std::vector<MetricReading>& readings, std::string_view name) {
  const auto found = std::find_if(readings.begin(), readings.end(), [&](const MetricReading& r) { return r.name == name; });
  return found == readings.end() ? std::nullopt : std::optional(found->value);
}

class Proc {
 public:
  Proc() {
    std::filesystem::create_directories(folder_.path() / "7");
    put("meminfo", "MemTotal: 10 kB\nMemAvailable:   4 kB\n");
  }
  void put(const std::string& name, const std::string& text) { EXPECT_TRUE(write_file_atomically(folder_.path() / name, text)); }
  // Seconds of all processors, and of process 7.
  void at(long busy, long idle, long process) {
    const long ticks = ::sysconf(_SC_CLK_TCK);
    put("stat", fmt::format("cpu  {} 0 0 {} 0 0 0 0 0 0\n", busy * ticks, idle * ticks));
    put("7/stat", fmt::format("7 (a b) S 1 7 7 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 5 1000 3 0\n", process * ticks));
  }
  std::filesystem::path path() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

TEST(MachineSampler, SharesAreOfTheTimeBetweenReadings) {
  Proc proc;
  MachineSampler sampler({.server_pid = 7, .proc = proc.path(), .gpus = false, .nvml = nullptr});
  proc.at(100, 100, 10);
  const auto first = sampler.sample(kZero);
  EXPECT_FALSE(value_of(first, "machine_cpu_use_ratio"));
  EXPECT_FALSE(value_of(first, "server_cpu_processors"));
  EXPECT_DOUBLE_EQ(*value_of(first, "machine_memory_available_bytes"), 4096);
  EXPECT_DOUBLE_EQ(*value_of(first, "server_resident_bytes"), 3.0 * static_cast<double>(::sysconf(_SC_PAGE_SIZE)));
  proc.at(103, 101, 13);
  EXPECT_TRUE(sampler.sample(kZero + MachineSampler::kLeast / 2).empty());
  const auto second = sampler.sample(kZero + 2s);
  EXPECT_DOUBLE_EQ(*value_of(second, "machine_cpu_use_ratio"), 0.75);
  EXPECT_DOUBLE_EQ(*value_of(second, "server_cpu_processors"), 1.5);
  EXPECT_GE(*value_of(second, "generator_cpu_processors"), 0);
  sampler.begin_anew();
  EXPECT_FALSE(value_of(sampler.sample(kZero + 3s), "machine_cpu_use_ratio"));
}

TEST(MachineSampler, AServerThatIsGoneAndAMachineWithoutProcLeaveItOut) {
  Proc proc;
  MachineSampler sampler({.server_pid = 8, .proc = proc.path(), .gpus = false, .nvml = nullptr});
  EXPECT_FALSE(value_of(sampler.sample(kZero), "server_resident_bytes"));
  MachineSampler nowhere({.server_pid = 7, .proc = proc.path() / "none", .gpus = false, .nvml = nullptr});
  nowhere.sample(kZero);
  EXPECT_FALSE(value_of(nowhere.sample(kZero + 1s), "machine_cpu_use_ratio"));
}

TEST(MachineSampler, GpusWhereTheLibraryIs) {
  energy::NvmlApi api;
  api.init = [] { return 0; };
  api.shutdown = [] { return 0; };
  api.count = [](unsigned* n) { return *n = 1, 0; };
  api.by_index = [](unsigned, energy::NvmlApi::Device* device) { return *device = nullptr, 0; };
  api.uuid = [](energy::NvmlApi::Device, char* text, unsigned) { return std::strcpy(text, "GPU-1"), 0; };
  api.power = [](energy::NvmlApi::Device, unsigned* milliwatts) { return *milliwatts = 41500, 0; };
  api.use = [](energy::NvmlApi::Device, energy::NvmlUse* use) { return use->gpu = 30, 0; };
  api.memory = [](energy::NvmlApi::Device, energy::NvmlMemory* memory) { return memory->used = 5, memory->total = 8, 0; };
  MachineSampler sampler({.server_pid = {}, .proc = "/proc", .gpus = true, .nvml = &api});
  const auto readings = sampler.sample(kZero);
  EXPECT_DOUBLE_EQ(*value_of(readings, "gpu_power_watts"), 41.5);
  EXPECT_DOUBLE_EQ(*value_of(readings, "gpu_use_ratio"), 0.3);
  EXPECT_DOUBLE_EQ(*value_of(readings, "gpu_memory_used_bytes"), 5);
  const auto gpu = std::find_if(readings.begin(), readings.end(), [](const auto& r) { return r.name == "gpu_power_watts"; });
  EXPECT_EQ(gpu->labels.at(0), (std::pair<std::string, std::string>{"gpu_uuid", "GPU-1"}));
}

}  // namespace
}  // namespace weir::loadgen
