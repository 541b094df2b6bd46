// SPDX-License-Identifier: Apache-2.0
// The spans of one request: the server's own with what OpenTelemetry's conventions for HTTP and generative AI ask for, and beneath it the
// time in the queue, in prefill and in decode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/trace_context.h"
#include "telemetry/spans.h"

namespace weir::telemetry {

// Negative numbers and empty texts: unknown.
struct RequestTrace {
  http::TraceContext context;                           // trace_id, and span_id of the caller, or empty
  std::string operation;                                // "chat", "text_completion", "embeddings", "rerank"
  std::string method, route, peer, user_agent, server;  // server: "127.0.0.1:8080"
  std::string request_id, request_model, response_model, adapter, caller, error_code;
  int status = 0;
  bool streamed = false, cancelled = false;
  std::int64_t prompt_tokens = -1, cached_tokens = -1, generated_tokens = -1, max_tokens = -1;
  double temperature = -1, top_p = -1;
  std::int32_t answers = 1;
  std::vector<std::string> finish_reasons;
  std::int64_t start_unix_ns = 0;
  double total_s = 0, queue_s = -1, prefill_s = -1, decode_s = -1;  // one after the other, from before_queue_s on
  double before_queue_s = 0, ttft_s = -1;
};

std::vector<Span> request_spans(const RequestTrace& trace);

// What goes before the first span: the caller's trace if the header is sound (and then its sampled flag counts), else a new one that is
// sampled with this probability.
http::TraceContext begin_trace(std::string_view traceparent, double sample_ratio);

std::string random_span_id();
Status check_endpoint(const std::string& url);  // of a collector

}  // namespace weir::telemetry
