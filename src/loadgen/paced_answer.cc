// SPDX-License-Identifier: Apache-2.0
#include "loadgen/paced_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "http/message.h"

namespace weir::loadgen {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 20;
constexpr std::int64_t kDefaultTokens = 16;

std::int64_t count_words(std::string_view text) {
  std::int64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

// Texts nested in messages, parts and lists; ids count one each. Depth is the parser's limit.
std::int64_t count_prompt(const json::Value& value) {
  if (const auto* text = value.if_string()) return count_words({text->data(), text->size()});
  if (value.is_number()) return 1;
  std::int64_t count = 0;
  if (const auto* array = value.if_array())
    for (const json::Value& item : *array) count += count_prompt(item);
  if (const auto* object = value.if_object())
    for (const char* key : {"content", "text"})
      if (const json::Value* member = json::find(*object, key)) count += count_prompt(*member);
  return count;
}

}  // namespace

Result<NullRequest> parse_null_request(std::string_view body, bool chat) {
  WEIR_ASSIGN(const json::Value value, json::parse(body, "request"));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "request"));
  NullRequest request{.chat = chat};
  WEIR_ASSIGN(request.stream, json::get_bool_or(*object, "stream", false));
  WEIR_ASSIGN(request.max_tokens, json::get_int_or(*object, "max_tokens", 0));
  if (request.max_tokens == 0) {
    WEIR_ASSIGN(request.max_tokens, json::get_int_or(*object, "max_completion_tokens", 0));
  }
  if (request.max_tokens < 0 || request.max_tokens > kMaxTokens)
    return fail(ErrorCode::kInvalidArgument, "max_tokens is out of range: 1 to {}", kMaxTokens);
  WEIR_ASSIGN(request.timings, json::get_bool_or(*object, "timings", false));
  if (const json::Value* options = json::find(*object, "stream_options"); options && options->is_object()) {
    WEIR_ASSIGN(request.include_usage, json::get_bool_or(options->get_object(), "include_usage", false));
  }
  const char* key = chat ? "messages" : "prompt";
  const json::Value* prompt = json::find(*object, key);
  if (!prompt) return fail(ErrorCode::kInvalidArgument, "'{}' is missing", key);
  request.prompt_tokens = count_prompt(*prompt);
  return request;
}

Result<NullServerOptions::Stall> parse_stall(std::string_view text) {
  const std::size_t plus = text.find('+');
  if (plus == std::string_view::npos) return fail(ErrorCode::kInvalidArgument, "'{}': a stall is written as AT+LENGTH, say 2s+500ms", text);
  WEIR_ASSIGN(const double at, parse_seconds(text.substr(0, plus)));
  WEIR_ASSIGN(const double length, parse_seconds(text.substr(plus + 1)));
  return NullServerOptions::Stall{to_duration(at), to_duration(length)};
}

TimePoint advance(TimePoint from, Duration work, TimePoint origin, const std::vector<NullServerOptions::Stall>& stalls) {
  for (const auto& stall : stalls) {  // ascending
    const TimePoint start = origin + stall.at, end = start + stall.length;
    if (end <= from) continue;
    if (start > from) {
      if (from + work < start) break;
      work -= start - from;
    }
    from = end;
  }
  return from + work;
}

PacedAnswer::PacedAnswer(const NullServerOptions& options, const NullRequest& request, std::uint64_t number)
    : options_(&options), request_(request), number_(number), random_(options.seed, kServerStream + (number << 8)) {
  ttft_s_ = options.ttft.draw(random_);
  tokens_ = std::llround(std::min(options.tokens.draw(random_), static_cast<double>(kMaxTokens)));
  if (tokens_ <= 0) tokens_ = request.max_tokens > 0 ? request.max_tokens : kDefaultTokens;
}

void PacedAnswer::begin(TimePoint now, TimePoint arrived, TimePoint origin) {
  begun_ = now;
  arrived_ = arrived;
  origin_ = origin;
  due_ = advance(now, to_duration(ttft_s_), origin, options_->stalls);
  if (options_->tokens_per_event > 1) step(std::min<std::int64_t>(options_->tokens_per_event, tokens_) - 1);
  first_ = due_;
}

