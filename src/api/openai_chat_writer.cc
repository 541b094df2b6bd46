// SPDX-License-Identifier: Apache-2.0
// Chat completions on their way out. In a stream every kind of content is an event of its own: the role, reasoning, content, each part of
// a call, the finish reason, the usage. Logprobs and ids of tokens that gave no text yet go with the next event of their choice.
#include <algorithm>
#include <utility>

#include "api/fields.h"
#include "api/openai_answer.h"
#include "api/openai_chat.h"

namespace weir::api {
namespace {

struct Call {
  std::string id, name, arguments;
};

struct Choice {
  bool begun = false;  // the role has been sent
  std::string content, reasoning;
  std::vector<Call> calls;
  JsonText logprobs;  // entries of tokens, not sent yet or of the whole document
  bool has_logprobs = false;
  std::vector<TokenId> ids;
  std::optional<ChoiceEnd> end;
};

class ChatWriter final : public ResponseWriter {
 public:
  explicit ChatWriter(const GenerationRequest& request)
      : stream_(request.stream),
        stream_usage_(request.stream_usage),
        continuous_usage_(request.continuous_usage),
        timings_(request.timings),
        ids_(request.return_token_ids),
        as_ids_(request.tokens_as_ids),
        top_n_(request.options.sampling.logprobs),
        prompt_top_n_(request.prompt_logprobs_shown),
        stop_tokens_(request.options.sampling.stop_tokens) {}

  void begin(const AnswerContext& context, const Sink&) override {
    head_ = answer_head(context, "chatcmpl-", stream_ ? "chat.completion.chunk" : "chat.completion");
    if (!context.prompts.empty()) prompt_ = context.prompts[0].tokens;
    tokens_ = TokenWriter(context.tokenizer, as_ids_);
    choices_.resize(static_cast<std::size_t>(std::max(context.choices_per_prompt, 1)));
  }

  void add(const ChoiceDelta& delta, const Sink& sink) override {
    Choice& choice = choice_at(delta.choice);
    take_tokens(choice, delta);
    if (stream_) {
      send(choice, delta, sink);
    } else {
      keep(choice, delta);
    }
  }

  void end(const Usage& usage, const Timings& timings, const Sink& sink) override {
    usage_ = usage;
    times_ = timings;
    if (!stream_) return;
    if (stream_usage_ || timings_) {
      JsonText out = head_;
      out.key("choices").open_array().close_array();
      write_tail(out);
      sink(out.close_object().str(), {});
    }
    sink("[DONE]", {});
  }

  std::string document() override {
    JsonText out = head_;
    out.key("choices").open_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) write_choice(out, static_cast<std::int32_t>(i));
    out.close_array();
    if (prompt_top_n_ >= 0) {
      out.key("prompt_logprobs");
      write_prompt_logprobs(out, tokens_, prompt_logprobs_, prompt_top_n_);
    }
    if (ids_) out.key("prompt_token_ids").ids(prompt_);
    out.key("usage");
    write_usage(out, usage_);
    if (timings_) {
      out.key("timings");
      write_timings(out, times_);
    }
    return out.close_object().take();
  }

  std::string error_document(const ApiError& error) const override { return boost::json::serialize(openai_error(error)); }

  void error_event(const ApiError& error, const Sink& sink) override {
    sink(boost::json::serialize(openai_error(error)), {});
    sink("[DONE]", {});
  }

 private:
  Choice& choice_at(std::int32_t index) {
    const auto at = static_cast<std::size_t>(std::max(index, 0));
    if (at >= choices_.size()) choices_.resize(at + 1);
    return choices_[at];
  }

  // The token that ended the answer is no part of it, so the entries' bytes are the content.
  bool is_end(TokenId id) const { return std::ranges::find(stop_tokens_, id) != stop_tokens_.end() || tokens_.ends_generation(id); }

  void take_tokens(Choice& choice, const ChoiceDelta& delta) {
    generated_ += static_cast<std::int64_t>(delta.tokens.size());
    if (ids_) choice.ids.insert(choice.ids.end(), delta.tokens.begin(), delta.tokens.end());
    if (top_n_ >= 0) {
      std::span<const sampling::TokenLogprobs> entries = delta.logprobs;
      if (delta.end && !entries.empty() && is_end(entries.back().token.id)) entries = entries.first(entries.size() - 1);
      for (const auto& entry : entries) tokens_.chat_entry(choice.logprobs, entry, top_n_);
      choice.has_logprobs |= !entries.empty();
    }
    prompt_logprobs_.insert(prompt_logprobs_.end(), delta.prompt_logprobs.begin(), delta.prompt_logprobs.end());
  }

