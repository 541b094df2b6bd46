// SPDX-License-Identifier: Apache-2.0
#include "telemetry/request_trace.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "http/url.h"

namespace weir::telemetry {
namespace {

std::uint64_t random_bits() {
  thread_local std::mt19937_64 generator([] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }());
  return generator();
}

void add_text(Attributes& attributes, const char* name, const std::string& value) {
  if (!value.empty()) attributes.emplace_back(name, value);
}
void add_count(Attributes& attributes, const char* name, std::int64_t value) {
  if (value >= 0) attributes.emplace_back(name, value);
}
void add_number(Attributes& attributes, const char* name, double value) {
  if (value >= 0) attributes.emplace_back(name, value);
}

// "127.0.0.1:8080" or "[::1]:8080" as two attributes.
void add_address(Attributes& attributes, const char* host_name, const char* port_name, const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (address.empty()) return;
  std::string host = address.substr(0, colon);
  std::int64_t port = 0;
  if (colon != std::string::npos) std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  if (port == 0) host = address;
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  attributes.emplace_back(host_name, host);
  if (port > 0) attributes.emplace_back(port_name, port);
}

Attributes request_attributes(const RequestTrace& t) {
  Attributes all;
  add_text(all, "gen_ai.operation.name", t.operation);
  all.emplace_back("gen_ai.provider.name", std::string("weir"));
  add_text(all, "gen_ai.request.model", t.request_model);
  add_text(all, "gen_ai.response.model", t.response_model);
  add_text(all, "gen_ai.response.id", t.request_id);
  if (t.max_tokens > 0) add_count(all, "gen_ai.request.max_tokens", t.max_tokens);
  add_number(all, "gen_ai.request.temperature", t.temperature);
  add_number(all, "gen_ai.request.top_p", t.top_p);
  if (t.answers > 1) add_count(all, "gen_ai.request.choice.count", t.answers);
  if (!t.finish_reasons.empty()) all.emplace_back("gen_ai.response.finish_reasons", t.finish_reasons);
  add_count(all, "gen_ai.usage.input_tokens", t.prompt_tokens);
  add_count(all, "gen_ai.usage.output_tokens", t.generated_tokens);
  add_count(all, "gen_ai.usage.cache_read.input_tokens", t.cached_tokens);
  add_number(all, "gen_ai.latency.time_in_queue", t.queue_s);
  add_number(all, "gen_ai.latency.time_to_first_token", t.ttft_s);
  add_number(all, "gen_ai.latency.time_in_model_prefill", t.prefill_s);
  add_number(all, "gen_ai.latency.time_in_model_decode", t.decode_s);
  add_number(all, "gen_ai.latency.e2e", t.total_s);
  add_text(all, "weir.adapter", t.adapter);
  add_text(all, "weir.key", t.caller);
  if (t.streamed) all.emplace_back("weir.streamed", true);
  if (t.cancelled) all.emplace_back("weir.cancelled", true);
  add_text(all, "http.request.method", t.method);
  add_text(all, "http.route", t.route);
  if (t.status > 0) add_count(all, "http.response.status_code", t.status);
  add_address(all, "server.address", "server.port", t.server);
  add_address(all, "client.address", "client.port", t.peer);
  add_text(all, "user_agent.original", t.user_agent);
  add_text(all, "error.type", t.error_code);
  return all;
}

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

std::string random_span_id() { return http::make_span_id(random_bits()); }

http::TraceContext begin_trace(std::string_view traceparent, double sample_ratio) {
  if (auto given = http::parse_traceparent(traceparent)) return *std::move(given);
  const std::uint64_t low = random_bits();
  // The lower 63 bits decide, as in other tracers' samplers by ratio.
  const double drawn = static_cast<double>(low >> 1) / 9223372036854775808.0;
  return {.trace_id = http::make_trace_id(random_bits(), low), .span_id = {}, .sampled = drawn < sample_ratio};
}

Status check_endpoint(const std::string& url) {
  if (auto parsed = http::parse_url(url); !parsed)
    return fail(ErrorCode::kInvalidArgument, "the collector's address must be a URL such as http://127.0.0.1:4318/v1/traces: {}",
                parsed.error().message);
  return {};
}

std::vector<Span> request_spans(const RequestTrace& t) {
  const std::string model = t.response_model.empty() ? t.request_model : t.response_model;
  Span root{.trace_id = t.context.trace_id,
            .span_id = random_span_id(),
            .parent_id = t.context.span_id,
            .name = model.empty() ? t.operation : t.operation + " " + model,
            .kind = Span::Kind::kServer,
            .start_ns = t.start_unix_ns,
            .end_ns = t.start_unix_ns + nanoseconds(std::max(t.total_s, 0.0)),
            .attributes = request_attributes(t)};
  // The conventions call a server's span failed for its own faults; a client's mistake is no error of ours.
  root.failed = t.status >= 500 || (!t.error_code.empty() && t.status < 400);
  if (root.failed) root.failure = t.error_code;
  if (t.ttft_s >= 0) root.events.push_back({"gen_ai.first_token", t.start_unix_ns + nanoseconds(t.ttft_s), {}});

  std::vector<Span> spans;
  std::int64_t at = t.start_unix_ns + nanoseconds(std::max(t.before_queue_s, 0.0));
  const auto add_part = [&](const char* name, double seconds, Attributes attributes) {
    if (seconds < 0) return;
    const std::int64_t end = std::min(at + nanoseconds(seconds), root.end_ns);
    spans.push_back({.trace_id = root.trace_id,
                     .span_id = random_span_id(),
                     .parent_id = root.span_id,
                     .name = name,
                     .start_ns = std::min(at, end),
                     .end_ns = end,
                     .attributes = std::move(attributes)});
    at = end;
  };
  Attributes prompt, answer;
  add_count(prompt, "gen_ai.usage.input_tokens", t.prompt_tokens);
  add_count(prompt, "gen_ai.usage.cache_read.input_tokens", t.cached_tokens);
  add_count(answer, "gen_ai.usage.output_tokens", t.generated_tokens);
  add_part("queue", t.queue_s, {});
  add_part("prefill", t.prefill_s, std::move(prompt));
  add_part("decode", t.decode_s, std::move(answer));
  spans.insert(spans.begin(), std::move(root));
  return spans;
}

}  // namespace weir::telemetry