void PacedAnswer::step(std::int64_t tokens) {
  for (std::int64_t i = 0; i < tokens; ++i) due_ = advance(due_, to_duration(options_->itl.draw(random_)), origin_, options_->stalls);
}

void PacedAnswer::skip_to_end() {
  const std::int64_t first = std::min<std::int64_t>(options_->tokens_per_event, tokens_);
  step(tokens_ - first);
  sent_ = tokens_;
}

std::string PacedAnswer::chunk(std::string_view json) const { return fmt::format("{:x}\r\ndata: {}\n\n\r\n", json.size() + 8, json); }

std::string PacedAnswer::take_event() {
  const std::int64_t count = std::min<std::int64_t>(options_->tokens_per_event, tokens_ - sent_);
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) text += " tok";
  const bool first = sent_ == 0;
  sent_ += count;
  const std::string_view finish = over() ? "\"length\"" : "null";
  if (!over()) step(std::min<std::int64_t>(options_->tokens_per_event, tokens_ - sent_));
  if (!request_.chat)
    return chunk(fmt::format(
        R"({{"id":"cmpl-{}","object":"text_completion","created":0,"model":"{}","choices":[{{"index":0,"text":"{}","finish_reason":{}}}]}})",
        number_, options_->model, text, finish));
  return chunk(fmt::format(
      R"({{"id":"chatcmpl-{}","object":"chat.completion.chunk","created":0,"model":"{}","choices":[{{"index":0,"delta":{{{}"content":"{}"}},"finish_reason":{}}}]}})",
      number_, options_->model, first ? R"("role":"assistant",)" : "", text, finish));
}

std::string PacedAnswer::usage() const {
  std::string out = fmt::format(
      R"("usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
      request_.prompt_tokens, tokens_, request_.prompt_tokens + tokens_, options_->cached_tokens);
  if (request_.timings)
    out += fmt::format(R"(,"timings":{{"queue_ms":{:.6f},"prefill_ms":{:.6f},"decode_ms":{:.6f}}})", to_seconds(begun_ - arrived_) * 1e3,
                       to_seconds(first_ - begun_) * 1e3, to_seconds(due_ - first_) * 1e3);
  return out;
}

std::string PacedAnswer::closing() const {
  std::string out;
  if (request_.include_usage)
    out +=
        chunk(fmt::format(R"({{"id":"{}-{}","object":"{}","created":0,"model":"{}","choices":[],{}}})", request_.chat ? "chatcmpl" : "cmpl",
                          number_, request_.chat ? "chat.completion.chunk" : "text_completion", options_->model, usage()));
  return out + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
}

std::string PacedAnswer::stream_head() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n";
}

std::string PacedAnswer::whole_answer() const {
  std::string text;
  for (std::int64_t i = 0; i < tokens_; ++i) text += " tok";
  const std::string choice =
      request_.chat ? fmt::format(R"("message":{{"role":"assistant","content":"{}"}})", text) : fmt::format(R"("text":"{}")", text);
  const std::string body =
      fmt::format(R"({{"id":"{}-{}","object":"{}","created":0,"model":"{}","choices":[{{"index":0,{},"finish_reason":"length"}}],{}}})",
                  request_.chat ? "chatcmpl" : "cmpl", number_, request_.chat ? "chat.completion" : "text_completion", options_->model,
                  choice, usage());
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
}

std::string PacedAnswer::error_answer(int status, const std::string& message, bool keep) {
  const std::string body =
      fmt::format(R"({{"error":{{"message":{},"type":"{}","code":{}}}}})", boost::json::serialize(json::Value(message)),
                  status < 500 ? "invalid_request_error" : "server_error", status);
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}", status,
                     http::reason_phrase(status), body.size(), keep ? "" : "Connection: close\r\n", body);
}

}  // namespace weir::loadgen
