// SPDX-License-Identifier: Apache-2.0
// Meters over made-up files of a kernel and a made-up NVML, and costs computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing.h"
#include "energy/cost.h"
#include "energy/sources.h"

namespace weir::energy {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TimePoint at(Duration d) { return TimePoint(d); }

class MachineFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void zone(const std::string& zone, const std::string& name, const std::string& uj, const std::string& range = "262143328850") {
    write("sys/class/powercap/" + zone + "/name", name + "\n");
    write("sys/class/powercap/" + zone + "/energy_uj", uj + "\n");
    write("sys/class/powercap/" + zone + "/max_energy_range_uj", range + "\n");
  }
  void count(const std::string& zone, const std::string& uj) { write("sys/class/powercap/" + zone + "/energy_uj", uj + "\n"); }
  SourceOptions options() { return {.sysfs = folder_.path() / "sys", .proc = folder_.path() / "proc", .nvml = "", .declared = {}}; }
  weir::testing::TemporaryFolder folder_;
};

TEST_F(MachineFiles, PackagesAndMemoryOfSeveralSocketsAddUpButCoresAndTheMirroredZoneDoNot) {
  zone("intel-rapl:0", "package-0", "1000000");
  zone("intel-rapl:0:0", "core", "500000");
  zone("intel-rapl:0:1", "dram", "100000");
  zone("intel-rapl:1", "package-1", "2000000");
  zone("intel-rapl:2", "psys", "9000000");
  zone("intel-rapl-mmio:0", "package-0", "1000000");
  Sources sources = open_sources(options());
  sources.sample(at(0s));
  count("intel-rapl:0", "11000000");   // 10 J
  count("intel-rapl:0:0", "7500000");  // within
  count("intel-rapl:0:1", "3100000");  // 3 J
  count("intel-rapl:1", "7000000");    // 5 J
  count("intel-rapl:2", "99000000");
  sources.sample(at(2s));
  EXPECT_NEAR(sources.joules(), 18, 1e-9);
  EXPECT_NEAR(sources.watts(), 9, 1e-9);
  EXPECT_EQ(sources.name(), "rapl");
  EXPECT_FALSE(sources.estimate());
  ASSERT_EQ(sources.meters.size(), 1u);
  EXPECT_EQ(sources.meters[0]->domains().size(), 5u);
}

TEST_F(MachineFiles, ACounterThatWrapsGoesOn) {
  zone("intel-rapl:0", "package-0", "99000000", "100000000");
  Sources sources = open_sources(options());
  sources.sample(at(0s));
  count("intel-rapl:0", "2500000");
  sources.sample(at(1s));
  EXPECT_NEAR(sources.joules(), 3.5, 1e-9);
  // Missing for a while: the next reading bridges it.
  std::filesystem::remove(folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj");
  sources.sample(at(2s));
  EXPECT_NEAR(sources.joules(), 3.5, 1e-9);
  count("intel-rapl:0", "4500000");
  sources.sample(at(3s));
  EXPECT_NEAR(sources.joules(), 5.5, 1e-9);
  EXPECT_NEAR(sources.watts(), 1, 1e-9);  // 2 J in the 2 s since the last reading
}

TEST_F(MachineFiles, WhatMayNotBeReadIsSaidWithWhatToDo) {
  zone("intel-rapl:0", "package-0", "1");
  const auto file = folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj";
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);  // reading fails, also for root
  const Sources sources = open_sources(options());
  EXPECT_FALSE(sources.counts());
  EXPECT_EQ(sources.name(), "none");
  ASSERT_EQ(sources.notes.size(), 1u);
  EXPECT_THAT(sources.notes[0], HasSubstr("intel-rapl:0/energy_uj"));
  EXPECT_THAT(sources.notes[0], HasSubstr("chmod a+r"));
}

