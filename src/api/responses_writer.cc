// SPDX-License-Identifier: Apache-2.0
// Answers of /v1/responses. The answer is a list of items (reasoning, a message, calls), each begun, filled and ended by events; the same
// list, written at once, is the document.
#include <algorithm>
#include <cmath>
#include <utility>

#include "api/openai_answer.h"
#include "api/openai_responses.h"

namespace weir::api {
namespace {

struct OutputItem {
  enum class Kind { kReasoning, kMessage, kCall } kind;
  std::string id = {};
  std::string text = {};      // or the arguments of a call
  std::string logprobs = {};  // of a message: entries with commas between
  std::string call_id = {}, name = {};
  std::int32_t call = -1;  // its number within the answer
  bool incomplete = false;
};

std::string_view error_code(const ApiError& error) {
  if (error.status == 429) return "rate_limit_exceeded";
  return error.status >= 400 && error.status < 500 ? "invalid_prompt" : "server_error";
}

class ResponsesWriter final : public ResponseWriter {
 public:
  ResponsesWriter(const ResponsesRequest& request, ResponsesState state)
      : state_(std::move(state)),
        stream_(request.generation.stream),
        timings_wanted_(request.generation.timings),
        store_(request.store),
        summary_(request.summary),
        top_logprobs_(request.generation.options.sampling.logprobs),
        echo_(request.generation.echo_fields),
        input_(request.input),
        context_(request.context),
        tokens_(nullptr, false) {}

  void begin(const AnswerContext& context, const Sink& sink) override {
    id_ = "resp_" + context.id;
    suffix_ = context.id;
    model_ = context.model;
    created_ = context.created;
    for (const AnswerContext::Prompt& prompt : context.prompts) dropped_ += prompt.dropped_tokens;
    tokens_ = TokenWriter(context.tokenizer, false);
    if (!stream_) return;
    sink_ = &sink;
    lifecycle("response.created", "in_progress");
    lifecycle("response.in_progress", "in_progress");
  }

  void add(const ChoiceDelta& delta, const Sink& sink) override {
    sink_ = stream_ ? &sink : nullptr;
    if (top_logprobs_ >= 0)
      for (const auto& entry : delta.logprobs) keep_logprobs(entry);
    if (!delta.parsed.reasoning.empty()) {
      waiting_logprobs_.clear();  // only those of the text are shown
      grow(open(OutputItem::Kind::kReasoning), delta.parsed.reasoning);
    }
    if (!delta.parsed.content.empty()) grow(open(OutputItem::Kind::kMessage), delta.parsed.content);
    for (const ToolCallDelta& call : delta.parsed.tool_calls) {
      waiting_logprobs_.clear();
      add_call(call);
    }
    if (delta.end) finish_items(*delta.end);
  }

  void end(const Usage& usage, const Timings& timings, const Sink& sink) override {
    sink_ = stream_ ? &sink : nullptr;
    usage_ = usage;
    times_ = timings;
    ended_ = true;
    const std::string_view status = final_status();
    const bool keep = store_ && (status == "completed" || status == "incomplete");
    store_ = keep;  // what the document says
    document_ = response(status);
    if (keep && !save()) {
      store_ = false;
      document_ = response(status);
    }
    if (!stream_) return;
    const std::string type = status == "cancelled" ? "response.incomplete" : "response." + std::string(status);
    event(type, [&](JsonText& out) { out.key("response").raw(document_); });
  }

  std::string document() override { return document_; }

  std::string error_document(const ApiError& error) const override { return boost::json::serialize(openai_error(error)); }

  void error_event(const ApiError& error, const Sink& sink) override {
    sink_ = &sink;
    if (id_.empty()) {  // nothing began that could fail
      event("error", [&](JsonText& out) {
        out.key("code");
        error.code.empty() ? out.null() : out.text(error.code);
        out.member("message", error.message).key("param");
        error.param.empty() ? out.null() : out.text(error.param);
      });
      return;
    }
    end_item(true);
    error_ = error;
    lifecycle("response.failed", "failed");
  }

 private:
  using Kind = OutputItem::Kind;

  // ---- events

  template <class Fill>
  void event(std::string_view type, Fill fill) {
    if (!sink_) return;
    JsonText out;
    out.open_object().member("type", type).member("sequence_number", sequence_++);
    fill(out);
    out.close_object();
    (*sink_)(out.str(), type);
  }
  void lifecycle(std::string_view type, std::string_view status) {
    event(type, [&](JsonText& out) { out.key("response").raw(response(status)); });
  }
  // Of the open item, with where it stands.
  template <class Fill>
  void item_event(std::string_view type, Fill fill) {
    event(type, [&](JsonText& out) {
      out.member("item_id", items_.back().id).member("output_index", static_cast<std::int64_t>(items_.size()) - 1);
      fill(out);
    });
  }
  // … and of its one part.
  template <class Fill>
  void part_event(std::string_view type, Fill fill) {
    const bool summary = summary_ && items_.back().kind == Kind::kReasoning;
    item_event(type, [&](JsonText& out) {
      out.member(summary ? "summary_index" : "content_index", 0);
      fill(out);
    });
  }
  std::string_view part_event_name(bool added) const {
    if (summary_ && items_.back().kind == Kind::kReasoning)
      return added ? "response.reasoning_summary_part.added" : "response.reasoning_summary_part.done";
    return added ? "response.content_part.added" : "response.content_part.done";
  }
  std::string_view text_event_name(bool done) const {
    if (items_.back().kind == Kind::kMessage) return done ? "response.output_text.done" : "response.output_text.delta";
    if (summary_) return done ? "response.reasoning_summary_text.done" : "response.reasoning_summary_text.delta";
    return done ? "response.reasoning_text.done" : "response.reasoning_text.delta";
  }

