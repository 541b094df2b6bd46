// SPDX-License-Identifier: Apache-2.0
// The observer that keeps metrics, the access log and spans: what the server tells, put into telemetry's plain structs. A request's two
// records (what the model did, what the HTTP server saw) come one after the other and become one line and one trace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "serving/observer.h"
#include "telemetry/access_log.h"
#include "telemetry/metrics.h"
#include "telemetry/request_trace.h"
#include "telemetry/spans.h"

namespace weir::serving {

struct RecorderOptions {
  telemetry::AccessLogOptions access_log = {};
  telemetry::SpanOptions spans = {};
  std::string server_address = {};  // for spans: "127.0.0.1:8080"
  bool prefix_cache = true;         // of the engines, for vllm:cache_config_info
};

class Recorder final : public Observer {
 public:
  // Errors of the log's file or the collector's address.
  static Result<std::unique_ptr<Recorder>> start(RecorderOptions options);
  ~Recorder() override;

  void on_request(const RequestRecord& record) override;
  void on_step(std::string_view model, const engine::StepRecord& step) override;
  void on_load(std::string_view model, bool loaded, Duration took) override;
  void on_http(const http::AccessRecord& record) override;
  bool wants_text() const override { return options_.access_log.prompts && log_ != nullptr; }
  http::Response metrics(const std::vector<ModelState>& models, const http::ServerStats& http) override;

  // For SIGHUP: the log goes to a new file of the same name. `what` was read again: "keys", "tls".
  Status reopen_log();
  void note_reload(std::string_view what, bool good) { metrics_.record_reload(what, good); }

 private:
  // What on_request() told, until on_http() completes it.
  struct Pending {
    telemetry::AccessEntry entry;
    std::optional<telemetry::RequestTrace> trace = {};
  };
  static constexpr std::size_t kMostPending = 8192;

  explicit Recorder(RecorderOptions options) : options_(std::move(options)) {}
  void keep(std::uint64_t http_id, Pending pending);
  std::optional<Pending> take(std::uint64_t http_id);
  void finish(Pending pending);

  RecorderOptions options_;
  telemetry::Metrics metrics_;
  std::unique_ptr<telemetry::AccessLog> log_;       // null: none is kept
  std::unique_ptr<telemetry::SpanExporter> spans_;  // likewise
  std::mutex mutex_;
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace weir::serving
