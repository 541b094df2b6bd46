// SPDX-License-Identifier: Apache-2.0
#include "loadgen/machine_sampler.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/file_io.h"
#include "base/system_memory.h"

namespace weir::loadgen {
namespace {

double own_cpu_seconds() {
  rusage use{};
  if (::getrusage(RUSAGE_SELF, &use) != 0) return 0;
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

void gauge(std::vector<MetricReading>& out, const char* name, double value, MetricLabels labels = {}) {
  out.push_back({.name = name, .labels = std::move(labels), .kind = MetricKind::kGauge, .value = value, .buckets = {}});
}

}  // namespace

MachineSampler::MachineSampler(Options options) : options_(std::move(options)) {
  if (!options_.gpus) return;
  const auto api = options_.nvml ? Result<energy::NvmlApi>(*options_.nvml) : energy::load_nvml();
  if (!api) return;
  if (auto meter = energy::NvmlMeter::open(*api)) gpus_ = std::move(*meter);
}

void MachineSampler::begin_anew() {
  before_.reset();
  cpu_.reset();
  server_.reset();
}

std::vector<MetricReading> MachineSampler::sample(TimePoint now) {
  std::vector<MetricReading> out;
  const double seconds = before_ ? to_seconds(now - *before_) : 0;
  if (before_ && now - *before_ < kLeast) return out;
  add_processors(seconds, out);
  add_server(seconds, out);
  if (const auto memory = read_file(options_.proc / "meminfo", 1u << 16))
    if (const auto bytes = parse_kilobytes(*memory, "MemAvailable"))
      gauge(out, "machine_memory_available_bytes", static_cast<double>(*bytes));
  add_gpus(now, out);
  before_ = now;
  return out;
}

void MachineSampler::add_processors(double seconds, std::vector<MetricReading>& out) {
  const auto cpu = energy::read_cpu_times(options_.proc);
  if (cpu && cpu_ && seconds > 0 && cpu->total_s > cpu_->total_s) gauge(out, "machine_cpu_use_ratio", energy::busy_share(*cpu_, *cpu));
  cpu_ = cpu;
  const double own = own_cpu_seconds();
  if (seconds > 0) gauge(out, "generator_cpu_processors", std::max(0.0, own - own_cpu_s_) / seconds);
  own_cpu_s_ = own;
}

void MachineSampler::add_server(double seconds, std::vector<MetricReading>& out) {
  if (!options_.server_pid) return;
  const auto server = energy::read_process_tree(*options_.server_pid, options_.proc);
  if (server) gauge(out, "server_resident_bytes", server->resident_bytes);
  // Less than before: one of its processes has ended.
  if (server && server_ && seconds > 0) gauge(out, "server_cpu_processors", std::max(0.0, server->cpu_s - server_->cpu_s) / seconds);
  server_ = server;
}

void MachineSampler::add_gpus(TimePoint now, std::vector<MetricReading>& out) {
  if (!gpus_) return;
  gpus_->sample(now);
  for (const energy::GpuState& gpu : gpus_->gpus()) {
    const MetricLabels labels{{"gpu_uuid", gpu.uuid}, {"name", gpu.name}};
    gauge(out, "gpu_use_ratio", gpu.use, labels);
    gauge(out, "gpu_power_watts", gpu.watts, labels);
    gauge(out, "gpu_memory_used_bytes", gpu.memory_used, labels);
    gauge(out, "gpu_memory_total_bytes", gpu.memory_total, labels);
  }
}

}  // namespace weir::loadgen
