// SPDX-License-Identifier: Apache-2.0
// What a service had to compute and to read for the requests that it answered, and how much of a machine's limits that took: from the
// model's shape and what the service's clients saw. An estimate: how a server cuts its steps is not seen from outside.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "bench/model_cost.h"

namespace weir::bench {

struct ServedRequest {  // tokens
  double prompt = 0, cached = 0, output = 0;
  double decode_s = 0;  // from its first token to its last
};

struct ServedWork {
  double flops = 0, bytes = 0;  // of a mean request
  double rows = 1;              // streams that decoded together, on average while any did
  double seconds_at_peak = 0;   // of a mean request: its multiply-adds, each at the peak of its arithmetic
  double mfu = 0;               // model FLOPs utilisation: share of the machine's multiply-adds (PaLM, arXiv:2204.02311, appendix B)
  double bandwidth_utilisation = 0;
};

inline constexpr double kPromptRows = 512;  // of a prompt's tokens are taken to pass through the weights together

// `seconds` is how long the requests took in all, `decoding_s` for how long any of them was decoding. Counted are each token of a prompt
// that was not cached, each of an answer but the last, attention over what they see; weights are read once by every 512 tokens of a
// prompt and by every step of decoding, keys and values once by each step that sees them. All 0 without requests.
ServedWork served_work(const ModelCost& cost, std::span<const ServedRequest> requests, double seconds, double decoding_s,
                       const kernels::Limits& limits);

// "flops_per_request", "bytes_per_request", "mfu", "bandwidth_utilisation", "streams_per_step", "estimate", "limits".
json::Object to_json(const ServedWork& work, const kernels::Limits& limits);
std::string to_text(const ServedWork& work, const kernels::Limits& limits);

// Limits as to_json() writes them, or the same as the member "limits" of `weir bench machine --json`: of another machine, say.
Result<kernels::Limits> parse_limits(std::string_view json);

}  // namespace weir::bench
