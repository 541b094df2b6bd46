// SPDX-License-Identifier: Apache-2.0
#include "energy/rapl.h"

#include <algorithm>

#include "energy/sysfs.h"

namespace weir::energy {
namespace {

constexpr std::size_t kMostZones = 256;

class Rapl final : public Meter {
 public:
  std::string source() const override { return "rapl"; }

  void add(Domain domain, std::filesystem::path file, double wrap_joules) {
    domains_.push_back(std::move(domain));
    zones_.push_back({std::move(file), wrap_joules, {}});
  }

  void sample(TimePoint at) override {
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      Zone& zone = zones_[i];
      if (const auto microjoules = read_number(zone.file))
        zone.account.counter(domains_[i], *microjoules * 1e-6, zone.wrap_joules, at);
      else
        zone.account.missing(domains_[i]);
    }
  }

 private:
  struct Zone {
    std::filesystem::path file;
    double wrap_joules;
    Account account;
  };
  std::vector<Zone> zones_;
};

// "intel-rapl:0" and "intel-rapl:0:1". The same package may be there again as intel-rapl-mmio:0, which would count it twice.
std::vector<std::string> zones_in(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) && names.size() < kMostZones) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Domain domain_of(const std::string& zone, const std::string& name, const std::filesystem::path& folder) {
  Domain domain{.name = name, .part = Part::kProcessor};
  const std::size_t parent = zone.rfind(':');
  if (std::count(zone.begin(), zone.end(), ':') > 1) {
    const std::string package = read_line(folder / zone.substr(0, parent) / "name").value_or(zone.substr(0, parent));
    domain.name = package + "/" + name;
    domain.counted = name == "dram";
  } else if (!name.starts_with("package")) {
    domain.counted = name.starts_with("dram");
  }
  if (name.starts_with("dram")) domain.part = Part::kMemory;
  if (name.starts_with("psys")) domain.part = Part::kOther;
  return domain;
}

}  // namespace

std::unique_ptr<Meter> open_rapl(const std::filesystem::path& powercap, std::vector<std::string>& notes) {
  std::vector<std::string> zones = zones_in(powercap, "intel-rapl:");
  if (zones.empty()) zones = zones_in(powercap, "intel-rapl-mmio:");
  auto meter = std::make_unique<Rapl>();
  bool refused = false;
  for (const std::string& zone : zones) {
    const std::filesystem::path file = powercap / zone / "energy_uj";
    const auto name = read_line(powercap / zone / "name");
    const auto now = read_number(file);
    if (!now || !name) {
      const Error& error = now ? name.error() : now.error();
      if (error.code == ErrorCode::kIo && !refused)
        notes.push_back(error.message +
                        ": only root may read it on most systems (CVE-2020-8694); run as root, or allow it with: chmod a+r " +
                        (powercap / "intel-rapl*" / "energy_uj").string());
      else if (error.code == ErrorCode::kCorrupt)
        notes.push_back(error.message);
      refused |= error.code == ErrorCode::kIo;
      continue;
    }
    meter->add(domain_of(zone, *name, powercap), file, read_number(powercap / zone / "max_energy_range_uj").value_or(0) * 1e-6);
  }
  if (meter->domains().empty()) return nullptr;
  return meter;
}

}  // namespace weir::energy
