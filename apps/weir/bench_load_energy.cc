// SPDX-License-Identifier: Apache-2.0
#include "bench_load_energy.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "energy/sources.h"
#include "verbs.h"

namespace weir::cli {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);  // counters move ten times as often, powers are averaged by their sources
constexpr auto kGlance = std::chrono::milliseconds(20);
constexpr char kGroup[] = "Energy";

// Samples at once, then at every interval, and once more at its end.
class Sampling {
 public:
  explicit Sampling(energy::Sources& sources) : sources_(sources) {
    sources_.sample(steady_clock().now());
    thread_ = std::thread([this] { loop(); });
  }
  ~Sampling() {
    if (thread_.joinable()) end();
  }
  void end() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    thread_.join();
    sources_.sample(steady_clock().now());
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kEvery, [this] { return over_; })) sources_.sample(steady_clock().now());
  }

  energy::Sources& sources_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

energy::Service service_of(const loadgen::Summary& s) {
  const auto sum = [](const loadgen::Stat& stat) { return stat.count > 0 ? stat.mean * static_cast<double>(stat.count) : 0; };
  return {.requests = static_cast<double>(s.ok),
          .good_requests = static_cast<double>(s.good),
          .output_tokens = static_cast<double>(s.output_tokens),
          .prompt_tokens = static_cast<double>(s.prompt_tokens),
          .prompt_known = s.prompt_tokens > 0,
          .mean_latency_s = s.e2e.count > 0 ? s.e2e.mean : 0,
          .prefill_s = sum(s.prefill),
          .decode_s = sum(s.decode)};
}

}  // namespace

void EnergyOptions::add_to(CLI::App& app) {
  app.add_flag("--energy", on_, "Joules of this machine during the run, from RAPL, hardware monitors and NVML, whichever can be read")
      ->group(kGroup);
  app.add_option("--power", power_, "IDLE,PEAK watts of the machine where nothing is measured: an estimate by how busy it is")
      ->group(kGroup);
  app.add_option("--idle-watts", idle_watts_, "What it draws without load, to tell idle from active joules")->group(kGroup);
  app.add_option("--measure-idle", idle_s_,
                 "Seconds for which that is measured before the load begins; the server should be loaded and idle")
      ->check(CLI::Range(0.5, 3600.0))
      ->excludes("--idle-watts")
      ->group(kGroup);
  app.add_option("--pue", facility_.pue, "Energy of the facility over that of its machines")->group(kGroup);
  app.add_option("--wue", wue_, "Litres of water per kWh: on site, and at the power plant behind a comma")->group(kGroup);
  app.add_option("--cif", facility_.cif, "Carbon intensity, g CO2e per kWh")->group(kGroup);
  app.add_option("--price-per-kwh", facility_.price_per_kwh, "Of electricity")->group(kGroup);
  app.add_option("--price-per-hour", facility_.price_per_hour, "Of the machine")->group(kGroup);
}

Status EnergyOptions::measure_idle() {
  on_ = true;
  energy::Sources sources = energy::open_sources({});
  if (!sources.counts() || sources.estimate())
    return fail(ErrorCode::kUnsupported, "--measure-idle: nothing on this machine measures its power; declare it with --idle-watts");
  const TimePoint start = steady_clock().now();
  Sampling sampling(sources);
  while (!interrupted() && to_seconds(steady_clock().now() - start) < idle_s_) std::this_thread::sleep_for(kGlance);
  sampling.end();
  if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
  idle_watts_ = sources.joules() / to_seconds(steady_clock().now() - start);
  idle_source_ = fmt::format("measured for {:.1f} s before the run", idle_s_);
  return {};
}

Status EnergyOptions::prepare() {
  if (!power_.empty()) {
    WEIR_ASSIGN(declared_, energy::DeclaredPower::parse(power_));
  }
  if (!wue_.empty()) {
    WEIR_ASSIGN(const auto wue, energy::parse_wue(wue_));
    facility_.wue_site = wue.first;
    if (wue.second >= 0) facility_.wue_source = wue.second;
  }
  if (idle_watts_ && !(*idle_watts_ >= 0 && *idle_watts_ < 1e6)) return fail(ErrorCode::kInvalidArgument, "--idle-watts is 0 to 1,000,000");
  on_ |= declared_.has_value() || facility_.any();
  WEIR_TRY(energy::check(facility_));
  if (idle_s_ > 0) return measure_idle();
  return {};
}

Result<loadgen::Measured> EnergyOptions::around(const std::function<Result<loadgen::Measured>()>& measure, std::string& text) const {
  if (!on_) return measure();
  energy::Sources sources = energy::open_sources({.declared = declared_});
  if (!sources.counts()) {
    std::string why;
    for (const std::string& note : sources.notes) why += "; " + note;
    return fail(ErrorCode::kUnsupported, "nothing on this machine tells its energy{}. Declare it: --power IDLE,PEAK (watts)", why);
  }
  const TimePoint start = steady_clock().now();
  Sampling sampling(sources);
  auto measured = measure();
  sampling.end();
  if (!measured) return measured;
  energy::Draw draw{.source = sources.name(),
                    .estimate = sources.estimate(),
                    .joules = sources.joules(),
                    .seconds = to_seconds(steady_clock().now() - start),
                    .notes = sources.notes};
  for (const auto& meter : sources.meters) draw.domains.insert(draw.domains.end(), meter->domains().begin(), meter->domains().end());
  if (idle_watts_) {
    draw.idle_watts = idle_watts_, draw.idle_source = idle_source_;
  } else if (declared_ && sources.estimate()) {
    draw.idle_watts = declared_->idle_w, draw.idle_source = "the model's";
  }
  const energy::Service service = service_of(measured->summary);
  measured->seen["energy"] = energy::energy_json(draw, service, facility_);
  text = energy::energy_text(draw, service, facility_);
  return measured;
}

}  // namespace weir::cli