TEST_F(MachineFiles, ABoardsPowerMeterHoldsEverythingAndIsIntegrated) {
  zone("intel-rapl:0", "package-0", "0");
  write("sys/class/hwmon/hwmon0/name", "power_meter\n");
  write("sys/class/hwmon/hwmon0/power1_average", "100000000\n");
  write("sys/class/hwmon/hwmon1/name", "nvme\n");
  write("sys/class/hwmon/hwmon1/power1_input", "5000000\n");
  Sources sources = open_sources(options());
  EXPECT_EQ(sources.name(), "hwmon");
  sources.sample(at(0s));
  count("intel-rapl:0", "50000000");
  write("sys/class/hwmon/hwmon0/power1_average", "140000000\n");
  sources.sample(at(2s));
  EXPECT_NEAR(sources.joules(), 240, 1e-9);  // (100 + 140) / 2 W for 2 s
  EXPECT_NEAR(sources.watts(), 140, 1e-9);
  EXPECT_NEAR(sources.meters[0]->domains()[0].joules, 50, 1e-9);  // shown
}

TEST_F(MachineFiles, ACardThatCountsEnergyAndShowsPowerCountsOnce) {
  write("sys/class/hwmon/hwmon0/name", "xe\n");
  write("sys/class/hwmon/hwmon0/power1_input", "30000000\n");
  write("sys/class/hwmon/hwmon0/energy1_input", "1000000\n");
  write("sys/class/hwmon/hwmon0/energy2_input", "1000000\n");
  Sources sources = open_sources(options());
  sources.sample(at(0s));
  write("sys/class/hwmon/hwmon0/energy1_input", "61000000\n");
  sources.sample(at(2s));
  EXPECT_NEAR(sources.joules(), 60, 1e-9);
  ASSERT_EQ(sources.notes.size(), 1u);  // the processors are not in it
  EXPECT_THAT(sources.notes[0], HasSubstr("processors"));
}

TEST_F(MachineFiles, DeclaredPowerFollowsHowBusyTheMachineIs) {
  write("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n");
  SourceOptions o = options();
  o.declared = *DeclaredPower::parse("50,150");
  Sources sources = open_sources(o);
  EXPECT_EQ(sources.name(), "model");
  EXPECT_TRUE(sources.estimate());
  sources.sample(at(0s));
  write("proc/stat", "cpu  150 0 125 825 0 0 0 0 0 0\n");  // 75 of 100 ticks busy: 125 W
  sources.sample(at(4s));
  EXPECT_NEAR(sources.joules(), 500, 1e-9);
  write("proc/stat", "cpu  150 0 125 925 0 0 0 0 0 0\n");  // idle: 50 W
  sources.sample(at(5s));
  EXPECT_NEAR(sources.joules(), 550, 1e-9);
  for (const char* bad : {"", "50", "50,", ",50", "150,50", "-1,5", "nan,5", "1,inf", "1,2,3"})
    EXPECT_FALSE(DeclaredPower::parse(bad)) << bad;
}

TEST_F(MachineFiles, AMeasuredSourceComesBeforeADeclaredOne) {
  zone("intel-rapl:0", "package-0", "0");
  SourceOptions o = options();
  o.declared = DeclaredPower{1, 2};
  const Sources sources = open_sources(o);
  EXPECT_EQ(sources.name(), "rapl");
  EXPECT_FALSE(sources.estimate());
}

struct FakeGpu {
  static inline unsigned long long millijoules = 0;
  static inline unsigned milliwatts = 0;
  static NvmlApi api(bool counts) {
    NvmlApi a;
    a.init = [] { return 0; };
    a.shutdown = [] { return 0; };
    a.count = [](unsigned* n) { return *n = 1, 0; };
    a.by_index = [](unsigned, NvmlApi::Device* d) { return *d = nullptr, 0; };
    a.uuid = [](NvmlApi::Device, char* text, unsigned size) { return std::snprintf(text, size, "GPU-1"), 0; };
    a.energy = counts ? +[](NvmlApi::Device, unsigned long long* mj) { return *mj = millijoules, 0; }
                      : +[](NvmlApi::Device, unsigned long long*) { return 3; };
    a.power = [](NvmlApi::Device, unsigned* mw) { return *mw = milliwatts, 0; };
    a.use = [](NvmlApi::Device, NvmlUse* u) { return u->gpu = 40, 0; };
    a.memory = [](NvmlApi::Device, NvmlMemory* m) { return *m = {100, 30, 70}, 0; };
    return a;
  }
};

