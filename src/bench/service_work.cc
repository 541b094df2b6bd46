// SPDX-License-Identifier: Apache-2.0
#include "bench/service_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace weir::bench {
namespace {

constexpr double kMostPerS = 1e18;  // bytes or operations; more is a mistake

double peak_of_attention(const kernels::Limits& limits) {
  double best = 0;
  for (const auto arithmetic : {kernels::Arithmetic::kF32, kernels::Arithmetic::kBF16})
    if (const auto found = limits.arithmetic.find(arithmetic); found != limits.arithmetic.end()) best = std::max(best, found->second.per_s);
  return best;
}

struct Sum {
  double flops = 0, bytes = 0, at_peak = 0;

  void add(const kernels::Work& step, double times, const kernels::Limits& limits) {
    for (const auto& [arithmetic, ops] : step.ops) {
      flops += times * ops;
      const auto found = limits.arithmetic.find(arithmetic);
      if (found != limits.arithmetic.end() && found->second.per_s > 0) at_peak += times * ops / found->second.per_s;
    }
  }
  void add_attention(double ops, double peak) {
    flops += ops;
    if (peak > 0) at_peak += ops / peak;
  }
};

// Streams that decoded at once while any did: each waits for every step, so a step of it lasts as long as one of all.
double rows_per_step(std::span<const ServedRequest> requests, double decoding_s) {
  double together = 0;
  for (const ServedRequest& r : requests) together += r.decode_s;
  return decoding_s > 0 ? std::max(1.0, together / decoding_s) : 1;
}

Result<kernels::Roof> parse_roof(const json::Object& object, std::string_view speed, std::string_view by) {
  WEIR_ASSIGN(const double giga, json::get_double(object, speed));
  if (!(giga > 0 && giga * 1e9 <= kMostPerS)) return fail(ErrorCode::kInvalidArgument, "'{}' is {}, no speed", speed, giga);
  WEIR_ASSIGN(std::string name, json::get_string_or(object, by, ""));
  return kernels::Roof{giga * 1e9, std::move(name)};
}

}  // namespace

ServedWork served_work(const ModelCost& cost, std::span<const ServedRequest> requests, double seconds, double decoding_s,
                       const kernels::Limits& limits) {
  ServedWork out;
  if (requests.empty()) return out;
  const double peak = peak_of_attention(limits);
  out.rows = rows_per_step(requests, decoding_s);
  const auto together = static_cast<std::int64_t>(std::llround(out.rows));
  const double weights_per_token = cost.weight_bytes(together) / static_cast<double>(together);
  Sum sum;
  for (const ServedRequest& r : requests) {
    const double fresh = std::max(1.0, r.prompt - r.cached), steps = std::max(0.0, r.output - 1);
    const double passes = std::ceil(fresh / kPromptRows), at_once = std::min(fresh, kPromptRows);
    const double middle = r.prompt - fresh / 2, behind = r.prompt + r.output / 2;  // contexts, on average
    sum.add(cost.step(std::llround(fresh), 1), 1, limits);
    sum.add(cost.step(1, 1), steps, limits);
    sum.add_attention(fresh * cost.attention_ops(middle) + steps * cost.attention_ops(behind), peak);
    sum.bytes += passes * (cost.weight_bytes(std::llround(at_once)) + cost.context_bytes(middle));
    sum.bytes += steps * (weights_per_token + cost.context_bytes(behind));
  }
  const auto count = static_cast<double>(requests.size());
  out.flops = sum.flops / count, out.bytes = sum.bytes / count, out.seconds_at_peak = sum.at_peak / count;
  if (seconds > 0) {
    out.mfu = sum.at_peak / seconds;
    if (limits.read.per_s > 0) out.bandwidth_utilisation = sum.bytes / limits.read.per_s / seconds;
  }
  return out;
}

json::Object to_json(const ServedWork& work, const kernels::Limits& limits) {
  return {{"estimate", true},
          {"flops_per_request", work.flops},
          {"bytes_per_request", work.bytes},
          {"streams_per_step", work.rows},
          {"mfu", work.mfu},
          {"bandwidth_utilisation", work.bandwidth_utilisation},
          {"limits", kernels::to_json(limits)}};
}

std::string to_text(const ServedWork& work, const kernels::Limits& limits) {
  return fmt::format(
      "\nWork (an estimate from the model's shape)\n"
      "  a mean request: {:.2f} Gop, {:.3f} GB read; {:.1f} streams a step\n"
      "  MFU {:.1f} %, memory {:.1f} % of {:.1f} GB/s, {} threads\n",
      work.flops * 1e-9, work.bytes * 1e-9, work.rows, 100 * work.mfu, 100 * work.bandwidth_utilisation, limits.read.per_s * 1e-9,
      limits.threads);
}

Result<kernels::Limits> parse_limits(std::string_view text) {
  WEIR_ASSIGN(const json::Value value, json::parse(text, "limits"));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "limits"));
  if (const json::Value* inner = json::find(*object, "limits")) {
    WEIR_ASSIGN(object, json::as_object(*inner, "'limits'"));
  }
  kernels::Limits limits;
  WEIR_ASSIGN(limits.read, parse_roof(*object, "read_gb_per_s", "read_by"));
  WEIR_ASSIGN(const std::int64_t threads, json::get_int_or(*object, "threads", 1));
  if (threads < 1 || threads > 1 << 20) return fail(ErrorCode::kInvalidArgument, "'threads' is {}", threads);
  limits.threads = static_cast<int>(threads);
  const json::Value* peaks = json::find(*object, "peaks");
  if (!peaks) return fail(ErrorCode::kInvalidArgument, "no 'peaks'; weir bench machine --json writes them");
  WEIR_ASSIGN(const json::Object* by_name, json::as_object(*peaks, "'peaks'"));
  for (const auto arithmetic :
       {kernels::Arithmetic::kF32, kernels::Arithmetic::kF16, kernels::Arithmetic::kBF16, kernels::Arithmetic::kInt8}) {
    const json::Value* peak = json::find(*by_name, kernels::arithmetic_name(arithmetic));
    if (!peak) continue;
    WEIR_ASSIGN(const json::Object* roof, json::as_object(*peak, kernels::arithmetic_name(arithmetic)));
    WEIR_ASSIGN(limits.arithmetic[arithmetic], parse_roof(*roof, "gop_per_s", "by"));
  }
  if (!limits.arithmetic.contains(kernels::Arithmetic::kF32)) return fail(ErrorCode::kInvalidArgument, "'peaks' lacks fp32");
  return limits;
}

}  // namespace weir::bench
