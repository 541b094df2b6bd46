// SPDX-License-Identifier: Apache-2.0
// Answers in Anthropic's shape. A message is a list of blocks (thinking, text, tool_use); a stream begins, fills and ends them one after
// the other.
#include <optional>
#include <vector>

#include "api/anthropic_messages.h"
#include "api/openai_answer.h"

namespace weir::api {
namespace {

struct Block {
  enum class Kind { kThinking, kText, kToolUse } kind;
  std::string text = {};  // or the input's JSON
  std::string id = {}, name = {};
  std::int32_t call = -1;
};

bool flag(const json::Object& object, std::string_view key) {
  const json::Value* value = json::find(object, key);
  return value && value->is_bool() && value->get_bool();
}

class AnthropicWriter final : public ResponseWriter {
 public:
  explicit AnthropicWriter(const GenerationRequest& request)
      : stream_(request.stream),
        timings_wanted_(request.timings),
        hide_thinking_(flag(request.echo_fields, "hide_thinking")),
        cache_asked_(flag(request.echo_fields, "cache_asked")),
        max_tokens_(request.options.max_tokens) {}

  void begin(const AnswerContext& context, const Sink& sink) override {
    id_ = "msg_" + context.id;
    model_ = context.model;
    for (const AnswerContext::Prompt& prompt : context.prompts) usage_.prompt_tokens += static_cast<std::int64_t>(prompt.tokens.size());
    if (!stream_) return;
    event(sink, "message_start", [&](JsonText& out) {
      out.key("message");
      write_message(out, {});
    });
    event(sink, "ping", [](JsonText&) {});
  }

  void add(const ChoiceDelta& delta, const Sink& sink) override {
    if (!delta.parsed.reasoning.empty()) {
      open(Block::Kind::kThinking, sink);
      if (!hide_thinking_) grow(delta.parsed.reasoning, sink);
    }
    if (!delta.parsed.content.empty()) {
      open(Block::Kind::kText, sink);
      grow(delta.parsed.content, sink);
    }
    for (const ToolCallDelta& call : delta.parsed.tool_calls) add_call(call, sink);
    if (!delta.end) return;
    close(sink);
    end_ = *delta.end;
  }

  void end(const Usage& usage, const Timings& timings, const Sink& sink) override {
    usage_ = usage;
    times_ = timings;
    if (!stream_) return;
    if (end_.ending == Ending::kFailed) {
      error_event(failure(), sink);
      return;
    }
    event(sink, "message_delta", [&](JsonText& out) {
      out.key("delta").open_object();
      write_stop(out);
      out.close_object().key("usage");
      write_usage_now(out);
      write_times(out);
    });
    event(sink, "message_stop", [](JsonText&) {});
  }

  std::string document() override {
    if (end_.ending == Ending::kFailed) return anthropic_error_document(failure());
    JsonText out;
    write_message(out, blocks_, true);
    return out.take();
  }

  std::string error_document(const ApiError& error) const override { return anthropic_error_document(error); }
  void error_event(const ApiError& error, const Sink& sink) override { sink(anthropic_error_document(error), "error"); }

 private:
  using Kind = Block::Kind;

  template <class Fill>
  void event(const Sink& sink, std::string_view type, Fill fill) {
    if (!stream_) return;
    JsonText out;
    out.open_object().member("type", type);
    fill(out);
    out.close_object();
    sink(out.str(), type);
  }
  // Of the last block.
  template <class Fill>
  void block_event(const Sink& sink, std::string_view type, Fill fill) {
    event(sink, type, [&](JsonText& out) {
      out.member("index", static_cast<std::int64_t>(blocks_.size()) - 1);
      fill(out);
    });
  }

  void open(Kind kind, const Sink& sink, const ToolCallDelta* call = nullptr) {
    if (open_ && blocks_.back().kind == kind && (!call || blocks_.back().call == call->index)) return;
    close(sink);
    blocks_.push_back({.kind = kind});
    open_ = true;
    Block& block = blocks_.back();
    if (call) {
      block.call = call->index;
      block.name = call->name;
      block.id = call->id.empty() ? "toolu_" + id_.substr(4) + "_" + std::to_string(call->index) : call->id;
    }
    block_event(sink, "content_block_start", [&](JsonText& out) {
      out.key("content_block");
      write_block(out, block, true);
    });
  }

  void grow(std::string_view text, const Sink& sink) {
    Block& block = blocks_.back();
    block.text += text;
    block_event(sink, "content_block_delta", [&](JsonText& out) {
      out.key("delta").open_object();
      switch (block.kind) {
        case Kind::kThinking: out.member("type", "thinking_delta").member("thinking", text); break;
        case Kind::kText: out.member("type", "text_delta").member("text", text); break;
        case Kind::kToolUse: out.member("type", "input_json_delta").member("partial_json", text); break;
      }
      out.close_object();
    });
  }

