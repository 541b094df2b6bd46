// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/multiply_add.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/limits/multiply_add_x86.h"
#include "kernels/limits/together.h"

namespace weir::kernels {
namespace {

using Floats4 = float __attribute__((vector_size(16)));

// What any compiler makes of four floats side by side. Factors that it cannot know keep it from folding the loop.
std::uint64_t plain_loop(std::int64_t steps) {
  volatile float one = 1;
  const float f = one;
  const Floats4 x = {f, f, f, f};
  Floats4 a = x, b = x, c = x, d = x, e = x, g = x, h = x, i = x;
  for (std::int64_t n = 0; n < steps; ++n) {
    a = a * x + x, b = b * x + x, c = c * x + x, d = d * x + x;
    e = e * x + x, g = g * x + x, h = h * x + x, i = i * x + x;
  }
  const Floats4 sum = a + b + c + d + e + g + h + i;
  std::uint64_t word = 0;
  std::memcpy(&word, &sum, sizeof word);
  return word;
}

std::vector<MultiplyAddLoop> all_loops() {
  std::vector<MultiplyAddLoop> loops = {{"fp32, plain C++", Arithmetic::kF32, 8 * 8, true, plain_loop}};
  add_x86_loops(loops);
  return loops;
}

}  // namespace

const char* arithmetic_name(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kF32: return "fp32";
    case Arithmetic::kF16: return "fp16";
    case Arithmetic::kBF16: return "bf16";
    case Arithmetic::kInt8: return "int8";
  }
  return "unknown";
}

std::span<const MultiplyAddLoop> multiply_add_loops() {
  static const std::vector<MultiplyAddLoop> kLoops = all_loops();
  return kLoops;
}

Peak measure_multiply_add(const MultiplyAddLoop& loop, int threads, double seconds, int runs, std::span<const int> processors) {
  std::atomic<std::uint64_t> sink{0};
  std::int64_t steps = 20'000;
  const auto body = [&](int) { sink.fetch_xor(loop.run(steps), std::memory_order_relaxed); };
  // The first runs wake the wide units and raise the clock; the last of them says how many steps fill the time.
  const double warm = std::max(run_together(threads, 3, body, processors).back(), 1e-7);
  steps = std::clamp(static_cast<std::int64_t>(static_cast<double>(steps) * seconds / std::max(runs, 1) / warm), std::int64_t{20'000},
                     std::int64_t{1} << 40);
  std::vector<double> speeds;
  for (const double s : run_together(threads, std::max(runs, 1), body, processors))
    speeds.push_back(static_cast<double>(steps) * loop.ops_per_step * threads / std::max(s, 1e-9));
  return {.name = loop.name, .arithmetic = loop.arithmetic, .threads = threads, .ops_per_s = spread_of(std::move(speeds))};
}

}  // namespace weir::kernels
