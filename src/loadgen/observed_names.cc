// SPDX-License-Identifier: Apache-2.0
#include "loadgen/observed_names.h"

#include <algorithm>
#include <regex>

namespace weir::loadgen {
namespace {

constexpr std::size_t kMostPattern = 1000;

struct KnownName {
  std::string_view name;
  ObservedMeaning meaning;
};

// Weir (docs/metrics.md), vLLM, llama.cpp's server, SGLang, TGI, Triton (and Perf Analyzer's four), Dynamo, DCGM's exporter, any process.
constexpr KnownName kKnown[] = {
    {"weir_requests_running", {"running", ""}},
    {"vllm:num_requests_running", {"running", ""}},
    {"llamacpp:requests_processing", {"running", ""}},
    {"sglang:num_running_reqs", {"running", ""}},
    {"tgi_batch_current_size", {"running", ""}},
    {"dynamo_frontend_inflight_requests", {"running", ""}},
    {"weir_requests_waiting", {"waiting", ""}},
    {"vllm:num_requests_waiting", {"waiting", ""}},
    {"llamacpp:requests_deferred", {"waiting", ""}},
    {"sglang:num_queue_reqs", {"waiting", ""}},
    {"tgi_queue_size", {"waiting", ""}},
    {"nv_inference_pending_request_count", {"waiting", ""}},
    {"dynamo_frontend_queued_requests", {"waiting", ""}},
    {"weir_kv_cache_use_ratio", {"kv_use", "ratio"}},
    {"vllm:kv_cache_usage_perc", {"kv_use", "ratio"}},  // a ratio in spite of its name
    {"vllm:gpu_cache_usage_perc", {"kv_use", "ratio"}},
    {"llamacpp:kv_cache_usage_ratio", {"kv_use", "ratio"}},
    {"sglang:token_usage", {"kv_use", "ratio"}},
    {"dynamo_component_kvstats_gpu_cache_usage_percent", {"kv_use", "ratio"}},
    {"dynamo_component_gpu_cache_usage_percent", {"kv_use", "ratio"}},
    {"weir_preemptions_total", {"preemptions", ""}},
    {"vllm:num_preemptions_total", {"preemptions", ""}},
    {"weir_requests_total", {"requests", ""}},
    {"vllm:request_success_total", {"requests", ""}},
    {"sglang:num_requests_total", {"requests", ""}},
    {"tgi_request_success", {"requests", ""}},
    {"nv_inference_request_success", {"requests", ""}},
    {"nv_inference_request_failure", {"failures", ""}},
    {"nv_inference_exec_count", {"steps", ""}},
    {"dynamo_frontend_requests_total", {"requests", ""}},
    {"weir_prompt_tokens_total", {"prompt_tokens", "tokens"}},
    {"vllm:prompt_tokens_total", {"prompt_tokens", "tokens"}},
    {"llamacpp:prompt_tokens_total", {"prompt_tokens", "tokens"}},
    {"sglang:prompt_tokens_total", {"prompt_tokens", "tokens"}},
    {"weir_generated_tokens_total", {"output_tokens", "tokens"}},
    {"vllm:generation_tokens_total", {"output_tokens", "tokens"}},
    {"llamacpp:tokens_predicted_total", {"output_tokens", "tokens"}},
    {"sglang:generation_tokens_total", {"output_tokens", "tokens"}},
    {"dynamo_frontend_output_tokens_total", {"output_tokens", "tokens"}},
    {"weir_prefix_cache_asked_tokens_total", {"prefix_asked", "tokens"}},
    {"vllm:prefix_cache_queries_total", {"prefix_asked", "tokens"}},
    {"weir_prefix_cache_found_tokens_total", {"prefix_found", "tokens"}},
    {"vllm:prefix_cache_hits_total", {"prefix_found", "tokens"}},
    {"sglang:cached_tokens_total", {"prefix_found", "tokens"}},
    {"weir_ttft_seconds", {"ttft", "s"}},
    {"vllm:time_to_first_token_seconds", {"ttft", "s"}},
    {"sglang:time_to_first_token_seconds", {"ttft", "s"}},
    {"dynamo_frontend_time_to_first_token_seconds", {"ttft", "s"}},
    {"weir_itl_seconds", {"itl", "s"}},
    {"vllm:inter_token_latency_seconds", {"itl", "s"}},
    {"sglang:inter_token_latency_seconds", {"itl", "s"}},
    {"dynamo_frontend_inter_token_latency_seconds", {"itl", "s"}},
    {"weir_e2e_seconds", {"e2e", "s"}},
    {"vllm:e2e_request_latency_seconds", {"e2e", "s"}},
    {"sglang:e2e_request_latency_seconds", {"e2e", "s"}},
    {"dynamo_frontend_request_duration_seconds", {"e2e", "s"}},
    {"weir_queue_seconds", {"queue_time", "s"}},
    {"vllm:request_queue_time_seconds", {"queue_time", "s"}},
    {"sglang:queue_time_seconds", {"queue_time", "s"}},
    {"weir_step_sequences", {"batch", ""}},
    {"weir_busy_seconds_total", {"busy_seconds", "s"}},
    {"nv_gpu_utilization", {"gpu_use", "ratio"}},
    {"DCGM_FI_DEV_GPU_UTIL", {"gpu_use", "ratio", 0.01}},
    {"nv_gpu_power_usage", {"gpu_power", "W"}},
    {"DCGM_FI_DEV_POWER_USAGE", {"gpu_power", "W"}},
    {"nv_energy_consumption", {"gpu_energy", "J"}},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", {"gpu_energy", "J", 1e-3}},
    {"nv_gpu_memory_used_bytes", {"gpu_memory_used", "bytes"}},
    {"DCGM_FI_DEV_FB_USED", {"gpu_memory_used", "bytes", 1048576}},
    {"nv_gpu_memory_total_bytes", {"gpu_memory_total", "bytes"}},
    {"nv_cpu_utilization", {"cpu_use", "ratio"}},
    {"process_cpu_seconds_total", {"cpu_seconds", "s"}},
    {"process_resident_memory_bytes", {"memory", "bytes"}},
    // This machine's own, as machine_sampler.cc names them.
    {"machine_cpu_use_ratio", {"cpu_use", "ratio"}},
    {"machine_memory_available_bytes", {"memory_available", "bytes"}},
    {"generator_cpu_processors", {"generator_cpu", "processors"}},
    {"server_cpu_processors", {"server_cpu", "processors"}},
    {"server_resident_bytes", {"memory", "bytes"}},
    {"gpu_use_ratio", {"gpu_use", "ratio"}},
    {"gpu_power_watts", {"gpu_power", "W"}},
    {"gpu_memory_used_bytes", {"gpu_memory_used", "bytes"}},
    {"gpu_memory_total_bytes", {"gpu_memory_total", "bytes"}},
};

}  // namespace

ObservedMeaning meaning_of(std::string_view name) {
  const auto found = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const KnownName& known) { return known.name == name; });
  return found == std::end(kKnown) ? ObservedMeaning{} : found->meaning;
}

struct SeriesFilter::Pattern {
  std::regex regex;
};

Result<SeriesFilter> SeriesFilter::make(const std::string& pattern) {
  SeriesFilter filter;
  if (pattern.empty()) return filter;
  if (pattern.size() > kMostPattern) return fail(ErrorCode::kInvalidArgument, "--metrics-filter: more than {} characters", kMostPattern);
  try {
    filter.pattern_ = std::make_shared<const Pattern>(Pattern{std::regex(pattern, std::regex::ECMAScript | std::regex::optimize)});
  } catch (const std::regex_error& error) {
    return fail(ErrorCode::kInvalidArgument, "--metrics-filter '{}' is no regular expression: {}", pattern, error.what());
  }
  return filter;
}

bool SeriesFilter::operator()(std::string_view name) const {
  if (!pattern_) return !meaning_of(name).word.empty();
  try {
    return std::regex_search(name.begin(), name.end(), pattern_->regex, std::regex_constants::match_continuous);
  } catch (const std::regex_error&) {
    return false;  // the pattern takes too long for this name
  }
}

}  // namespace weir::loadgen
