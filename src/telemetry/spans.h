// SPDX-License-Identifier: Apache-2.0
// Traces: W3C trace context in, spans out by OTLP over HTTP as JSON, in batches from a bounded queue. Nothing waits for the collector: what
// does not fit is dropped and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weir::telemetry {

struct SpanOptions {
  std::string endpoint = {};                                      // "http://127.0.0.1:4318/v1/traces"; empty: no spans
  std::vector<std::pair<std::string, std::string>> headers = {};  // for the collector, e.g. its key: secret
  std::string service_name = "weir";
  std::string service_instance = {};  // empty: a random one
  double sample_ratio = 1;            // of requests that come without a trace; those with one are told
  std::size_t max_queued = 4096;      // spans
  std::size_t batch = 256;
  Duration interval = std::chrono::seconds(1);  // a batch that is not full goes after so long
  Duration timeout = std::chrono::seconds(10);  // for the collector's answer
};

using AttributeValue = std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

struct SpanEvent {
  std::string name;
  std::int64_t unix_ns = 0;
  Attributes attributes = {};
};

struct Span {
  std::string trace_id, span_id, parent_id;  // hex; parent_id is empty for a root
  std::string name;
  enum class Kind { kInternal = 1, kServer = 2, kClient = 3 } kind = Kind::kInternal;
  std::int64_t start_ns = 0, end_ns = 0;  // since 1970
  Attributes attributes = {};
  std::vector<SpanEvent> events = {};
  bool failed = false;
  std::string failure = {};  // the status' description
};

// The body of one export request: ExportTraceServiceRequest in OTLP's JSON mapping.
std::string otlp_json(const std::vector<Span>& spans, const SpanOptions& options);

class SpanExporter {
 public:
  // kInvalidArgument for an endpoint that is no URL.
  static Result<std::unique_ptr<SpanExporter>> start(SpanOptions options);
  ~SpanExporter();  // sends what waits, for at most one timeout

  const SpanOptions& options() const;
  // From any thread; returns at once. Spans of one request are taken or dropped together.
  void push(std::vector<Span> spans);
  void flush(Duration most);  // until everything pushed before was sent or given up

  struct Stats {
    std::uint64_t exported = 0, dropped = 0, failed_exports = 0;  // dropped: spans; for want of room or because no collector took them
  };
  Stats stats() const;

 private:
  class Impl;
  explicit SpanExporter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::telemetry
