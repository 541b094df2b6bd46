// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampling_params.h"

#include <cmath>

namespace weir::sampling {
namespace {

constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 4096;
constexpr std::size_t kMaxBiases = 1 << 16;
constexpr std::int32_t kMaxLogprobs = 1000;

// Written so that NaN fails.
Status in_range(const char* name, double value, double low, double high, bool open_low = false) {
  const bool ok = (open_low ? value > low : value >= low) && value <= high;
  if (ok) return {};
  return fail(ErrorCode::kInvalidArgument, "{} must be {} {} and at most {}, not {}", name, open_low ? "above" : "at least", low, high,
              value);
}

Status check_stops(const SamplingParams& params) {
  if (params.stop.size() > kMaxStops)
    return fail(ErrorCode::kInvalidArgument, "stop has {} entries; {} are allowed", params.stop.size(), kMaxStops);
  for (const std::string& stop : params.stop) {
    if (stop.empty()) return fail(ErrorCode::kInvalidArgument, "stop holds an empty text, which would end every answer at once");
    if (stop.size() > kMaxStopBytes)
      return fail(ErrorCode::kInvalidArgument, "stop holds a text of {} bytes; {} are allowed", stop.size(), kMaxStopBytes);
  }
  return {};
}

}  // namespace

Status validate(const SamplingParams& params) {
  WEIR_TRY(in_range("temperature", params.temperature, 0, 100));
  WEIR_TRY(in_range("top_k", params.top_k, 0, 1 << 30));
  WEIR_TRY(in_range("top_p", params.top_p, 0, 1, true));
  WEIR_TRY(in_range("min_p", params.min_p, 0, 1));
  WEIR_TRY(in_range("typical_p", params.typical_p, 0, 1, true));
  WEIR_TRY(in_range("repetition_penalty", params.repetition_penalty, 0, 100, true));
  WEIR_TRY(in_range("frequency_penalty", params.frequency_penalty, -2, 2));
  WEIR_TRY(in_range("presence_penalty", params.presence_penalty, -2, 2));
  WEIR_TRY(in_range("logprobs", params.logprobs, -1, kMaxLogprobs));
  if (params.logit_bias.size() > kMaxBiases)
    return fail(ErrorCode::kInvalidArgument, "logit_bias has {} entries; {} are allowed", params.logit_bias.size(), kMaxBiases);
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0) return fail(ErrorCode::kInvalidArgument, "logit_bias names token {}; ids start at 0", id);
    WEIR_TRY(in_range("logit_bias", bias, -100, 100));
  }
  return check_stops(params);
}

}  // namespace weir::sampling
