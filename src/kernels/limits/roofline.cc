// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/roofline.h"

#include <algorithm>
#include <vector>

#include "base/system_memory.h"
#include "kernels/limits/read_speed.h"

namespace weir::kernels {

namespace {

constexpr std::uint64_t kLargestSet = 512u << 20;  // several times the largest last-level caches of one socket
constexpr std::uint64_t kSmallestSet = 1u << 20;

double per_s(const Limits& limits, Arithmetic arithmetic) {
  const auto found = limits.arithmetic.find(arithmetic);
  return found == limits.arithmetic.end() ? 0 : found->second.per_s;
}

void keep_better(Roof& roof, double per_s, std::string by) {
  if (per_s > roof.per_s) roof = {per_s, std::move(by)};
}

Arithmetic better(Arithmetic a, Arithmetic b, const Limits& limits) { return per_s(limits, a) >= per_s(limits, b) ? a : b; }

}  // namespace

std::uint64_t bounded_working_set(std::uint64_t wanted, std::uint64_t free_memory) {
  return std::clamp(wanted, kSmallestSet, std::max(kSmallestSet, std::min(kLargestSet, free_memory / 4)));
}

Result<Limits> measure_limits(int threads, std::uint64_t working_set) {
  Limits limits;
  limits.threads = threads;
  limits.working_set = bounded_working_set(working_set, available_memory().value_or(4 * kLargestSet));
  const std::uint64_t share = std::max<std::uint64_t>(limits.working_set / static_cast<std::uint64_t>(threads), 4096);
  for (const auto pages : {Pages::kOrdinary, Pages::kHuge}) {
    WEIR_ASSIGN(const Spread read,
                measure_read({.threads = threads, .bytes_per_thread = share, .pages = pages, .seconds = 0.15, .runs = 4}));
    keep_better(limits.read, read.max, pages_name(pages));
  }
  for (const MultiplyAddLoop& loop : multiply_add_loops()) {
    if (!loop.usable) continue;
    const Peak peak = measure_multiply_add(loop, threads, 0.05, 4);
    keep_better(limits.arithmetic[loop.arithmetic], peak.ops_per_s.max, loop.name);
  }
  return limits;
}

void merge_limits(Limits& into, const Limits& other) {
  keep_better(into.read, other.read.per_s, other.read.by);
  for (const auto& [arithmetic, roof] : other.arithmetic) keep_better(into.arithmetic[arithmetic], roof.per_s, roof.by);
}

json::Object to_json(const Limits& limits) {
  json::Object peaks;
  for (const auto& [arithmetic, roof] : limits.arithmetic)
    peaks[arithmetic_name(arithmetic)] = json::Object{{"gop_per_s", roof.per_s * 1e-9}, {"by", roof.by}};
  return {{"threads", limits.threads},
          {"working_set_bytes", limits.working_set},
          {"read_gb_per_s", limits.read.per_s * 1e-9},
          {"read_by", limits.read.by},
          {"peaks", std::move(peaks)}};
}

BestTime best_time(const Work& work, const Limits& limits) {
  BestTime best;
  if (limits.read.per_s > 0) best.seconds = work.bytes / limits.read.per_s;
  double computing = 0, longest = 0;
  const char* by = "memory";
  for (const auto& [arithmetic, ops] : work.ops) {
    const double speed = per_s(limits, arithmetic);
    if (speed <= 0) continue;
    computing += ops / speed;
    if (ops / speed > longest) {
      longest = ops / speed;
      by = arithmetic_name(arithmetic);
    }
  }
  return computing > best.seconds ? BestTime{computing, by} : best;
}

Arithmetic arithmetic_for(DType weights, Activations activations, const Limits& limits) {
  if (dtype_info(weights).quantized)
    return activations == Activations::kInt8 && per_s(limits, Arithmetic::kInt8) > 0 ? Arithmetic::kInt8 : Arithmetic::kF32;
  if (weights == DType::kBF16) return better(Arithmetic::kF32, Arithmetic::kBF16, limits);
  if (weights == DType::kF16) return better(Arithmetic::kF32, Arithmetic::kF16, limits);
  return Arithmetic::kF32;
}

}  // namespace weir::kernels