  // ---- items

  // The open item, if it is of that kind; else a new one.
  OutputItem& open(Kind kind) {
    if (open_ && items_.back().kind == kind && kind != Kind::kCall) return items_.back();
    end_item(false);
    const char* prefix = kind == Kind::kReasoning ? "rs_" : kind == Kind::kMessage ? "msg_" : "fc_";
    items_.push_back({.kind = kind, .id = prefix + suffix_ + "_" + std::to_string(items_.size())});
    open_ = true;
    if (kind != Kind::kCall) announce();
    return items_.back();
  }
  void announce() {
    event("response.output_item.added", [&](JsonText& out) {
      out.member("output_index", static_cast<std::int64_t>(items_.size()) - 1).key("item");
      write_item(out, items_.back(), "in_progress", true);
    });
    if (items_.back().kind == Kind::kCall) return;
    part_event(part_event_name(true), [&](JsonText& out) {
      out.key("part");
      write_part(out, items_.back(), true);
    });
  }

  void grow(OutputItem& item, std::string_view text) {
    item.text += text;
    const bool message = item.kind == Kind::kMessage;
    const std::string logprobs = message ? std::exchange(waiting_logprobs_, {}) : std::string();
    if (!logprobs.empty()) item.logprobs += (item.logprobs.empty() ? "" : ",") + logprobs;
    part_event(text_event_name(false), [&](JsonText& out) {
      out.member("delta", text);
      if (message) out.key("logprobs").raw("[" + logprobs + "]");
    });
  }

  void add_call(const ToolCallDelta& delta) {
    if (!open_ || items_.back().kind != Kind::kCall || items_.back().call != delta.index) {
      OutputItem& item = open(Kind::kCall);
      item.call = delta.index;
      item.call_id = delta.id.empty() ? "call_" + suffix_ + "_" + std::to_string(delta.index) : delta.id;
      item.name = delta.name;
      announce();
    }
    if (delta.arguments.empty()) return;
    items_.back().text += delta.arguments;
    item_event("response.function_call_arguments.delta", [&](JsonText& out) { out.member("delta", delta.arguments); });
  }

  void end_item(bool incomplete) {
    if (!open_) return;
    OutputItem& item = items_.back();
    item.incomplete = incomplete;
    if (item.kind == Kind::kCall) {
      item_event("response.function_call_arguments.done",
                 [&](JsonText& out) { out.member("name", item.name).member("arguments", item.text); });
    } else {
      part_event(text_event_name(true), [&](JsonText& out) {
        out.member("text", item.text);
        if (item.kind == Kind::kMessage) out.key("logprobs").raw("[" + item.logprobs + "]");
      });
      part_event(part_event_name(false), [&](JsonText& out) {
        out.key("part");
        write_part(out, item, false);
      });
    }
    event("response.output_item.done", [&](JsonText& out) {
      out.member("output_index", static_cast<std::int64_t>(items_.size()) - 1).key("item");
      write_item(out, item, incomplete ? "incomplete" : "completed", false);
    });
    open_ = false;
  }

  void finish_items(const ChoiceEnd& end) {
    ending_ = end.ending;
    if (end.error) error_ = *end.error;
    const bool whole = ending_ == Ending::kStop || ending_ == Ending::kToolCalls;
    // Clients look for a message, even an empty one.
    if (items_.empty() && (whole || ending_ == Ending::kLength)) open(Kind::kMessage);
    end_item(!whole);
  }

  void keep_logprobs(const sampling::TokenLogprobs& entry) {
    JsonText out;
    tokens_.chat_entry(out, entry, top_logprobs_);
    waiting_logprobs_ += (waiting_logprobs_.empty() ? "" : ",") + out.str();
  }

  // ---- JSON

  void write_part(JsonText& out, const OutputItem& item, bool empty) const {
    const bool message = item.kind == Kind::kMessage;
    out.open_object().member("type", message ? "output_text" : summary_ ? "summary_text" : "reasoning_text");
    out.member("text", empty ? std::string_view() : std::string_view(item.text));
    if (message) {
      out.key("annotations").raw("[]");
      out.key("logprobs").raw("[" + (empty ? std::string() : item.logprobs) + "]");
    }
    out.close_object();
  }

