// SPDX-License-Identifier: Apache-2.0
#include "serving/recorder.h"

#include <algorithm>
#include <chrono>

namespace weir::serving {
namespace {

double positive_or_unknown(double ms) { return ms > 0 ? ms : -1; }
double seconds_of(double ms) { return ms > 0 ? ms / 1e3 : -1; }

std::string operation_of(std::string_view endpoint) {
  if (endpoint == "/v1/completions" || endpoint == "/api/generate") return "text_completion";
  if (endpoint == "/v1/embeddings" || endpoint == "/api/embed" || endpoint == "/api/embeddings") return "embeddings";
  if (endpoint.ends_with("/rerank")) return "rerank";
  return "chat";
}

// A request that was refused before a model saw it has no figures: zeros would be wrong ones.
bool reached_model(const RequestRecord& record) { return record.usage.prompt_tokens > 0; }

telemetry::RequestSample sample_of(const RequestRecord& r) {
  telemetry::RequestSample sample{.model = r.model,
                                  .max_tokens = r.max_tokens,
                                  .answers = r.answers,
                                  .cancelled = r.cancelled,
                                  .finish_reasons = r.finish_reasons,
                                  .error_code = r.error_code,
                                  .token_times = r.token_times};
  if (!reached_model(r)) return sample;
  sample.ttft_s = seconds_of(r.timings.ttft_ms);
  sample.e2e_s = seconds_of(r.timings.total_ms);
  sample.queue_s = std::max(r.timings.queue_ms, 0.0) / 1e3;
  sample.prefill_s = seconds_of(r.timings.prefill_ms);
  sample.decode_s = sample.ttft_s >= 0 ? std::max(r.timings.decode_ms, 0.0) / 1e3 : -1;
  sample.prompt_tokens = r.usage.prompt_tokens;
  sample.cached_tokens = r.usage.cached_tokens;
  sample.generated_tokens = r.usage.completion_tokens;
  return sample;
}

telemetry::AccessEntry entry_of(const RequestRecord& r) {
  telemetry::AccessEntry entry;
  entry.http_id = r.http_id;
  entry.id = r.id;
  entry.route = r.endpoint;
  entry.status = r.status;
  entry.total_ms = r.timings.total_ms;
  entry.streamed = r.streamed;
  entry.caller = r.caller;
  entry.tenant = r.tenant;
  entry.model = r.model;
  entry.adapter = r.adapter;
  entry.error_code = r.error_code;
  entry.finish_reasons = r.finish_reasons;
  entry.prompt = r.prompt;
  entry.answer = r.answer;
  if (!reached_model(r)) return entry;
  entry.prompt_tokens = r.usage.prompt_tokens;
  entry.cached_tokens = r.usage.cached_tokens;
  entry.generated_tokens = r.usage.completion_tokens;
  entry.queue_ms = std::max(r.timings.queue_ms, 0.0);
  entry.prefill_ms = positive_or_unknown(r.timings.prefill_ms);
  entry.decode_ms = positive_or_unknown(r.timings.decode_ms);
  entry.ttft_ms = positive_or_unknown(r.timings.ttft_ms);
  return entry;
}

telemetry::RequestTrace trace_of(const RequestRecord& r, http::TraceContext context) {
  telemetry::RequestTrace t;
  t.context = std::move(context);
  t.operation = operation_of(r.endpoint);
  t.route = r.endpoint;
  t.request_id = r.id;
  t.request_model = t.response_model = r.model;
  t.adapter = r.adapter;
  t.caller = r.caller;
  t.error_code = r.error_code;
  t.status = r.status;
  t.streamed = r.streamed;
  t.cancelled = r.cancelled;
  t.max_tokens = r.max_tokens;
  t.answers = r.answers;
  t.finish_reasons = r.finish_reasons;
  t.total_s = std::max(r.timings.total_ms, 0.0) / 1e3;
  const auto since = steady_clock().now() - r.received;
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
  t.start_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(unix_now - since).count();
  if (!reached_model(r)) return t;
  t.temperature = r.temperature;
  t.top_p = r.top_p;
  t.prompt_tokens = r.usage.prompt_tokens;
  t.cached_tokens = r.usage.cached_tokens;
  t.generated_tokens = r.usage.completion_tokens;
  t.queue_s = std::max(r.timings.queue_ms, 0.0) / 1e3;
  t.prefill_s = seconds_of(r.timings.prefill_ms);
  t.decode_s = seconds_of(r.timings.decode_ms);
  t.ttft_s = seconds_of(r.timings.ttft_ms);
  return t;
}

// Of the pool that is nearest to full.
double kv_use(const kvcache::CacheStats& cache) {
  double most = 0;
  for (const kvcache::PoolStats& pool : cache.pools)
    if (pool.capacity > 0) most = std::max(most, static_cast<double>(pool.used) / pool.capacity);
  return most;
}

telemetry::ModelSnapshot snapshot_of(const ModelState& model, bool prefix_cache) {
  telemetry::ModelSnapshot s;
  s.name = model.name;
  s.state = model.state;
  s.bytes = model.bytes;
  s.block_tokens = model.block_tokens;
  s.cache_blocks = model.cache_blocks;
  s.context = model.context;
  s.max_running = model.max_running;
  s.adapters = model.adapters;
  s.prefix_cache = prefix_cache;
  s.has_engine = model.stats != nullptr;
  if (!s.has_engine) return s;
  const engine::ServiceStats& stats = *model.stats;
  s.running = stats.scheduler.running;
  s.waiting = stats.scheduler.waiting;
  s.preemptions = stats.scheduler.preemptions;
  s.refused = stats.scheduler.refused;
  s.expired = stats.scheduler.expired;
  s.kv_use = kv_use(stats.cache);
  s.prefix_asked = stats.cache.asked_tokens;
  s.prefix_found = stats.cache.found_tokens;
  s.evicted = stats.cache.evicted;
  s.prompt_tokens = stats.prompt_tokens;
  s.generated_tokens = stats.generated_tokens;
  s.drafted_tokens = stats.drafted_tokens;
  s.accepted_tokens = stats.accepted_tokens;
  s.forced_tokens = stats.forced_tokens;
  s.failed_steps = stats.failed_steps;
  s.estimated_wait_s = to_seconds(stats.estimated_wait);
  s.busy_s = to_seconds(stats.busy);
  return s;
}

double milliseconds(Duration duration) { return to_seconds(duration) * 1e3; }

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::start(RecorderOptions options) {
  auto recorder = std::unique_ptr<Recorder>(new Recorder(std::move(options)));
  const RecorderOptions& o = recorder->options_;
  if (!o.access_log.file.empty()) {
    WEIR_ASSIGN(recorder->log_, telemetry::AccessLog::open(o.access_log));
  }
  if (!o.spans.endpoint.empty()) {
    WEIR_ASSIGN(recorder->spans_, telemetry::SpanExporter::start(o.spans));
  }
  return recorder;
}

Recorder::~Recorder() {
  for (auto& [id, pending] : std::exchange(pending_, {})) finish(std::move(pending));
}

void Recorder::on_request(const RequestRecord& record) {
  metrics_.record_request(sample_of(record));
  if (!log_ && !spans_) return;
  Pending pending{.entry = entry_of(record)};
  if (spans_) {
    auto context = telemetry::begin_trace(record.traceparent, options_.spans.sample_ratio);
    pending.entry.trace_id = context.trace_id;
    if (context.sampled) pending.trace = trace_of(record, std::move(context));
  }
  keep(record.http_id, std::move(pending));
}

void Recorder::on_step(std::string_view model, const engine::StepRecord& step) {
  metrics_.record_step(model, {.sequences = step.sequences,
                               .prefill_positions = step.prefill_positions,
                               .decode_positions = step.decode_positions,
                               .drafted = step.drafted,
                               .accepted = step.accepted,
                               .step_s = to_seconds(step.elapsed),
                               .forward_s = to_seconds(step.forward),
                               .choosing_s = to_seconds(step.choosing)});
}

void Recorder::on_load(std::string_view model, bool loaded, Duration took) { metrics_.record_load(model, loaded, to_seconds(took)); }

void Recorder::on_http(const http::AccessRecord& record) {
  const std::string_view gone = record.gone == http::Gone::kNo ? std::string_view() : http::gone_name(record.gone);
  metrics_.record_http({.method = record.method,
                        .route = record.route,
                        .status = record.status,
                        .total_s = to_seconds(record.total),
                        .bytes_in = record.bytes_in,
                        .bytes_out = record.bytes_out,
                        .gone = gone});
  if (!log_ && !spans_) return;
  Pending pending = take(record.request_id).value_or(Pending{});
  telemetry::AccessEntry& entry = pending.entry;
  entry.http_id = record.request_id;
  entry.method = record.method;
  entry.route = record.route;
  entry.peer = record.peer;
  entry.user_agent = record.user_agent;
  entry.status = record.status;
  entry.bytes_in = record.bytes_in;
  entry.bytes_out = record.bytes_out;
  entry.total_ms = milliseconds(record.total);
  if (record.to_first_byte > Duration::zero()) entry.first_byte_ms = milliseconds(record.to_first_byte);
  entry.streamed = record.streamed;
  entry.gone = gone;
  if (entry.trace_id.empty())
    if (auto given = http::parse_traceparent(record.traceparent)) entry.trace_id = given->trace_id;
  if (pending.trace) {
    telemetry::RequestTrace& trace = *pending.trace;
    trace.method = record.method;
    trace.route = record.route;
    trace.peer = record.peer;
    trace.user_agent = record.user_agent;
    trace.status = record.status;
    trace.total_s = std::max(trace.total_s, to_seconds(record.total));
    trace.before_queue_s = to_seconds(record.to_handler);
  }
  finish(std::move(pending));
}

void Recorder::finish(Pending pending) {
  if (spans_ && pending.trace) {
    pending.trace->server = options_.server_address;
    spans_->push(telemetry::request_spans(*pending.trace));
  }
  if (log_) log_->write(pending.entry);
}

void Recorder::keep(std::uint64_t http_id, Pending pending) {
  std::optional<Pending> oldest;  // whose end on the wire never came
  {
    const std::lock_guard lock(mutex_);
    pending_.insert_or_assign(http_id, std::move(pending));
    if (pending_.size() > kMostPending) oldest = std::move(pending_.extract(pending_.begin()).mapped());
  }
  if (oldest) finish(*std::move(oldest));
}

std::optional<Recorder::Pending> Recorder::take(std::uint64_t http_id) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(http_id);
  if (found == pending_.end()) return std::nullopt;
  return std::move(pending_.extract(found).mapped());
}

http::Response Recorder::metrics(const std::vector<ModelState>& models, const http::ServerStats& http) {
  std::vector<telemetry::ModelSnapshot> snapshots;
  snapshots.reserve(models.size());
  for (const ModelState& model : models) snapshots.push_back(snapshot_of(model, options_.prefix_cache));
  telemetry::ServerSnapshot server{.connections_open = http.connections_open,
                                   .connections_accepted = http.connections_accepted,
                                   .connections_refused = http.connections_refused,
                                   .requests_active = http.requests_active,
                                   .requests_malformed = http.requests_malformed,
                                   .timeouts = http.timeouts,
                                   .clients_gone = http.clients_gone,
                                   .body_bytes_held = http.body_bytes_held};
  if (spans_) {
    const auto stats = spans_->stats();
    server.spans_exported = stats.exported;
    server.spans_dropped = stats.dropped;
  }
  if (log_) server.log_lines_dropped = log_->dropped();
  http::Response response;
  response.headers.set("Content-Type", telemetry::Metrics::content_type());
  response.body = metrics_.text(snapshots, server);
  return response;
}

Status Recorder::reopen_log() {
  if (!log_) return {};
  return log_->reopen();
}

}  // namespace weir::serving
