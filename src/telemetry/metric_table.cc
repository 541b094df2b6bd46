// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metric_table.h"

#include <algorithm>
#include <array>

namespace weir::telemetry {
namespace {

using enum MetricKind;
using enum Quantity;

// Ours: even on a logarithmic scale, fine where promises are made.
constexpr std::array kTimes = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0};
constexpr std::array kGaps = {0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05,
                              0.075,  0.1,   0.15,   0.2,   0.3,    0.5,  1.0,   2.5,  5.0,  10.0};
constexpr std::array kStepTimes = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5};
constexpr std::array kTokens = {1.0,    2.0,    5.0,     10.0,    20.0,    50.0,     100.0,    200.0,    500.0,    1000.0,
                                2000.0, 5000.0, 10000.0, 20000.0, 50000.0, 100000.0, 200000.0, 500000.0, 1000000.0};
constexpr std::array kShares = {0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99};
constexpr std::array kSequences = {1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 256.0, 512.0};
constexpr std::array kLoadTimes = {0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0};

// vLLM's.
constexpr std::array kVllmTtft = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                  1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
constexpr std::array kVllmGaps = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                  0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array kVllmLatency = {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
                                     30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr std::array kVllmStepTokens = {1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0};
constexpr std::array kVllmAnswers = {1.0, 2.0, 5.0, 10.0, 20.0};

constexpr std::string_view kModel = "model", kVllm = "model_name,engine";

constexpr MetricRow kTable[] = {
    // Requests.
    {"weir_ttft_seconds", kHistogram, kTtft, kModel, "From a request's arrival to its first token.", kTimes},
    {"weir_itl_seconds", kHistogram, kInterToken, kModel, "Between two tokens of an answer.", kGaps},
    {"weir_tpot_seconds", kHistogram, kTimePerOutput, kModel, "Mean time for each token of a request after its first.", kGaps},
    {"weir_e2e_seconds", kHistogram, kEndToEnd, kModel, "From a request's arrival to its end.", kTimes},
    {"weir_queue_seconds", kHistogram, kQueue, kModel, "From a request's arrival to the first step with a row of it.", kTimes},
    {"weir_prefill_seconds", kHistogram, kPrefill, kModel, "From the first step of a request to its first token.", kTimes},
    {"weir_decode_seconds", kHistogram, kDecode, kModel, "From the first token of a request to its last.", kTimes},
    {"weir_request_prompt_tokens", kHistogram, kRequestPrompt, kModel, "Tokens of a request's prompt.", kTokens},
    {"weir_request_generated_tokens", kHistogram, kRequestGenerated, kModel, "Tokens generated for a request.", kTokens},
    {"weir_request_cached_ratio", kHistogram, kRequestCachedShare, kModel, "Share of a prompt found in the prefix cache.", kShares},
    {"weir_requests_total", kCounter, kRequests, "model,outcome", "Requests for models by outcome: ok, cancelled or failed."},
    {"weir_answers_total", kCounter, kFinished, "model,finish_reason", "Answers by what ended them."},
    {"weir_cancellations_total", kCounter, kCancelled, kModel, "Requests given up by the client or by a limit of time."},
    // Steps.
    {"weir_step_seconds", kHistogram, kStep, kModel, "One step of the engine.", kStepTimes},
    {"weir_step_forward_seconds", kHistogram, kStepForward, kModel, "Of a step, the time in the model.", kStepTimes},
    {"weir_step_sampling_seconds", kHistogram, kStepChoosing, kModel, "Of a step, the time from logits to tokens.", kStepTimes},
    {"weir_step_sequences", kHistogram, kStepSequences, kModel, "Sequences in a step: the batch size.", kSequences},
    {"weir_step_tokens", kHistogram, kStepTokens, kModel, "Positions computed in a step, of prompts and answers.", kVllmStepTokens},
    // The engine's state.
    {"weir_requests_running", kGauge, kRunning, kModel, "Sequences that are being computed."},
    {"weir_requests_waiting", kGauge, kWaiting, kModel, "Sequences in the queue."},
    {"weir_estimated_wait_seconds", kGauge, kEstimatedWait, kModel, "Estimated wait of a request that comes now."},
    {"weir_kv_cache_use_ratio", kGauge, kKvUse, kModel, "Share of the cache's blocks that sequences hold."},
    {"weir_kv_cache_blocks", kGauge, kKvBlocks, kModel, "Blocks of the cache."},
    {"weir_kv_cache_evictions_total", kCounter, kEvicted, kModel, "Cached blocks and states that gave way."},
    {"weir_prefix_cache_asked_tokens_total", kCounter, kPrefixAsked, kModel, "Tokens looked up in the prefix cache."},
    {"weir_prefix_cache_found_tokens_total", kCounter, kPrefixFound, kModel, "Tokens found in the prefix cache."},
    {"weir_prompt_tokens_total", kCounter, kPromptTokens, kModel, "Prompt tokens of requests that began to run."},
    {"weir_generated_tokens_total", kCounter, kGeneratedTokens, kModel, "Tokens generated."},
    {"weir_drafted_tokens_total", kCounter, kDraftTokens, kModel, "Guessed tokens that were verified."},
    {"weir_accepted_tokens_total", kCounter, kAcceptedTokens, kModel, "Guessed tokens that were right."},
    {"weir_forced_tokens_total", kCounter, kForcedTokens, kModel, "Tokens that a grammar left no choice of."},
    {"weir_preemptions_total", kCounter, kPreemptions, kModel, "Sequences put back into the queue for want of room."},
    {"weir_refused_total", kCounter, kRefused, kModel, "Requests refused by a full queue."},
    {"weir_expired_total", kCounter, kExpired, kModel, "Requests that did not begin within their limit."},
    {"weir_failed_steps_total", kCounter, kFailedSteps, kModel, "Steps that failed."},
    {"weir_busy_seconds_total", kCounter, kBusy, kModel, "Time spent in steps."},
    // Models.
    {"weir_model_state", kGauge, kModelState, "model,state", "1 for the state that a model is in."},
    {"weir_model_memory_bytes", kGauge, kModelBytes, kModel, "Memory that a model holds."},
    {"weir_model_load_seconds", kHistogram, kLoad, kModel, "Time to bring a model to memory.", kLoadTimes},
    {"weir_model_loads_total", kCounter, kLoads, kModel, "Times a model was brought to memory."},
    {"weir_model_unloads_total", kCounter, kUnloads, kModel, "Times a model left memory."},
    // HTTP.
    {"weir_http_requests_total", kCounter, kHttpRequests, "method,route,status",
     "HTTP requests; status 0: the client left before an answer."},
    {"weir_http_request_seconds", kHistogram, kHttpTime, "method,route", "From a request's first byte to its answer's last.", kTimes},
    {"weir_http_received_bytes_total", kCounter, kHttpBytesIn, "", "Bytes of request bodies."},
    {"weir_http_sent_bytes_total", kCounter, kHttpBytesOut, "", "Bytes of answers, heads included."},
    {"weir_http_gone_total", kCounter, kHttpGone, "reason", "Answers that nobody read to their end, by reason."},
    {"weir_http_requests_active", kGauge, kHttpActive, "", "Requests whose answer is not over."},
    {"weir_http_malformed_total", kCounter, kHttpMalformed, "", "Requests that broke HTTP's rules or a limit."},
    {"weir_http_timeouts_total", kCounter, kHttpTimeouts, "", "Connections ended by a limit of time."},
    {"weir_http_body_bytes", kGauge, kBodyBytes, "", "Bytes of request bodies held now."},
    {"weir_http_connections", kGauge, kConnections, "", "Connections open now."},
    {"weir_http_connections_accepted_total", kCounter, kConnectionsAccepted, "", "Connections accepted."},
    {"weir_http_connections_refused_total", kCounter, kConnectionsRefused, "", "Connections refused because there were too many."},
    // The server.
    {"weir_reloads_total", kCounter, kReloads, "what,result", "Reloads of keys and certificates; failed ones left the old in place."},
    {"weir_spans_exported_total", kCounter, kSpansExported, "", "Spans that a collector took."},
    {"weir_spans_dropped_total", kCounter, kSpansDropped, "", "Spans lost: the queue was full, or no collector took them."},
    {"weir_log_lines_dropped_total", kCounter, kLogDropped, "", "Lines of the access log lost because the disk was too slow."},

    // The same under vLLM's names.
    {"vllm:num_requests_running", kGauge, kRunning, kVllm, "Number of requests in model execution batches."},
    {"vllm:num_requests_waiting", kGauge, kWaiting, kVllm, "Number of requests waiting to be processed."},
    {"vllm:kv_cache_usage_perc", kGauge, kKvUse, kVllm, "Share of the KV cache in use; 1 means all of it."},
    {"vllm:gpu_cache_usage_perc", kGauge, kKvUse, kVllm, "As vllm:kv_cache_usage_perc, for readers of its older name."},
    {"vllm:cache_config_info", kGauge, kCacheConfig, "model_name,engine,block_size,num_gpu_blocks,enable_prefix_caching",
     "The cache's layout, in labels."},
    {"vllm:lora_requests_info", kGauge, kAdapters, "max_lora,running_lora_adapters,waiting_lora_adapters",
     "Adapters, in labels; the value is the time of the reading."},
    {"vllm:prefix_cache_queries_total", kCounter, kPrefixAsked, kVllm, "Tokens looked up in the prefix cache."},
    {"vllm:prefix_cache_hits_total", kCounter, kPrefixFound, kVllm, "Tokens found in the prefix cache."},
    {"vllm:num_preemptions_total", kCounter, kPreemptions, kVllm, "Preemptions by the engine."},
    {"vllm:prompt_tokens_total", kCounter, kPromptTokens, kVllm, "Prompt tokens processed."},
    {"vllm:generation_tokens_total", kCounter, kGeneratedTokens, kVllm, "Tokens generated."},
    {"vllm:request_success_total", kCounter, kFinishedVllm, "model_name,engine,finished_reason", "Requests that were processed."},
    {"vllm:spec_decode_num_drafts_total", kCounter, kDrafts, kVllm, "Steps that verified guesses."},
    {"vllm:spec_decode_num_draft_tokens_total", kCounter, kDraftTokens, kVllm, "Guessed tokens."},
    {"vllm:spec_decode_num_accepted_tokens_total", kCounter, kAcceptedTokens, kVllm, "Guessed tokens that were accepted."},
    {"vllm:time_to_first_token_seconds", kHistogram, kTtft, kVllm, "Time to first token.", kVllmTtft},
    {"vllm:inter_token_latency_seconds", kHistogram, kInterToken, kVllm, "Time between two tokens.", kVllmGaps},
    {"vllm:time_per_output_token_seconds", kHistogram, kInterToken, kVllm,
     "As vllm:inter_token_latency_seconds, for readers of its older name.", kVllmGaps},
    {"vllm:request_time_per_output_token_seconds", kHistogram, kTimePerOutput, kVllm, "Mean time per output token of a request.",
     kVllmGaps},
    {"vllm:e2e_request_latency_seconds", kHistogram, kEndToEnd, kVllm, "Latency of a request, end to end.", kVllmLatency},
    {"vllm:request_queue_time_seconds", kHistogram, kQueue, kVllm, "Time of a request in the queue.", kVllmLatency},
    {"vllm:request_inference_time_seconds", kHistogram, kInference, kVllm, "Time of a request in prefill and decode.", kVllmLatency},
    {"vllm:request_prefill_time_seconds", kHistogram, kPrefill, kVllm, "Time of a request in prefill.", kVllmLatency},
    {"vllm:request_decode_time_seconds", kHistogram, kDecode, kVllm, "Time of a request in decode.", kVllmLatency},
    {"vllm:request_prompt_tokens", kHistogram, kRequestPrompt, kVllm, "Prompt tokens of a request.", kTokens},
    {"vllm:request_generation_tokens", kHistogram, kRequestGenerated, kVllm, "Tokens generated for a request.", kTokens},
    {"vllm:request_params_max_tokens", kHistogram, kRequestMaxTokens, kVllm, "The max_tokens that requests asked for.", kTokens},
    {"vllm:request_params_n", kHistogram, kRequestAnswers, kVllm, "The n that requests asked for.", kVllmAnswers},
    {"vllm:iteration_tokens_total", kHistogram, kStepTokens, kVllm, "Tokens in one step of the engine.", kVllmStepTokens},

    // As every exporter names them.
    {"process_resident_memory_bytes", kGauge, kResident, "", "Resident memory size in bytes."},
    {"process_virtual_memory_bytes", kGauge, kVirtual, "", "Virtual memory size in bytes."},
    {"process_cpu_seconds_total", kCounter, kCpu, "", "Total user and system CPU time spent in seconds."},
    {"process_start_time_seconds", kGauge, kStartTime, "", "Start time of the process since unix epoch in seconds."},
    {"process_open_fds", kGauge, kOpenFds, "", "Number of open file descriptors."},
    {"process_max_fds", kGauge, kMaxFds, "", "Maximum number of open file descriptors."},
};

}  // namespace

std::span<const MetricRow> metric_table() { return kTable; }

std::vector<double> bounds_of(Quantity quantity) {
  std::vector<double> bounds;
  for (const MetricRow& row : kTable)
    if (row.quantity == quantity) bounds.insert(bounds.end(), row.buckets.begin(), row.buckets.end());
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  return bounds;
}

}  // namespace weir::telemetry
