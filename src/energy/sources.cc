// SPDX-License-Identifier: Apache-2.0
#include "energy/sources.h"

#include <algorithm>

#include "energy/hwmon.h"
#include "energy/rapl.h"

namespace weir::energy {
namespace {

bool has_counted(const Meter& meter, Part part) {
  return std::any_of(meter.domains().begin(), meter.domains().end(), [&](const Domain& d) { return d.counted && d.part == part; });
}

template <class Predicate>
void leave_out(Meter& meter, Predicate predicate) {
  for (Domain& domain : meter.domains())
    if (predicate(domain)) domain.counted = false;
}

// A meter of the whole machine holds everything else; sockets that two sources tell of count by the first.
// NVIDIA's cards have no hwmon sensors, so cards never count twice.
void count_once(Sources& sources) {
  bool machine = false, sockets = false;
  for (const auto& meter : sources.meters) machine |= has_counted(*meter, Part::kMachine);
  for (const auto& meter : sources.meters) {
    if (machine) leave_out(*meter, [](const Domain& d) { return d.part != Part::kMachine; });
    if (sockets) leave_out(*meter, [](const Domain& d) { return d.part == Part::kProcessor; });
    sockets |= has_counted(*meter, Part::kProcessor);
  }
  if (machine) return;
  if (!sockets && sources.counts()) sources.notes.emplace_back("the processors' energy is not known here and not in the sum");
}

}  // namespace

bool Sources::counts() const {
  return std::any_of(meters.begin(), meters.end(), [](const auto& meter) {
    return std::any_of(meter->domains().begin(), meter->domains().end(), [](const Domain& d) { return d.counted; });
  });
}

bool Sources::estimate() const {
  return std::any_of(meters.begin(), meters.end(), [](const auto& meter) { return meter->estimate(); });
}

std::string Sources::name() const {
  std::string name;
  for (const auto& meter : meters) {
    const bool counted = std::any_of(meter->domains().begin(), meter->domains().end(), [](const Domain& d) { return d.counted; });
    if (counted) name += (name.empty() ? "" : "+") + meter->source();
  }
  return name.empty() ? "none" : name;
}

void Sources::sample(TimePoint at) {
  for (const auto& meter : meters) meter->sample(at);
}

double Sources::joules() const {
  double sum = 0;
  for (const auto& meter : meters) sum += meter->joules();
  return sum;
}

double Sources::watts() const {
  double sum = 0;
  for (const auto& meter : meters) sum += meter->watts();
  return sum;
}

Sources open_sources(const SourceOptions& options) {
  Sources sources;
  if (auto rapl = open_rapl(options.sysfs / "class" / "powercap", sources.notes)) sources.meters.push_back(std::move(rapl));
  if (auto hwmon = open_hwmon(options.sysfs / "class" / "hwmon", sources.notes)) sources.meters.push_back(std::move(hwmon));
  if (options.nvml_api != nullptr || !options.nvml.empty()) {
    const auto api = options.nvml_api ? Result<NvmlApi>(*options.nvml_api) : load_nvml(options.nvml);
    auto meter = api ? NvmlMeter::open(*api) : Result<std::unique_ptr<NvmlMeter>>(std::unexpected(api.error()));
    if (meter) {
      sources.gpus = meter->get();
      sources.meters.push_back(std::move(*meter));
    } else if (meter.error().code != ErrorCode::kNotFound) {
      sources.notes.push_back(meter.error().message);
    }
  }
  count_once(sources);
  if (sources.counts() || !options.declared) return sources;
  if (auto declared = DeclaredMeter::open(*options.declared, options.proc))
    sources.meters.push_back(std::move(*declared));
  else
    sources.notes.push_back(declared.error().message);
  return sources;
}

}  // namespace weir::energy
