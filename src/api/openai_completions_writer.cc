// SPDX-License-Identifier: Apache-2.0
// Text completions on their way out. In a stream without logprobs each piece of text and the finish reason are events of their own; with
// them each token is one, so that no client has to take lists apart, and the last carries the finish reason.
#include <algorithm>
#include <utility>

#include "api/fields.h"
#include "api/legacy_logprobs.h"
#include "api/openai_answer.h"
#include "api/openai_completions.h"

namespace weir::api {
namespace {

using sampling::TokenLogprobs;

struct Choice {
  std::string text;
  LegacyLogprobs logprobs;
  bool echoed = false;
  std::vector<TokenId> ids;
  std::optional<ChoiceEnd> end;
};

class CompletionWriter final : public ResponseWriter {
 public:
  explicit CompletionWriter(const GenerationRequest& request)
      : stream_(request.stream),
        stream_usage_(request.stream_usage),
        continuous_usage_(request.continuous_usage),
        timings_(request.timings),
        ids_(request.return_token_ids),
        as_ids_(request.tokens_as_ids),
        echo_(request.echo),
        prompt_only_(request.options.prompt_only),
        show_special_(request.show_special),
        top_n_(request.options.sampling.logprobs),
        prompt_top_n_(request.prompt_logprobs_shown) {}

  void begin(const AnswerContext& context, const Sink& sink) override {
    head_ = answer_head(context, "cmpl-", "text_completion");
    tokens_ = TokenWriter(context.tokenizer, as_ids_);
    prompts_ = context.prompts;
    per_prompt_ = static_cast<std::size_t>(std::max(context.choices_per_prompt, 1));
    prompt_logprobs_.resize(prompts_.size());
    for (const auto& prompt : prompts_) prompt_tokens_ += static_cast<std::int64_t>(prompt.tokens.size());
    for (std::size_t i = 0; i < prompts_.size() * per_prompt_; ++i) choice_at(i);
    if (!stream_ || !echo_ || top_n_ >= 0) return;
    for (std::size_t i = 0; i < choices_.size(); ++i) send(i, prompt_of(i).text, nullptr, nullptr, sink);
  }

  void add(const ChoiceDelta& delta, const Sink& sink) override {
    const auto at = static_cast<std::size_t>(std::max(delta.choice, 0));
    Choice& choice = choice_at(at);
    generated_ += static_cast<std::int64_t>(delta.tokens.size());
    if (ids_) choice.ids.insert(choice.ids.end(), delta.tokens.begin(), delta.tokens.end());
    if (at / per_prompt_ < prompt_logprobs_.size()) {
      auto& entries = prompt_logprobs_[at / per_prompt_];
      entries.insert(entries.end(), delta.prompt_logprobs.begin(), delta.prompt_logprobs.end());
    }
    if (stream_) {
      top_n_ < 0 ? stream_text(at, delta, sink) : stream_tokens(at, delta, sink);
      return;
    }
    choice.text += delta.text;
    if (top_n_ >= 0)
      for (const TokenLogprobs& entry : delta.logprobs) choice.logprobs.add(tokens_, entry, top_n_, show_special_);
    if (delta.end) choice.end = delta.end;
  }

  void end(const Usage& usage, const Timings& timings, const Sink& sink) override {
    usage_ = usage;
    times_ = timings;
    if (!stream_) return;
    if (stream_usage_ || timings_) {
      JsonText out = head_;
      out.key("choices").open_array().close_array();
      write_tail(out, stream_usage_);
      sink(out.close_object().str(), {});
    }
    sink("[DONE]", {});
  }

  std::string document() override {
    JsonText out = head_;
    out.key("choices").open_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) write_choice(out, i);
    out.close_array();
    write_tail(out, true);
    return out.close_object().take();
  }

  std::string error_document(const ApiError& error) const override { return boost::json::serialize(openai_error(error)); }

  void error_event(const ApiError& error, const Sink& sink) override {
    sink(boost::json::serialize(openai_error(error)), {});
    sink("[DONE]", {});
  }

 private:
  Choice& choice_at(std::size_t at) {
    while (choices_.size() <= at) {
      Choice choice;
      if (echo_) choice.logprobs.start_at(prompt_of(choices_.size()).text);
      choices_.push_back(std::move(choice));
    }
    return choices_[at];
  }

  const AnswerContext::Prompt& prompt_of(std::size_t choice) const {
    static const AnswerContext::Prompt kNone;
    return choice / per_prompt_ < prompts_.size() ? prompts_[choice / per_prompt_] : kNone;
  }

  // Of the prompt, as far as the engine has told them.
  LegacyLogprobs echo_logprobs(std::size_t choice) const {
    LegacyLogprobs lists;
    if (choice / per_prompt_ < prompts_.size())
      lists.add_prompt(tokens_, prompt_of(choice).tokens, prompt_of(choice).text, prompt_logprobs_[choice / per_prompt_], top_n_);
    return lists;
  }

  // --- a stream ---

  void stream_text(std::size_t at, const ChoiceDelta& delta, const Sink& sink) {
    if (!delta.text.empty() || (ids_ && !delta.tokens.empty())) send(at, delta.text, nullptr, nullptr, sink);
    if (!delta.end) return;
    send_failure(*delta.end, sink);
    send(at, {}, nullptr, &*delta.end, sink);
  }