  void write_item(JsonText& out, const OutputItem& item, std::string_view status, bool empty) const {
    out.open_object().member("id", item.id);
    const auto parts = [&](bool here) {
      out.open_array();
      if (here && !empty) write_part(out, item, false);
      out.close_array();
    };
    switch (item.kind) {
      case Kind::kReasoning:
        out.member("type", "reasoning").key("summary");
        parts(summary_);
        if (!summary_) {
          out.key("content");
          parts(true);
        }
        out.key("encrypted_content").null();
        break;
      case Kind::kMessage:
        out.member("type", "message").member("role", "assistant").key("content");
        parts(true);
        break;
      case Kind::kCall:
        out.member("type", "function_call").member("call_id", item.call_id).member("name", item.name);
        out.member("arguments", empty ? std::string_view() : std::string_view(item.text));
        break;
    }
    out.member("status", status).close_object();
  }

  std::string_view final_status() const {
    switch (ending_) {
      case Ending::kStop:
      case Ending::kToolCalls: return "completed";
      case Ending::kLength: return "incomplete";
      case Ending::kCancelled: return "cancelled";
      case Ending::kFailed: return "failed";
    }
    return "failed";
  }

  void write_outcome(JsonText& out, std::string_view status) const {
    out.key("completed_at");
    const bool whole = status == "completed" || status == "incomplete";
    whole ? out.integer(created_ + static_cast<std::int64_t>(std::ceil(times_.total_ms / 1000))) : out.null();
    out.key("error");
    if (status == "failed") {
      const std::string_view message = error_ ? std::string_view(error_->message) : "the answer could not be finished";
      out.open_object().member("code", error_ ? error_code(*error_) : "server_error").member("message", message).close_object();
    } else {
      out.null();
    }
    out.key("incomplete_details");
    status == "incomplete" ? out.open_object().member("reason", "max_output_tokens").close_object() : out.null();
  }

  void write_response_usage(JsonText& out) const {
    out.open_object().member("input_tokens", usage_.prompt_tokens);
    out.key("input_tokens_details").open_object().member("cached_tokens", usage_.cached_tokens).member("cache_write_tokens", 0);
    if (dropped_ > 0) out.member("truncated_tokens", dropped_);
    out.close_object().member("output_tokens", usage_.completion_tokens);
    out.key("output_tokens_details").open_object().member("reasoning_tokens", usage_.reasoning_tokens).close_object();
    out.member("total_tokens", usage_.prompt_tokens + usage_.completion_tokens).close_object();
  }

  std::string response(std::string_view status) const {
    JsonText out;
    out.open_object().member("id", id_).member("object", "response").member("created_at", created_).member("status", status);
    write_outcome(out, status);
    out.member("model", model_).key("output").open_array();
    if (status != "in_progress")
      for (const OutputItem& item : items_) write_item(out, item, item.incomplete ? "incomplete" : "completed", false);
    out.close_array();
    for (const auto& [key, value] : echo_) out.key(key).value(value);
    out.member("store", store_).key("usage");
    ended_ ? write_response_usage(out) : static_cast<void>(out.null());
    if (ended_ && timings_wanted_) {
      out.key("timings");
      write_timings(out, times_);
    }
    return out.close_object().take();
  }

  bool save() {
    auto kept = std::make_shared<StoredResponse>();
    kept->document = document_;
    kept->context = std::move(context_);
    for (std::size_t i = 0; i < input_.size(); ++i) {
      json::Object& item = input_[i].get_object();
      if (!item.contains("id")) item["id"] = "item_" + suffix_ + "_" + std::to_string(i);
      kept->input.push_back(std::make_shared<const std::string>(boost::json::serialize(item)));
    }
    for (const OutputItem& item : items_) {
      JsonText out;
      write_item(out, item, item.incomplete ? "incomplete" : "completed", false);
      kept->output.push_back(std::make_shared<const std::string>(out.take()));
    }
    return state_.store->put(state_.tenant, id_, std::move(kept));
  }

  const ResponsesState state_;
  const bool stream_, timings_wanted_;
  bool store_;
  const bool summary_;
  const std::int32_t top_logprobs_;
  const json::Object echo_;
  json::Array input_;
  std::vector<StoredItem> context_;
  TokenWriter tokens_;

  std::string id_, suffix_, model_;
  std::int64_t created_ = 0, dropped_ = 0;
  const Sink* sink_ = nullptr;  // of the call that is going on, of a stream
  std::int64_t sequence_ = 0;
  std::vector<OutputItem> items_;
  bool open_ = false;             // the last item goes on
  std::string waiting_logprobs_;  // of tokens whose text has not come yet
  Ending ending_ = Ending::kFailed;
  std::optional<ApiError> error_;
  Usage usage_;
  Timings times_;
  bool ended_ = false;
  std::string document_;
};

}  // namespace

std::unique_ptr<ResponseWriter> make_responses_writer(const ResponsesRequest& request, ResponsesState state) {
  return std::make_unique<ResponsesWriter>(request, std::move(state));
}

}  // namespace weir::api