  // --- a stream ---

  void send(Choice& choice, const ChoiceDelta& delta, const Sink& sink) {
    const std::int32_t index = delta.choice;
    const bool says = !delta.parsed.empty() || !delta.tokens.empty() || delta.end;
    if (says && !std::exchange(choice.begun, true)) send_role(index, sink);
    if (!delta.parsed.reasoning.empty()) {
      JsonText text;
      text.open_object().member("reasoning_content", delta.parsed.reasoning).close_object();
      send_chunk(choice, index, text.str(), nullptr, sink);
    }
    if (!delta.parsed.content.empty()) {
      JsonText text;
      text.open_object().member("content", delta.parsed.content).close_object();
      send_chunk(choice, index, text.str(), nullptr, sink);
    }
    for (const ToolCallDelta& call : delta.parsed.tool_calls) send_call(choice, index, call, sink);
    if (!delta.end) return;
    if (delta.end->ending == Ending::kFailed && delta.end->error) sink(boost::json::serialize(openai_error(*delta.end->error)), {});
    send_chunk(choice, index, "{}", &*delta.end, sink);
  }

  void send_role(std::int32_t index, const Sink& sink) {
    JsonText out = head_;
    out.key("choices").open_array().open_object().member("index", index);
    out.key("delta").open_object().member("role", "assistant").member("content", "").close_object();
    out.key("logprobs").null().key("finish_reason").null().close_object().close_array();
    if (ids_) out.key("prompt_token_ids").ids(prompt_);
    write_running_usage(out);
    sink(out.close_object().str(), {});
  }

  void send_call(Choice& choice, std::int32_t index, const ToolCallDelta& call, const Sink& sink) {
    JsonText out;
    out.open_object().key("tool_calls").open_array().open_object().member("index", call.index);
    if (!call.id.empty()) out.member("id", call.id).member("type", "function");
    out.key("function").open_object();
    if (!call.name.empty()) out.member("name", call.name);
    out.member("arguments", call.arguments);
    out.close_object().close_object().close_array().close_object();
    send_chunk(choice, index, out.str(), nullptr, sink);
  }

  void send_chunk(Choice& choice, std::int32_t index, std::string_view delta, const ChoiceEnd* end, const Sink& sink) {
    JsonText out = head_;
    out.key("choices").open_array().open_object().member("index", index);
    out.key("delta").raw(delta);
    write_logprobs(out, choice);
    write_finish(out, end);
    if (ids_) out.key("token_ids").ids(std::exchange(choice.ids, {}));
    out.close_object().close_array();
    write_running_usage(out);
    sink(out.close_object().str(), {});
  }

  // What was gathered since the last event, or in all.
  void write_logprobs(JsonText& out, Choice& choice) const {
    out.key("logprobs");
    if (!std::exchange(choice.has_logprobs, false)) {
      out.null();
      return;
    }
    out.open_object().key("content").open_array().raw(std::exchange(choice.logprobs, {}).take()).close_array();
    out.key("refusal").null().close_object();
  }

  static void write_finish(JsonText& out, const ChoiceEnd* end) {
    out.key("finish_reason");
    if (!end) {
      out.null();
      return;
    }
    out.text(finish_reason(end->ending));
    out.key("stop_reason");
    end->stop_text.empty() ? out.null() : out.text(end->stop_text);
  }

  void write_running_usage(JsonText& out) const {
    if (!stream_usage_) return;
    out.key("usage");
    if (!continuous_usage_) {
      out.null();
      return;
    }
    write_usage(out, {.prompt_tokens = static_cast<std::int64_t>(prompt_.size()), .completion_tokens = generated_});
  }

  void write_tail(JsonText& out) const {
    if (stream_usage_) {
      out.key("usage");
      write_usage(out, usage_);
    }
    if (timings_) {
      out.key("timings");
      write_timings(out, times_);
    }
  }

  // --- a document ---

