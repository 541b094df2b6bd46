// SPDX-License-Identifier: Apache-2.0
// OTLP's JSON mapping: ids in hex, 64-bit integers as text, enumerations as numbers.
#include <fmt/core.h>

#include "telemetry/json_line.h"
#include "telemetry/spans.h"

namespace weir::telemetry {
namespace {

// Whatever is in `items`, each written by `write`, as an array.
template <class Items, class Write>
void append_array(std::string& out, const Items& items, Write&& write) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    write(item);
  }
  out += ']';
}

struct AppendValue {
  std::string& out;

  void operator()(const std::string& value) const {
    JsonLine line(out);
    line.text("stringValue", value);
    line.end();
  }
  void operator()(std::int64_t value) const {
    JsonLine line(out);
    line.text("intValue", std::to_string(value));
    line.end();
  }
  void operator()(double value) const {
    JsonLine line(out);
    line.number("doubleValue", value, 9);
    line.end();
  }
  void operator()(bool value) const {
    JsonLine line(out);
    line.truth("boolValue", value);
    line.end();
  }
  void operator()(const std::vector<std::string>& values) const {
    JsonLine line(out);
    JsonLine array(line.raw("arrayValue"));
    append_array(array.raw("values"), values, *this);
    array.end();
    line.end();
  }
};

void append_attributes(std::string& out, const Attributes& attributes) {
  append_array(out, attributes, [&](const auto& attribute) {
    JsonLine line(out);
    line.text("key", attribute.first);
    std::visit(AppendValue{line.raw("value")}, attribute.second);
    line.end();
  });
}

void append_event(std::string& out, const SpanEvent& event) {
  JsonLine line(out);
  line.text("timeUnixNano", std::to_string(event.unix_ns));
  line.text("name", event.name);
  if (!event.attributes.empty()) append_attributes(line.raw("attributes"), event.attributes);
  line.end();
}

void append_span(std::string& out, const Span& span) {
  JsonLine line(out);
  line.text("traceId", span.trace_id);
  line.text("spanId", span.span_id);
  if (!span.parent_id.empty()) line.text("parentSpanId", span.parent_id);
  line.text("name", span.name);
  line.number("kind", static_cast<std::int64_t>(span.kind));
  line.text("startTimeUnixNano", std::to_string(span.start_ns));
  line.text("endTimeUnixNano", std::to_string(span.end_ns));
  append_attributes(line.raw("attributes"), span.attributes);
  if (!span.events.empty()) append_array(line.raw("events"), span.events, [&](const SpanEvent& event) { append_event(out, event); });
  if (span.failed) {
    JsonLine status(line.raw("status"));
    status.number("code", std::int64_t{2});
    if (!span.failure.empty()) status.text("message", span.failure);
    status.end();
  }
  line.end();
}

}  // namespace

std::string otlp_json(const std::vector<Span>& spans, const SpanOptions& options) {
  const Attributes resource = {{"service.name", options.service_name}, {"service.instance.id", options.service_instance}};
  std::string out;
  out.reserve(1024 + spans.size() * 1024);
  JsonLine all(out);
  all.raw("resourceSpans") += '[';
  JsonLine of_resource(out);
  JsonLine resource_line(of_resource.raw("resource"));
  append_attributes(resource_line.raw("attributes"), resource);
  resource_line.end();
  of_resource.raw("scopeSpans") += '[';
  JsonLine of_scope(out);
  JsonLine scope(of_scope.raw("scope"));
  scope.text("name", "weir");
  scope.end();
  append_array(of_scope.raw("spans"), spans, [&](const Span& span) { append_span(out, span); });
  of_scope.end();
  out += ']';
  of_resource.end();
  out += ']';
  all.end();
  return out;
}

}  // namespace weir::telemetry