  void stream_tokens(std::size_t at, const ChoiceDelta& delta, const Sink& sink) {
    // The prompt's logprobs are whole once its answer has a token or an end.
    if (echo_ && (!delta.tokens.empty() || delta.end) && !std::exchange(choices_[at].echoed, true)) {
      LegacyLogprobs lists = echo_logprobs(at);
      send(at, prompt_of(at).text, &lists, nullptr, sink);
    }
    const ChoiceEnd* end = delta.end ? &*delta.end : nullptr;
    if (end) send_failure(*end, sink);
    LegacyLogprobs& lists = choices_[at].logprobs;
    for (std::size_t i = 0; i < delta.logprobs.size(); ++i) {
      const bool last = i + 1 == delta.logprobs.size();
      lists.add(tokens_, delta.logprobs[i], top_n_, show_special_);
      send(at, last ? std::string_view(delta.text) : std::string_view(), &lists, last ? end : nullptr, sink);
    }
    if (delta.logprobs.empty() && (end || !delta.text.empty())) send(at, delta.text, &lists, end, sink);
  }

  static void send_failure(const ChoiceEnd& end, const Sink& sink) {
    if (end.ending == Ending::kFailed && end.error) sink(boost::json::serialize(openai_error(*end.error)), {});
  }

  void send(std::size_t at, std::string_view text, LegacyLogprobs* lists, const ChoiceEnd* end, const Sink& sink) {
    JsonText out = head_;
    out.key("choices").open_array().open_object();
    out.member("index", static_cast<std::int64_t>(at)).member("text", text).key("logprobs");
    lists ? lists->write(out) : void(out.null());
    write_finish(out, end);
    if (ids_) out.key("token_ids").ids(std::exchange(choices_[at].ids, {}));
    out.close_object().close_array();
    if (continuous_usage_) {
      out.key("usage");
      write_usage(out, {.prompt_tokens = prompt_tokens_, .completion_tokens = generated_});
    } else if (stream_usage_) {
      out.key("usage").null();
    }
    sink(out.close_object().str(), {});
  }

  void write_finish(JsonText& out, const ChoiceEnd* end) const {
    out.key("finish_reason");
    if (!end) {
      out.null();
      return;
    }
    out.text(prompt_only_ && end->ending == Ending::kStop ? finish_reason(Ending::kLength) : finish_reason(end->ending));
    out.key("stop_reason");
    end->stop_text.empty() ? out.null() : out.text(end->stop_text);
  }

  // --- a document ---

  void write_choice(JsonText& out, std::size_t at) {
    Choice& choice = choices_[at];
    out.open_object().member("index", static_cast<std::int64_t>(at));
    out.member("text", echo_ ? prompt_of(at).text + choice.text : choice.text).key("logprobs");
    if (top_n_ < 0) {
      out.null();
    } else {
      LegacyLogprobs before;
      if (echo_) before = echo_logprobs(at);
      choice.logprobs.write(out, &before);
    }
    static const ChoiceEnd kNoEnd{.ending = Ending::kCancelled};
    write_finish(out, choice.end ? &*choice.end : &kNoEnd);
    if (prompt_top_n_ >= 0 && at / per_prompt_ < prompt_logprobs_.size()) {
      out.key("prompt_logprobs");
      write_prompt_logprobs(out, tokens_, prompt_logprobs_[at / per_prompt_], prompt_top_n_);
    }
    if (ids_) out.key("token_ids").ids(choice.ids).key("prompt_token_ids").ids(prompt_of(at).tokens);
    out.close_object();
  }

  void write_tail(JsonText& out, bool usage) const {
    if (usage) {
      out.key("usage");
      write_usage(out, usage_);
    }
    if (timings_) {
      out.key("timings");
      write_timings(out, times_);
    }
  }

  bool stream_, stream_usage_, continuous_usage_, timings_, ids_, as_ids_, echo_, prompt_only_, show_special_;
  std::int32_t top_n_, prompt_top_n_;
  std::size_t per_prompt_ = 1;
  std::int64_t prompt_tokens_ = 0, generated_ = 0;
  JsonText head_;
  TokenWriter tokens_{nullptr, false};
  std::vector<AnswerContext::Prompt> prompts_;
  std::vector<std::vector<TokenLogprobs>> prompt_logprobs_;  // of each prompt, from its second token on
  std::vector<Choice> choices_;
  Usage usage_;
  Timings times_;
};

}  // namespace

std::unique_ptr<ResponseWriter> make_completion_writer(const GenerationRequest& request) {
  return std::make_unique<CompletionWriter>(request);
}

json::Object completion_response_schema() {
  json::Object result = schema(R"({"type": "object", "required": ["id", "object", "created", "model", "choices", "usage"], "properties": {
    "id": {"type": "string"}, "object": {"enum": ["text_completion"]}, "created": {"type": "integer"}, "model": {"type": "string"},
    "system_fingerprint": {"type": "string"},
    "choices": {"type": "array", "items": {"type": "object", "required": ["index", "text", "finish_reason"], "properties": {
      "index": {"type": "integer", "minimum": 0}, "text": {"type": "string"},
      "logprobs": {"type": ["object", "null"], "required": ["tokens", "token_logprobs", "top_logprobs", "text_offset"], "properties": {
        "tokens": {"type": "array", "items": {"type": "string"}},
        "token_logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
        "top_logprobs": {"type": "array", "items": {"type": ["object", "null"], "additionalProperties": {"type": "number"}}},
        "text_offset": {"type": "array", "items": {"type": "integer", "minimum": 0}}}},
      "finish_reason": {"enum": ["stop", "length", "abort", "error"]}, "stop_reason": {"type": ["string", "null"]},
      "token_ids": {"type": "array", "items": {"type": "integer"}},
      "prompt_token_ids": {"type": "array", "items": {"type": "integer"}}}}}}})")
                            .as_object();
  json::Object& properties = result["properties"].as_object();
  properties["usage"] = usage_schema();
  properties["timings"] = timings_schema();
  properties["choices"].as_object()["items"].as_object()["properties"].as_object()["prompt_logprobs"] = prompt_logprobs_schema();
  return result;
}

}  // namespace weir::api