  static void keep(Choice& choice, const ChoiceDelta& delta) {
    choice.content += delta.parsed.content;
    choice.reasoning += delta.parsed.reasoning;
    for (const ToolCallDelta& call : delta.parsed.tool_calls) {
      const auto at = static_cast<std::size_t>(std::max(call.index, 0));
      if (at >= choice.calls.size()) choice.calls.resize(at + 1);
      if (!call.id.empty()) choice.calls[at].id = call.id;
      choice.calls[at].name += call.name;
      choice.calls[at].arguments += call.arguments;
    }
    if (delta.end) choice.end = delta.end;
  }

  void write_choice(JsonText& out, std::int32_t index) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    out.open_object().member("index", index);
    out.key("message");
    write_message(out, choice);
    write_logprobs(out, choice);
    static const ChoiceEnd kNoEnd{.ending = Ending::kCancelled};
    write_finish(out, choice.end ? &*choice.end : &kNoEnd);
    if (ids_) out.key("token_ids").ids(choice.ids);
    out.close_object();
  }

  static void write_message(JsonText& out, const Choice& choice) {
    out.open_object().member("role", "assistant").key("content");
    choice.content.empty() && !choice.calls.empty() ? out.null() : out.text(choice.content);
    if (!choice.reasoning.empty()) out.member("reasoning_content", choice.reasoning);
    out.key("refusal").null();
    if (!choice.calls.empty()) {
      out.key("tool_calls").open_array();
      for (const Call& call : choice.calls) {
        out.open_object().member("id", call.id).member("type", "function").key("function").open_object();
        out.member("name", call.name).member("arguments", call.arguments).close_object().close_object();
      }
      out.close_array();
    }
    out.close_object();
  }

  bool stream_, stream_usage_, continuous_usage_, timings_, ids_, as_ids_;
  std::int32_t top_n_, prompt_top_n_;
  JsonText head_;
  TokenWriter tokens_{nullptr, false};
  std::vector<TokenId> prompt_;
  std::vector<Choice> choices_;
  std::vector<TokenId> stop_tokens_;
  std::vector<sampling::TokenLogprobs> prompt_logprobs_;
  std::int64_t generated_ = 0;
  Usage usage_;
  Timings times_;
};

}  // namespace

std::unique_ptr<ResponseWriter> make_chat_writer(const GenerationRequest& request) { return std::make_unique<ChatWriter>(request); }

json::Object chat_response_schema() {
  json::Object result = schema(R"({"type": "object", "required": ["id", "object", "created", "model", "choices", "usage"], "properties": {
    "id": {"type": "string"}, "object": {"enum": ["chat.completion"]}, "created": {"type": "integer"}, "model": {"type": "string"},
    "system_fingerprint": {"type": "string"},
    "choices": {"type": "array", "items": {"type": "object", "required": ["index", "message", "finish_reason"], "properties": {
      "index": {"type": "integer", "minimum": 0},
      "message": {"type": "object", "required": ["role", "content"], "properties": {
        "role": {"enum": ["assistant"]}, "content": {"type": ["string", "null"]}, "reasoning_content": {"type": "string"},
        "refusal": {"type": ["string", "null"]},
        "tool_calls": {"type": "array", "items": {"type": "object", "required": ["id", "type", "function"], "properties": {
          "id": {"type": "string"}, "type": {"enum": ["function"]},
          "function": {"type": "object", "required": ["name", "arguments"], "properties": {
            "name": {"type": "string"}, "arguments": {"type": "string"}}}}}}}},
      "logprobs": {"type": ["object", "null"], "required": ["content"], "properties": {"content": {"type": ["array", "null"],
        "items": {"type": "object", "required": ["token", "logprob", "bytes", "top_logprobs"], "properties": {
          "token": {"type": "string"}, "logprob": {"type": "number"}, "bytes": {"type": "array", "items": {"type": "integer"}},
          "top_logprobs": {"type": "array", "items": {"type": "object", "required": ["token", "logprob", "bytes"]}}}}},
        "refusal": {"type": "null"}}},
      "finish_reason": {"enum": ["stop", "length", "tool_calls", "abort", "error"]}, "stop_reason": {"type": ["string", "null"]},
      "token_ids": {"type": "array", "items": {"type": "integer"}}}}},
    "prompt_token_ids": {"type": "array", "items": {"type": "integer"}}}})")
                            .as_object();
  json::Object& properties = result["properties"].as_object();
  properties["usage"] = usage_schema();
  properties["timings"] = timings_schema();
  properties["prompt_logprobs"] = prompt_logprobs_schema();
  return result;
}

}  // namespace weir::api