TEST_F(MachineFiles, AGpuCountsItsEnergyOrElseItsPowerIsIntegrated) {
  for (const bool counts : {true, false}) {
    FakeGpu::millijoules = 5'000;
    FakeGpu::milliwatts = 200'000;
    const NvmlApi api = FakeGpu::api(counts);
    SourceOptions o = options();
    o.nvml_api = &api;
    Sources sources = open_sources(o);
    ASSERT_NE(sources.gpus, nullptr);
    sources.sample(at(0s));
    FakeGpu::millijoules = 905'000;
    FakeGpu::milliwatts = 400'000;
    sources.sample(at(2s));
    EXPECT_NEAR(sources.joules(), counts ? 900 : 600, 1e-9);
    const GpuState& gpu = sources.gpus->gpus()[0];
    EXPECT_EQ(gpu.uuid, "GPU-1");
    EXPECT_EQ(gpu.use, 0.4);
    EXPECT_EQ(gpu.watts, 400);
    EXPECT_EQ(gpu.memory_used, 70);
    EXPECT_EQ(gpu.memory_total, 100);
    EXPECT_EQ(sources.name(), "nvml");
  }
}

TEST(Nvml, IsNotThereWithoutItsLibrary) { EXPECT_EQ(load_nvml("libno-such-library.so.9").error().code, ErrorCode::kNotFound); }

TEST(CpuUse, ReadsProcStatAndProcessesWithStrangeNames) {
  const auto times = parse_cpu_times("cpu  100 20 30 400 50 6 7 8 9 10\ncpu0 1 2\n");
  ASSERT_TRUE(times);
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_NEAR(times->busy_s, 163 * tick, 1e-9);
  EXPECT_NEAR(times->total_s, 621 * tick, 1e-9);
  EXPECT_FALSE(parse_cpu_times("cpu  1 x"));
  EXPECT_FALSE(parse_cpu_times(""));
  const auto process =
      parse_process_stat("7 (a) b (c)) S 3 7 7 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 1 0 99 1000 25 18446744073709551615\n");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->parent, 3);
  EXPECT_NEAR(process->cpu_s, 300 * tick, 1e-9);
  EXPECT_EQ(process->resident_bytes, 25.0 * static_cast<double>(::sysconf(_SC_PAGE_SIZE)));
  EXPECT_FALSE(parse_process_stat("7 (x) S 3"));
}

TEST_F(MachineFiles, AListenerIsFoundByItsPortAndCountsWithItsChildren) {
  const std::string stat = " S {} 7 7 0 -1 0 1 2 3 4 100 0 0 0 20 0 1 0 99 1000 25 0\n";
  const auto process = [&](int pid, int parent) {
    std::string line = std::to_string(pid) + " (p)" + stat;
    write("proc/" + std::to_string(pid) + "/stat", line.replace(line.find("{}"), 2, std::to_string(parent)));
  };
  process(10, 1), process(11, 10), process(12, 11), process(20, 1);
  write("proc/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0\n"
        "   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0 100 0 0 10 0\n");
  std::filesystem::create_directories(folder_.path() / "proc/10/fd");
  std::filesystem::create_symlink("socket:[4242]", folder_.path() / "proc/10/fd/3");
  EXPECT_EQ(find_listener(8080, folder_.path() / "proc"), 10);
  EXPECT_FALSE(find_listener(8081, folder_.path() / "proc"));
  const auto tree = read_process_tree(10, folder_.path() / "proc");
  ASSERT_TRUE(tree);
  EXPECT_NEAR(tree->cpu_s, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)), 1e-9);
  EXPECT_FALSE(read_process_tree(99, folder_.path() / "proc"));
}

Draw draw() {
  return {.source = "rapl", .joules = 7200, .seconds = 60, .idle_watts = 40, .idle_source = "declared", .domains = {}, .notes = {}};
}
Service service() {
  return {.requests = 20,
          .good_requests = 12,
          .output_tokens = 4000,
          .prompt_tokens = 5000,
          .prompt_known = true,
          .mean_latency_s = 1.5,
          .prefill_s = 5,
          .decode_s = 15};
}