  void add_call(const ToolCallDelta& call, const Sink& sink) {
    open(Kind::kToolUse, sink, &call);
    if (!call.arguments.empty()) grow(call.arguments, sink);
  }

  void close(const Sink& sink) {
    if (!open_) return;
    if (blocks_.back().kind == Kind::kThinking)
      block_event(sink, "content_block_delta", [&](JsonText& out) {
        out.key("delta").open_object().member("type", "signature_delta").member("signature", signature()).close_object();
      });
    block_event(sink, "content_block_stop", [](JsonText&) {});
    open_ = false;
  }

  // Clients send it back with the thinking and want it not to be empty; nothing is signed here.
  std::string signature() const { return "unsigned_" + id_; }

  void write_block(JsonText& out, const Block& block, bool empty) const {
    const std::string_view text = empty ? std::string_view() : std::string_view(block.text);
    out.open_object();
    switch (block.kind) {
      case Kind::kThinking:
        out.member("type", "thinking").member("thinking", text).member("signature", empty ? std::string() : signature());
        break;
      case Kind::kText: out.member("type", "text").member("text", text); break;
      case Kind::kToolUse:
        out.member("type", "tool_use").member("id", block.id).member("name", block.name).key("input");
        out.raw(text.empty() ? "{}" : text);
        break;
    }
    out.close_object();
  }

  // A document can hold whole inputs only: a call that the end of the answer cut is given as the text that it is.
  void write_whole_block(JsonText& out, const Block& block) const {
    if (block.kind == Kind::kToolUse && !block.text.empty()) {
      const auto input = json::parse(block.text, "the input of a tool");
      if (!input || !input->is_object()) {
        write_block(out, {.kind = Kind::kText, .text = block.name + " " + block.text}, false);
        return;
      }
    }
    write_block(out, block, false);
  }

  void write_message(JsonText& out, const std::vector<Block>& blocks, bool ended = false) const {
    out.open_object().member("id", id_).member("type", "message").member("role", "assistant").member("model", model_);
    out.key("content").open_array();
    for (const Block& block : blocks) write_whole_block(out, block);
    out.close_array();
    if (ended) {
      write_stop(out);
    } else {
      out.key("stop_reason").null().key("stop_sequence").null();
    }
    out.key("usage");
    write_usage_now(out);
    if (ended) write_times(out);
    out.close_object();
  }

  void write_usage_now(JsonText& out) const {
    const std::int64_t cached = cache_asked_ ? usage_.cached_tokens : 0;
    out.open_object().member("input_tokens", usage_.prompt_tokens - cached).member("cache_creation_input_tokens", 0);
    out.member("cache_read_input_tokens", cached).member("output_tokens", usage_.completion_tokens);
    if (usage_.reasoning_tokens > 0)
      out.key("output_tokens_details").open_object().member("thinking_tokens", usage_.reasoning_tokens).close_object();
    out.close_object();
  }

  void write_times(JsonText& out) const {
    if (!timings_wanted_) return;
    out.key("timings");
    write_timings(out, times_);
  }

  std::string_view stop_reason() const {
    switch (end_.ending) {
      case Ending::kStop: return end_.stop_text.empty() ? "end_turn" : "stop_sequence";
      case Ending::kToolCalls: return "tool_use";
      case Ending::kLength: {
        // Fewer than were allowed: the context was full before.
        const bool context = end_.finish.generated > 0 && end_.finish.generated < max_tokens_;
        return context ? "model_context_window_exceeded" : "max_tokens";
      }
      case Ending::kCancelled: return "pause_turn";  // cut by a limit of time: the message can be sent back to be continued
      case Ending::kFailed: break;
    }
    return "end_turn";
  }

  void write_stop(JsonText& out) const {
    out.member("stop_reason", stop_reason()).key("stop_sequence");
    stop_reason() == "stop_sequence" ? out.text(end_.stop_text) : out.null();
  }

  ApiError failure() const {
    if (end_.error) return *end_.error;
    return {.status = 500, .type = "server_error", .code = "internal_error", .message = "the answer could not be finished"};
  }

  const bool stream_, timings_wanted_, hide_thinking_, cache_asked_;
  const std::int64_t max_tokens_;
  std::string id_, model_;
  std::vector<Block> blocks_;
  bool open_ = false;  // the last block goes on
  ChoiceEnd end_{.ending = Ending::kFailed};
  Usage usage_;
  Timings times_;
};

}  // namespace

std::unique_ptr<ResponseWriter> make_anthropic_writer(const GenerationRequest& request) {
  return std::make_unique<AnthropicWriter>(request);
}

}  // namespace weir::api
