// SPDX-License-Identifier: Apache-2.0
#include "energy/hwmon.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "energy/sysfs.h"

namespace weir::energy {
namespace {

constexpr std::size_t kMostSensors = 512;

class Hwmon final : public Meter {
 public:
  std::string source() const override { return "hwmon"; }

  void add(Domain domain, std::filesystem::path file, bool is_power) {
    domains_.push_back(std::move(domain));
    sensors_.push_back({std::move(file), is_power, {}});
  }

  void sample(TimePoint at) override {
    for (std::size_t i = 0; i < sensors_.size(); ++i) {
      Sensor& sensor = sensors_[i];
      const auto value = read_number(sensor.file);
      if (!value)
        sensor.account.missing(domains_[i]);
      else if (sensor.is_power)
        sensor.account.power(domains_[i], *value * 1e-6, at);
      else
        sensor.account.counter(domains_[i], *value * 1e-6, 0, at);
    }
  }

 private:
  struct Sensor {
    std::filesystem::path file;
    bool is_power;
    Account account;
  };
  std::vector<Sensor> sensors_;
};

// What a device's sensors measure. `label` empty: any.
struct Known {
  std::string_view device, label;
  Part part;
};
constexpr Known kKnown[] = {
    {"power_meter", "", Part::kMachine},
    {"ibmpowernv", "System", Part::kMachine},
    {"ipmi", "", Part::kMachine},
    {"ina3221", "VDD_IN", Part::kMachine},
    {"amd_energy", "Esocket", Part::kProcessor},
    {"amdgpu", "", Part::kGpu},
    {"i915", "", Part::kGpu},
    {"xe", "", Part::kGpu},
};

Domain domain_of(const std::string& device, const std::string& label, const std::string& sensor) {
  Domain domain{.name = device + "/" + (label.empty() ? sensor : label), .counted = false};
  for (const Known& known : kKnown) {
    if (device != known.device || !label.starts_with(known.label)) continue;
    domain.part = known.part;
    domain.counted = true;
  }
  return domain;
}

std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entries.size() < 4096) entries.push_back(entry->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// "power1_input" → "power1"; of a sensor with both an input and an average the input counts.
std::optional<std::string> sensor_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with("power") && !name.starts_with("energy")) return std::nullopt;
  if (name.ends_with("_input")) return name.substr(0, name.size() - 6);
  if (!name.ends_with("_average")) return std::nullopt;
  const std::string sensor = name.substr(0, name.size() - 8);
  std::error_code error;
  if (std::filesystem::exists(file.parent_path() / (sensor + "_input"), error)) return std::nullopt;
  return sensor;
}

// Of a device's sensors for one graphics card or one machine a single one counts: the first that counts energy, else the first that shows
// power.
void keep_one(std::vector<Domain>& domains, const std::vector<std::string>& devices, const std::vector<bool>& is_power) {
  std::vector<std::string> seen;
  for (const bool power : {false, true}) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
      if (!domains[i].counted || is_power[i] != power || domains[i].part == Part::kProcessor) continue;
      const std::string owner = domains[i].part == Part::kMachine ? "machine" : devices[i];
      if (std::find(seen.begin(), seen.end(), owner) != seen.end())
        domains[i].counted = false;
      else
        seen.push_back(owner);
    }
  }
}

}  // namespace

std::unique_ptr<Meter> open_hwmon(const std::filesystem::path& hwmon, std::vector<std::string>& notes) {
  auto meter = std::make_unique<Hwmon>();
  std::vector<std::string> devices;
  std::vector<bool> is_power;
  for (const std::filesystem::path& folder : sorted_entries(hwmon)) {
    const std::string device = read_line(folder / "name").value_or("");
    // Some drivers keep their sensors one folder below.
    for (const std::filesystem::path& where : {folder, folder / "device"}) {
      const std::size_t before = meter->domains().size();
      for (const std::filesystem::path& file : sorted_entries(where)) {
        const auto sensor = sensor_of(file);
        if (!sensor || meter->domains().size() >= kMostSensors) continue;
        if (const auto now = read_number(file); !now) {
          if (now.error().code == ErrorCode::kIo) notes.push_back(now.error().message + ": try as root");
          continue;
        }
        const std::string label = read_line(where / (*sensor + "_label")).value_or("");
        is_power.push_back(sensor->starts_with("power"));
        devices.push_back(folder.string());
        meter->add(domain_of(device, label, *sensor), file, is_power.back());
      }
      if (meter->domains().size() > before) break;
    }
  }
  keep_one(meter->domains(), devices, is_power);
  if (meter->domains().empty()) return nullptr;
  return meter;
}

}  // namespace weir::energy