TEST(Cost, JoulesPerRequestTokenAndPhase) {
  const json::Object e = energy_json(draw(), service(), {});
  const auto at = [&](const char* key) { return e.at(key).to_number<double>(); };
  EXPECT_NEAR(at("mean_watts"), 120, 1e-9);
  EXPECT_NEAR(at("joules_per_request"), 360, 1e-9);
  EXPECT_NEAR(at("joules_per_1000_tokens"), 1800, 1e-9);
  EXPECT_NEAR(at("joules_per_1000_tokens_in_all"), 800, 1e-9);
  EXPECT_NEAR(at("tokens_per_joule"), 4000.0 / 7200, 1e-9);
  EXPECT_NEAR(at("energy_delay_product"), 540, 1e-9);
  EXPECT_NEAR(at("goodput_per_watt"), 0.2 / 120, 1e-12);
  EXPECT_NEAR(at("idle_share"), 1.0 / 3, 1e-9);
  EXPECT_NEAR(at("active_joules_per_request"), 240, 1e-9);
  const json::Object& phases = e.at("phases").as_object();
  EXPECT_NEAR(phases.at("prefill_joules").to_number<double>(), 1200, 1e-9);  // a quarter of 4,800 J above idle
  EXPECT_NEAR(phases.at("decode_joules_per_output_token").to_number<double>(), 0.9, 1e-9);
  EXPECT_NEAR(phases.at("prefill_joules_per_prompt_token").to_number<double>(), 0.24, 1e-9);
  EXPECT_TRUE(e.at("facility").as_object().at("litres_site").is_null());
}

TEST(Cost, FacilityWaterCarbonAndMoney) {
  const Facility facility{.pue = 1.5, .wue_site = 2, .wue_source = 3, .cif = 400, .price_per_kwh = 0.25, .price_per_hour = 6};
  const json::Object e = energy_json(draw(), service(), facility).at("facility").as_object();
  const auto at = [&](const char* key) { return e.at(key).to_number<double>(); };
  EXPECT_NEAR(at("kwh"), 0.003, 1e-12);            // 7,200 J = 2 Wh, × 1.5
  EXPECT_NEAR(at("litres_site"), 0.004, 1e-12);    // 2 Wh × 2 l/kWh
  EXPECT_NEAR(at("litres_source"), 0.009, 1e-12);  // 3 Wh × 3 l/kWh
  EXPECT_NEAR(at("grams_co2e"), 1.2, 1e-12);       // 3 Wh × 400 g/kWh
  EXPECT_NEAR(at("money"), 0.00075 + 0.1, 1e-12);  // energy, and a minute of an hour at 6
  EXPECT_NEAR(e.at("per_request").at("grams_co2e").to_number<double>(), 0.06, 1e-12);
  EXPECT_NEAR(e.at("per_1000_tokens").at("money").to_number<double>(), 0.10075 / 4, 1e-12);
  EXPECT_THAT(energy_text(draw(), service(), facility), HasSubstr("g CO2e"));
  Draw estimate = draw();
  estimate.estimate = true;
  EXPECT_THAT(energy_text(estimate, service(), {}), HasSubstr("ESTIMATE"));
}

TEST(Cost, NothingAnsweredIsNoDivisionByZero) {
  const json::Object e = energy_json({.source = "rapl", .domains = {}, .notes = {}}, {}, {});
  EXPECT_EQ(e.at("joules_per_request").to_number<double>(), 0);
  EXPECT_TRUE(e.at("phases").is_null());
}

TEST(Cost, WueAndRanges) {
  EXPECT_EQ(*parse_wue("1.8,3.1"), std::pair(1.8, 3.1));
  EXPECT_EQ(*parse_wue("1.8"), std::pair(1.8, -1.0));
  for (const char* bad : {"", "-1", "1,", "1,-2", "x", "1,2,3", "inf"}) EXPECT_FALSE(parse_wue(bad)) << bad;
  EXPECT_TRUE(check({.pue = 1.1}));
  EXPECT_FALSE(check({.pue = 0.9}));
  EXPECT_FALSE(check({.cif = -1}));
}

}  // namespace
}  // namespace weir::energy
