// SPDX-License-Identifier: Apache-2.0
// The exporter: a bounded queue, and a thread that sends batches and waits for the collector's answers.
#include "telemetry/spans.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "http/client.h"
#include "telemetry/request_trace.h"

namespace weir::telemetry {
namespace {

constexpr int kTries = 3;
constexpr Duration kFirstPause = std::chrono::milliseconds(250);

bool worth_repeating(int status) { return status == 0 || status == 429 || status == 502 || status == 503 || status == 504; }

// How many spans of an accepted batch the collector refused.
std::uint64_t refused_spans(std::string_view body) {
  const auto value = json::parse(body, "the collector's answer", {.max_bytes = 1u << 20, .max_depth = 16});
  if (!value || !value->is_object()) return 0;
  const json::Value* partial = json::find(value->get_object(), "partialSuccess");
  if (!partial || !partial->is_object()) return 0;
  const json::Value* refused = json::find(partial->get_object(), "rejectedSpans");
  if (!refused) return 0;
  if (refused->is_string()) return std::strtoull(refused->get_string().c_str(), nullptr, 10);
  const auto number = json::to_int(*refused, "rejectedSpans");
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

}  // namespace

class SpanExporter::Impl {
 public:
  Impl(SpanOptions options, std::unique_ptr<http::Client> client)
      : options_(std::move(options)), client_(std::move(client)), thread_([this] { run(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const SpanOptions& options() const { return options_; }

  void push(std::vector<Span> spans) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || waiting_.size() + spans.size() > options_.max_queued) {
        stats_.dropped += spans.size();
        return;
      }
      wake = waiting_.empty() || waiting_.size() + spans.size() >= options_.batch;
      pushed_ += spans.size();
      std::move(spans.begin(), spans.end(), std::back_inserter(waiting_));
    }
    if (wake) wake_.notify_all();
  }

  void flush(Duration most) {
    std::unique_lock lock(mutex_);
    const std::uint64_t until = pushed_;
    flushing_ = true;
    wake_.notify_all();
    settled_changed_.wait_for(lock, most, [&] { return settled_ >= until; });
  }

  Stats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (!stopping_ && !flushing_ && waiting_.size() < options_.batch)
        wake_.wait_for(lock, options_.interval, [this] { return stopping_ || flushing_ || waiting_.size() >= options_.batch; });
      if (waiting_.empty()) {
        flushing_ = false;
        if (stopping_) return;
        continue;
      }
      const bool at_end = stopping_;
      send_batch(lock);
      if (at_end && failing_) drop_rest();  // a collector that is gone holds the end up once only
    }
  }

  void drop_rest() {
    stats_.dropped += waiting_.size();
    settled_ += waiting_.size();
    waiting_.clear();
    settled_changed_.notify_all();
  }

  void send_batch(std::unique_lock<std::mutex>& lock) {
    const auto size = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), options_.batch));
    std::vector<Span> batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.begin() + size));
    waiting_.erase(waiting_.begin(), waiting_.begin() + size);
    lock.unlock();
    const std::string body = otlp_json(batch, options_);
    http::ClientResponse response = send(body);
    const bool accepted = response.status >= 200 && response.status < 300;
    const std::uint64_t refused = accepted ? std::min<std::uint64_t>(refused_spans(response.body), batch.size()) : batch.size();
    lock.lock();
    note(response.status, accepted);
    stats_.exported += batch.size() - refused;
    stats_.dropped += refused;
    settled_ += batch.size();
    if (waiting_.empty()) flushing_ = false;
    settled_changed_.notify_all();
  }

  // Tries again after a pause where the collector may recover; at a stop only once.
  http::ClientResponse send(const std::string& body) {
    Duration pause = kFirstPause;
    for (int tried = 1;; ++tried, pause *= 2) {
      http::ClientResponse response = send_once(body);
      if (!worth_repeating(response.status) || tried == kTries || !rest(pause)) return response;
    }
  }

  http::ClientResponse send_once(const std::string& body) {
    http::ClientRequest request;
    request.method = "POST";
    request.url = options_.endpoint;
    request.headers.add("Content-Type", "application/json");
    for (const auto& [name, value] : options_.headers) request.headers.set(name, value);
    request.body = body;
    request.total_timeout = options_.timeout;
    request.connect_timeout = options_.timeout;
    request.max_body_bytes = 1u << 20;
    request.repeatable = true;  // a span that comes twice has the same id
    auto response = client_->fetch(std::move(request));
    return response ? std::move(*response) : http::ClientResponse{};
  }

  bool rest(Duration pause) {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, pause, [this] { return stopping_; });
  }

  // Says it when exports begin to fail, and when they work again.
  void note(int status, bool accepted) {
    if (!accepted) ++stats_.failed_exports;
    if (failing_ == !accepted) return;
    failing_ = !accepted;
    if (failing_)
      log::warn("spans cannot be exported to {} ({}); they are dropped until it works again", options_.endpoint,
                status == 0 ? std::string("no answer") : "status " + std::to_string(status));
    else
      log::info("spans are exported to {} again", options_.endpoint);
  }

  const SpanOptions options_;
  std::unique_ptr<http::Client> client_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, settled_changed_;
  std::deque<Span> waiting_;
  std::uint64_t pushed_ = 0, settled_ = 0;
  bool flushing_ = false, stopping_ = false, failing_ = false;
  Stats stats_;
  std::thread thread_;
};

SpanExporter::SpanExporter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SpanExporter::~SpanExporter() = default;

Result<std::unique_ptr<SpanExporter>> SpanExporter::start(SpanOptions options) {
  WEIR_TRY(check_endpoint(options.endpoint));
  if (options.batch == 0 || options.max_queued < options.batch)
    return fail(ErrorCode::kInvalidArgument, "spans: a queue of {} cannot hold a batch of {}", options.max_queued, options.batch);
  if (options.service_instance.empty()) options.service_instance = random_span_id();
  http::ClientOptions client_options;
  client_options.user_agent = "weir-otlp";
  WEIR_ASSIGN(auto client, http::Client::make(std::move(client_options)));
  return std::unique_ptr<SpanExporter>(new SpanExporter(std::make_unique<Impl>(std::move(options), std::move(client))));
}

const SpanOptions& SpanExporter::options() const { return impl_->options(); }
void SpanExporter::push(std::vector<Span> spans) { impl_->push(std::move(spans)); }
void SpanExporter::flush(Duration most) { impl_->flush(most); }
SpanExporter::Stats SpanExporter::stats() const { return impl_->stats(); }

}  // namespace weir::telemetry
