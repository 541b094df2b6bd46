// SPDX-License-Identifier: Apache-2.0
// One line of the access log.
#include <fmt/core.h>

#include <ctime>

#include "base/log.h"
#include "telemetry/access_log.h"
#include "telemetry/json_line.h"

namespace weir::telemetry {
namespace {

std::string utc(std::int64_t unix_ms) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, unix_ms % 1000);
}

void text_if(JsonLine& line, std::string_view name, std::string_view value) {
  if (!value.empty()) line.text(name, value);
}
void count_if(JsonLine& line, std::string_view name, std::int64_t value) {
  if (value >= 0) line.number(name, value);
}
void time_if(JsonLine& line, std::string_view name, double ms) {
  if (ms >= 0) line.number(name, ms, 3);
}

void add_http(JsonLine& line, const AccessEntry& e) {
  text_if(line, "id", e.id);
  line.number("http_id", static_cast<std::int64_t>(e.http_id));
  text_if(line, "peer", e.peer);
  text_if(line, "method", e.method);
  text_if(line, "route", e.route);
  line.number("status", std::int64_t{e.status});
  line.number("bytes_in", static_cast<std::int64_t>(e.bytes_in));
  line.number("bytes_out", static_cast<std::int64_t>(e.bytes_out));
  line.number("total_ms", e.total_ms, 3);
  time_if(line, "first_byte_ms", e.first_byte_ms);
  if (e.streamed) line.truth("streamed", true);
  text_if(line, "gone", e.gone);
  text_if(line, "user_agent", e.user_agent);
  text_if(line, "trace_id", e.trace_id);
}

void add_model(JsonLine& line, const AccessEntry& e) {
  text_if(line, "key", e.caller);
  text_if(line, "tenant", e.tenant);
  text_if(line, "model", e.model);
  text_if(line, "adapter", e.adapter);
  text_if(line, "error", e.error_code);
  count_if(line, "prompt_tokens", e.prompt_tokens);
  count_if(line, "cached_tokens", e.cached_tokens);
  count_if(line, "generated_tokens", e.generated_tokens);
  time_if(line, "queue_ms", e.queue_ms);
  time_if(line, "prefill_ms", e.prefill_ms);
  time_if(line, "decode_ms", e.decode_ms);
  time_if(line, "ttft_ms", e.ttft_ms);
  if (e.finish_reasons.empty()) return;
  std::string& out = line.raw("finish_reasons");
  char before = '[';
  for (const std::string& reason : e.finish_reasons) {
    out += before;
    append_json_string(out, reason);
    before = ',';
  }
  out += ']';
}

std::string json_line(const AccessEntry& e, const AccessLogOptions& options, std::int64_t unix_ms) {
  std::string out;
  out.reserve(512);
  JsonLine line(out);
  line.text("time", utc(unix_ms));
  add_http(line, e);
  add_model(line, e);
  if (options.prompts) {
    text_if(line, "prompt", cut_text(e.prompt, options.max_text));
    text_if(line, "answer", cut_text(e.answer, options.max_text));
  }
  line.end();
  return out;
}

std::string text_line(const AccessEntry& e, const AccessLogOptions& options, std::int64_t unix_ms) {
  const auto word = [](std::string_view text) { return text.empty() ? std::string("-") : log::printable(text); };
  std::string out = fmt::format("{} {} {} {} {} {}B {:.1f}ms", utc(unix_ms), word(e.peer), word(e.method), word(e.route), e.status,
                                e.bytes_out, e.total_ms);
  const auto add_text = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += fmt::format(" {}=", name);
    if (value.find_first_of(" =\"\\") == std::string_view::npos)
      out += log::printable(value);
    else
      append_json_string(out, value);  // in quotes: a value cannot pass for another field
  };
  const auto add_count = [&](std::string_view name, std::int64_t value) {
    if (value >= 0) out += fmt::format(" {}={}", name, value);
  };
  add_text("id", e.id);
  add_text("gone", e.gone);
  add_text("key", e.caller);
  add_text("model", e.model);
  add_text("error", e.error_code);
  add_count("prompt_tokens", e.prompt_tokens);
  add_count("cached_tokens", e.cached_tokens);
  add_count("generated_tokens", e.generated_tokens);
  if (e.ttft_ms >= 0) out += fmt::format(" ttft={:.1f}ms", e.ttft_ms);
  for (const std::string& reason : e.finish_reasons) add_text("finish", reason);
  if (options.prompts) {
    add_text("prompt", cut_text(e.prompt, options.max_text));
    add_text("answer", cut_text(e.answer, options.max_text));
  }
  return out;
}

}  // namespace

std::string access_line(const AccessEntry& entry, const AccessLogOptions& options, std::int64_t unix_ms) {
  return options.format == LogFormat::kJson ? json_line(entry, options, unix_ms) : text_line(entry, options, unix_ms);
}

}  // namespace weir::telemetry
