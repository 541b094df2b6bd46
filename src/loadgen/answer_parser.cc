// SPDX-License-Identifier: Apache-2.0
#include "loadgen/answer_parser.h"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <cmath>

#include "base/json.h"

namespace weir::loadgen {
namespace {

// Numbers of any kind that are finite and not negative, else -1.
double number(const json::Object& object, const char* key) {
  const json::Value* value = object.if_contains(key);
  if (!value || !value->is_number()) return -1;
  const double d = value->to_number<double>();
  return std::isfinite(d) && d >= 0 && d < 1e15 ? d : -1;
}

double milliseconds(const json::Object& object, const char* key, const char* other) {
  const double first = number(object, key), value = first >= 0 ? first : number(object, other);
  return value >= 0 ? value * 1e-3 : -1;
}

void take_usage(const json::Object& usage, AnswerPiece& piece) {
  piece.prompt_tokens = static_cast<std::int64_t>(number(usage, "prompt_tokens"));
  piece.completion_tokens = static_cast<std::int64_t>(number(usage, "completion_tokens"));
  if (const json::Value* details = usage.if_contains("prompt_tokens_details"); details && details->is_object())
    piece.cached_tokens = static_cast<std::int64_t>(number(details->get_object(), "cached_tokens"));
}

// Weir's names, and those of llama.cpp's server.
void take_timings(const json::Object& timings, AnswerPiece& piece) {
  piece.queue_s = milliseconds(timings, "queue_ms", "queue_ms");
  piece.prefill_s = milliseconds(timings, "prefill_ms", "prompt_ms");
  piece.decode_s = milliseconds(timings, "decode_ms", "predicted_ms");
}

void take_text(const json::Object& object, const char* key, bool want_text, AnswerPiece& piece) {
  const json::Value* value = object.if_contains(key);
  if (!value || !value->is_string() || value->get_string().empty()) return;
  piece.content = true;
  if (want_text) piece.text.append(value->get_string().data(), value->get_string().size());
}

void take_choice(const json::Object& choice, bool want_text, AnswerPiece& piece) {
  take_text(choice, "text", want_text, piece);
  for (const char* key : {"delta", "message"}) {
    const json::Value* part = choice.if_contains(key);
    if (!part || !part->is_object()) continue;
    take_text(part->get_object(), "content", want_text, piece);
    for (const char* reasoning : {"reasoning_content", "reasoning"}) take_text(part->get_object(), reasoning, false, piece);
    if (const json::Value* calls = part->get_object().if_contains("tool_calls"); calls && calls->is_array() && !calls->get_array().empty())
      piece.content = true;
  }
}

void take_error(const json::Value& error, AnswerPiece& piece) {
  piece.error = true;
  if (error.is_string()) piece.text.assign(error.get_string().data(), error.get_string().size());
  if (!error.is_object()) return;
  const json::Value* message = error.get_object().if_contains("message");
  if (message && message->is_string()) piece.text.assign(message->get_string().data(), message->get_string().size());
}

AnswerPiece take_object(const json::Object& object, bool want_text) {
  AnswerPiece piece;
  piece.valid = true;
  if (const json::Value* error = object.if_contains("error"); error && !error->is_null()) take_error(*error, piece);
  if (const json::Value* choices = object.if_contains("choices"); choices && choices->is_array())
    for (const json::Value& choice : choices->get_array())
      if (choice.is_object()) take_choice(choice.get_object(), want_text, piece);
  if (const json::Value* usage = object.if_contains("usage"); usage && usage->is_object()) take_usage(usage->get_object(), piece);
  if (const json::Value* timings = object.if_contains("timings"); timings && timings->is_object())
    take_timings(timings->get_object(), piece);
  return piece;
}

}  // namespace

AnswerPiece parse_body(std::string_view body, bool want_text) {
  // A tree out of one small buffer that is dropped at once: no allocation for the usual event.
  unsigned char tree[4096], scratch[1024];
  boost::json::monotonic_resource resource(tree, sizeof tree);
  boost::json::parse_options options;
  options.max_depth = 32;
  options.allow_invalid_utf8 = true;
  boost::json::parser parser({}, options, scratch);
  parser.reset(&resource);
  boost::json::error_code error;
  parser.write(body.data(), body.size(), error);
  if (error) return {};
  const json::Value value = parser.release();
  if (!value.is_object()) return {};
  return take_object(value.get_object(), want_text);
}

AnswerPiece parse_event(std::string_view data, bool want_text) {
  if (data == "[DONE]") {
    AnswerPiece piece;
    piece.valid = piece.done = true;
    return piece;
  }
  return parse_body(data, want_text);
}

}  // namespace weir::loadgen
