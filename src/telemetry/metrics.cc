// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "telemetry/metric_books.h"

namespace weir::telemetry {
namespace {

using enum Quantity;

std::size_t reason_index(std::string_view reason) {
  const auto found = std::find(kReasons.begin(), kReasons.end(), reason);
  return found == kReasons.end() ? kReasons.size() - 1 : static_cast<std::size_t>(found - kReasons.begin());
}

// Methods come from clients: all but the usual ones count together.
std::string_view usual_method(std::string_view method) {
  for (const std::string_view known : {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"})
    if (method == known) return known;
  return method.empty() ? "" : "OTHER";
}

// Parts of a name in a NamedTable, which stands for several labels.
constexpr char kBetween = '\x1f';
std::vector<std::string> split(std::string_view name, std::size_t parts) {
  std::vector<std::string> labels(parts, std::string(name == "other" ? "other" : ""));
  for (std::size_t i = 0; i < parts && name != "other"; ++i) {
    const std::size_t end = i + 1 == parts ? name.size() : std::min(name.find(kBetween), name.size());
    labels[i] = name.substr(0, end);
    name.remove_prefix(std::min(name.size(), end + 1));
  }
  return labels;
}

class Name {  // "a␟b␟c" without an allocation
 public:
  explicit Name(std::initializer_list<std::string_view> parts) {
    bool first = true;
    for (const std::string_view part : parts) {
      if (!std::exchange(first, false)) push({&kBetween, 1});
      push(part);
    }
  }
  operator std::string_view() const { return {text_.data(), size_}; }

 private:
  void push(std::string_view part) {
    const std::size_t size = std::min(part.size(), text_.size() - size_);
    std::copy_n(part.data(), size, text_.data() + size_);
    size_ += size;
  }
  std::array<char, 256> text_ = {};
  std::size_t size_ = 0;
};

void record_if_known(Histogram& histogram, double value) {
  if (value >= 0) histogram.record(value);
}

}  // namespace

void prepare_books(ModelBooks& books) {
  static const auto bounds = [] {
    std::array<std::vector<double>, kModelHistograms> all;
    for (std::size_t i = 0; i < kModelHistograms; ++i) all[i] = bounds_of(static_cast<Quantity>(i));
    return all;
  }();
  for (std::size_t i = 0; i < kModelHistograms; ++i) books.histograms[i].set_bounds(bounds[i]);
}

struct Metrics::Books {
  NamedTable<ModelBooks> models{prepare_books};
  NamedTable<RouteBooks> routes{[](RouteBooks& books) { books.time.set_bounds(bounds_of(kHttpTime)); }};  // method, route
  NamedTable<Counter> http_requests;                                                                      // method, route, status
  NamedTable<Counter> gone, reloads;                                                                      // reason; what, result
  Counter bytes_in{0}, bytes_out{0};

  // An engine's counters begin anew with each engine; what those before it had counted is kept here. By model and quantity.
  struct Carried {
    double before = 0, last = 0;
  };
  std::mutex carried_mutex;
  std::map<std::pair<std::string, Quantity>, Carried, std::less<>> carried;

  void put_recorded(Samples& samples);
  void put_http(Samples& samples);
  void put_counter(Samples& samples, const ModelSnapshot& model, Quantity quantity, double value);
  void put_model(Samples& samples, const ModelSnapshot& model);
  void put_engine(Samples& samples, const ModelSnapshot& model);
};

Metrics::Metrics() : books_(std::make_unique<Books>()) {}
Metrics::~Metrics() = default;

void Metrics::record_request(const RequestSample& sample) {
  if (sample.model.empty()) return;
  ModelBooks& books = books_->models[sample.model];
  record_if_known(books[kTtft], sample.ttft_s);
  record_if_known(books[kEndToEnd], sample.e2e_s);
  record_if_known(books[kQueue], sample.queue_s);
  record_if_known(books[kPrefill], sample.prefill_s);
  record_if_known(books[kDecode], sample.decode_s);
  if (sample.prefill_s >= 0 && sample.decode_s >= 0) books[kInference].record(sample.prefill_s + sample.decode_s);
  record_if_known(books[kRequestPrompt], static_cast<double>(sample.prompt_tokens));
  record_if_known(books[kRequestGenerated], static_cast<double>(sample.generated_tokens));
  if (sample.prompt_tokens > 0 && sample.cached_tokens >= 0)
    books[kRequestCachedShare].record(static_cast<double>(sample.cached_tokens) / static_cast<double>(sample.prompt_tokens));
  if (sample.max_tokens > 0) books[kRequestMaxTokens].record(static_cast<double>(sample.max_tokens));
  if (sample.answers > 0) books[kRequestAnswers].record(sample.answers);

  const auto times = sample.token_times;
  for (std::size_t i = 1; i < times.size(); ++i) books[kInterToken].record(to_seconds(times[i] - times[i - 1]));
  if (times.size() > 1) books[kTimePerOutput].record(to_seconds(times.back() - times.front()) / static_cast<double>(times.size() - 1));

  for (const std::string& reason : sample.finish_reasons) add(books.finished[reason_index(reason)]);
  if (sample.cancelled) add(books.cancelled);
  add(books.outcomes[sample.cancelled ? 1 : sample.error_code.empty() ? 0 : 2]);
}

void Metrics::record_step(std::string_view model, const StepSample& sample) {
  ModelBooks& books = books_->models[model];
  books[kStep].record(sample.step_s);
  books[kStepForward].record(sample.forward_s);
  books[kStepChoosing].record(sample.choosing_s);
  books[kStepSequences].record(sample.sequences);
  books[kStepTokens].record(static_cast<double>(sample.prefill_positions) + sample.decode_positions);
  if (sample.drafted > 0) add(books.drafts);
}

void Metrics::record_load(std::string_view model, bool loaded, double seconds) {
  ModelBooks& books = books_->models[model];
  add(loaded ? books.loads : books.unloads);
  if (loaded) record_if_known(books[kLoad], seconds);
}

void Metrics::record_http(const HttpSample& sample) {
  const std::string_view method = usual_method(sample.method);
  const int status = std::clamp(sample.status, 0, 999);
  char digits[4] = {};
  const char* end = std::to_chars(digits, digits + 3, status).ptr;
  add(books_->http_requests[Name({method, sample.route, {digits, static_cast<std::size_t>(end - digits)}})]);
  books_->routes[Name({method, sample.route})].time.record(sample.total_s);
  add(books_->bytes_in, sample.bytes_in);
  add(books_->bytes_out, sample.bytes_out);
  if (!sample.gone.empty()) add(books_->gone[sample.gone]);
}

void Metrics::record_reload(std::string_view what, bool good) { add(books_->reloads[Name({what, good ? "ok" : "failed"})]); }

void Metrics::Books::put_recorded(Samples& samples) {
  models.each([&](std::string_view name, const ModelBooks& books) {
    const std::string model(name);
    for (std::size_t i = 0; i < kModelHistograms; ++i) samples.put(static_cast<Quantity>(i), {model}, books.histograms[i].read());
    std::array<double, kReasons.size()> finished;
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
      finished[i] = static_cast<double>(books.finished[i].load());
      samples.put(kFinished, {model, std::string(kReasons[i])}, finished[i]);
    }
    // vLLM knows no calls of tools here, and calls cancelled requests aborted.
    samples.put(kFinishedVllm, {model, "stop"}, finished[0] + finished[2]);
    samples.put(kFinishedVllm, {model, "length"}, finished[1]);
    samples.put(kFinishedVllm, {model, "abort"}, finished[3]);
    samples.put(kFinishedVllm, {model, "error"}, finished[4] + finished[5]);
    for (std::size_t i = 0; i < kOutcomes.size(); ++i)
      samples.put(kRequests, {model, std::string(kOutcomes[i])}, static_cast<double>(books.outcomes[i].load()));
    samples.put(kCancelled, {model}, static_cast<double>(books.cancelled.load()));
    samples.put(kLoads, {model}, static_cast<double>(books.loads.load()));
    samples.put(kUnloads, {model}, static_cast<double>(books.unloads.load()));
    samples.put(kDrafts, {model}, static_cast<double>(books.drafts.load()));
  });
}

void Metrics::Books::put_http(Samples& samples) {
  http_requests.each(
      [&](std::string_view name, const Counter& count) { samples.put(kHttpRequests, split(name, 3), static_cast<double>(count.load())); });
  routes.each([&](std::string_view name, const RouteBooks& books) { samples.put(kHttpTime, split(name, 2), books.time.read()); });
  gone.each(
      [&](std::string_view name, const Counter& count) { samples.put(kHttpGone, split(name, 1), static_cast<double>(count.load())); });
  reloads.each(
      [&](std::string_view name, const Counter& count) { samples.put(kReloads, split(name, 2), static_cast<double>(count.load())); });
  samples.put(kHttpBytesIn, {}, static_cast<double>(bytes_in.load()));
  samples.put(kHttpBytesOut, {}, static_cast<double>(bytes_out.load()));
}

void Metrics::Books::put_counter(Samples& samples, const ModelSnapshot& model, Quantity quantity, double value) {
  Carried& sum = carried[{model.name, quantity}];
  if (model.has_engine) {
    if (value < sum.last) sum.before += sum.last;
    sum.last = value;
  }
  samples.put(quantity, {model.name}, sum.before + sum.last);
}

void Metrics::Books::put_model(Samples& samples, const ModelSnapshot& model) {
  for (const char* state : {"ready", "loading", "unloaded", "failed"})
    samples.put(kModelState, {model.name, state}, model.state == state ? 1 : 0);
  samples.put(kModelBytes, {model.name}, static_cast<double>(model.bytes));
  // Without an engine nothing runs and nothing waits: routers read these of every model.
  samples.put(kRunning, {model.name}, static_cast<double>(model.running));
  samples.put(kWaiting, {model.name}, static_cast<double>(model.waiting));
  samples.put(kKvUse, {model.name}, model.kv_use);
  samples.put(kEstimatedWait, {model.name}, model.estimated_wait_s);
  put_engine(samples, model);
}

void Metrics::Books::put_engine(Samples& samples, const ModelSnapshot& model) {
  const std::pair<Quantity, double> counters[] = {
      {kPromptTokens, static_cast<double>(model.prompt_tokens)},
      {kGeneratedTokens, static_cast<double>(model.generated_tokens)},
      {kDraftTokens, static_cast<double>(model.drafted_tokens)},
      {kAcceptedTokens, static_cast<double>(model.accepted_tokens)},
      {kForcedTokens, static_cast<double>(model.forced_tokens)},
      {kPreemptions, static_cast<double>(model.preemptions)},
      {kRefused, static_cast<double>(model.refused)},
      {kExpired, static_cast<double>(model.expired)},
      {kFailedSteps, static_cast<double>(model.failed_steps)},
      {kPrefixAsked, static_cast<double>(model.prefix_asked)},
      {kPrefixFound, static_cast<double>(model.prefix_found)},
      {kEvicted, static_cast<double>(model.evicted)},
      {kBusy, model.busy_s},
  };
  for (const auto& [quantity, value] : counters) put_counter(samples, model, quantity, value);
  if (!model.has_engine || model.cache_blocks == 0) return;
  samples.put(kKvBlocks, {model.name}, static_cast<double>(model.cache_blocks));
  samples.put(kCacheConfig,
              {model.name, std::to_string(model.block_tokens), std::to_string(model.cache_blocks), model.prefix_cache ? "True" : "False"},
              1);
}

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// One series for the process, as routers take the newest series of this name and look at no label but its own.
void put_adapters(Samples& samples, std::span<const ModelSnapshot> models) {
  std::vector<std::string> running, waiting;
  std::int64_t most = 0;
  for (const ModelSnapshot& model : models) {
    running.insert(running.end(), model.adapters.begin(), model.adapters.end());
    waiting.insert(waiting.end(), model.waiting_adapters.begin(), model.waiting_adapters.end());
    most += model.max_adapters;
  }
  if (running.empty() && waiting.empty()) return;
  most = std::max<std::int64_t>(most, static_cast<std::int64_t>(running.size() + waiting.size()));
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  samples.put(kAdapters, {std::to_string(most), joined(running), joined(waiting)}, now);
}

void put_server(Samples& samples, const ServerSnapshot& server) {
  const std::pair<Quantity, std::uint64_t> values[] = {
      {kConnections, server.connections_open},
      {kConnectionsAccepted, server.connections_accepted},
      {kConnectionsRefused, server.connections_refused},
      {kHttpActive, server.requests_active},
      {kHttpMalformed, server.requests_malformed},
      {kHttpTimeouts, server.timeouts},
      {kBodyBytes, server.body_bytes_held},
      {kSpansExported, server.spans_exported},
      {kSpansDropped, server.spans_dropped},
      {kLogDropped, server.log_lines_dropped},
  };
  for (const auto& [quantity, value] : values) samples.put(quantity, {}, static_cast<double>(value));
}

void put_process(Samples& samples) {
  const ProcessFigures figures = process_figures();
  samples.put(kResident, {}, figures.resident_bytes);
  samples.put(kVirtual, {}, figures.virtual_bytes);
  samples.put(kCpu, {}, figures.cpu_seconds);
  samples.put(kStartTime, {}, figures.start_unix_s);
  samples.put(kOpenFds, {}, figures.open_fds);
  samples.put(kMaxFds, {}, figures.max_fds);
}

}  // namespace

std::string Metrics::text(std::span<const ModelSnapshot> models, const ServerSnapshot& server) {
  Samples samples;
  for (const ModelSnapshot& model : models) books_->models[model.name];  // all its series are there from the start
  books_->put_recorded(samples);
  {
    const std::lock_guard lock(books_->carried_mutex);
    for (const ModelSnapshot& model : models) books_->put_model(samples, model);
  }
  put_adapters(samples, models);
  books_->put_http(samples);
  put_server(samples, server);
  put_process(samples);
  return exposition(samples);
}

std::string_view Metrics::content_type() { return "text/plain; version=0.0.4; charset=utf-8"; }

}  // namespace weir::telemetry
