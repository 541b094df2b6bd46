// SPDX-License-Identifier: Apache-2.0
// Answers of /api/chat and /api/generate: lines of JSON, the last with "done" and the statistics, or all of it in one. Calls of tools
// come whole, since Ollama's arguments are objects.
#include <cmath>
#include <vector>

#include "api/ollama_api.h"
#include "api/ollama_time.h"
#include "api/openai_answer.h"

namespace weir::api {
namespace {

std::int64_t nanoseconds(double ms) { return static_cast<std::int64_t>(std::llround(ms * 1e6)); }

std::string_view done_reason(Ending ending) {
  switch (ending) {
    case Ending::kStop:
    case Ending::kToolCalls: return "stop";
    case Ending::kLength: return "length";
    case Ending::kCancelled: return "cancelled";
    case Ending::kFailed: return "error";
  }
  return "error";
}

JsonText head(std::string_view model, std::int64_t created) {
  JsonText out;
  out.open_object().member("model", model).member("created_at", rfc3339(created));
  return out;
}

struct Piece {
  std::string content = {}, thinking = {};
  std::string calls = {};     // JSON, with commas between
  std::string logprobs = {};  // JSON, with commas between
  bool empty() const { return content.empty() && thinking.empty() && calls.empty(); }
};

void append_json(std::string& list, std::string_view more) {
  if (!list.empty() && !more.empty()) list += ',';
  list += more;
}

class OllamaWriter final : public ResponseWriter {
 public:
  explicit OllamaWriter(const OllamaRequest& request)
      : model_(request.model_as_given),
        chat_(request.chat),
        stream_(request.generation.stream),
        timings_wanted_(request.generation.timings),
        top_logprobs_(request.generation.options.sampling.logprobs),
        tokens_(nullptr, false) {}

  Framing framing() const override { return Framing::kJsonLines; }

  void begin(const AnswerContext& context, const Sink&) override {
    created_ = context.created;
    tokens_ = TokenWriter(context.tokenizer, false);
  }

  void add(const ChoiceDelta& delta, const Sink& sink) override {
    Piece piece{.thinking = delta.parsed.reasoning};
    for (const ToolCallDelta& call : delta.parsed.tool_calls) add_call(call, piece);
    piece.content += delta.parsed.content;
    if (top_logprobs_ >= 0)
      for (const auto& entry : delta.logprobs) {
        JsonText out;
        tokens_.chat_entry(out, entry, top_logprobs_);
        append_json(logprobs_, out.str());
      }
    if (delta.end) {
      end_call(piece);
      end_ = *delta.end;
    }
    if (!stream_) {
      all_.content += piece.content;
      all_.thinking += piece.thinking;
      append_json(all_.calls, piece.calls);
      return;
    }
    if (piece.empty()) return;
    piece.logprobs = std::exchange(logprobs_, {});
    JsonText out = head(model_, created_);
    write_piece(out, piece);
    sink(out.member("done", false).close_object().str(), {});
  }

  void end(const Usage& usage, const Timings& timings, const Sink& sink) override {
    usage_ = usage;
    times_ = timings;
    if (!stream_) return;
    if (end_.ending == Ending::kFailed) {
      error_event(failure(), sink);
      return;
    }
    sink(last({.logprobs = std::exchange(logprobs_, {})}), {});
  }

  std::string document() override {
    if (end_.ending == Ending::kFailed) return ollama_error_document(failure());
    all_.logprobs = std::exchange(logprobs_, {});
    return last(all_);
  }

  std::string error_document(const ApiError& error) const override { return ollama_error_document(error); }
  void error_event(const ApiError& error, const Sink& sink) override { sink(ollama_error_document(error), {}); }

 private:
  void add_call(const ToolCallDelta& delta, Piece& piece) {
    if (!call_ || call_->index != delta.index) {
      end_call(piece);
      call_ = delta;
    } else {
      call_->arguments += delta.arguments;
    }
  }

  void end_call(Piece& piece) {
    if (!call_) return;
    const auto arguments = json::parse(call_->arguments.empty() ? "{}" : call_->arguments, "the arguments of a call");
    if (arguments && arguments->is_object()) {
      JsonText out;
      out.open_object();
      if (!call_->id.empty()) out.member("id", call_->id);
      out.key("function").open_object().member("index", call_->index).member("name", call_->name);
      out.key("arguments").value(*arguments).close_object().close_object();
      append_json(piece.calls, out.str());
    } else {
      piece.content += call_->name + " " + call_->arguments;  // cut in the middle: no call, but not lost either
    }
    call_.reset();
  }

  void write_piece(JsonText& out, const Piece& piece) const {
    if (chat_) {
      out.key("message").open_object().member("role", "assistant").member("content", piece.content);
      if (!piece.thinking.empty()) out.member("thinking", piece.thinking);
      if (!piece.calls.empty()) out.key("tool_calls").raw("[" + piece.calls + "]");
      out.close_object();
    } else {
      out.member("response", piece.content);
      if (!piece.thinking.empty()) out.member("thinking", piece.thinking);
      if (!piece.calls.empty()) out.key("tool_calls").raw("[" + piece.calls + "]");
    }
    if (!piece.logprobs.empty()) out.key("logprobs").raw("[" + piece.logprobs + "]");
  }

  std::string last(const Piece& piece) const {
    JsonText out = head(model_, created_);
    write_piece(out, piece);
    out.member("done", true).member("done_reason", done_reason(end_.ending));
    out.member("total_duration", nanoseconds(times_.total_ms)).member("load_duration", 0);
    out.member("prompt_eval_count", usage_.prompt_tokens).member("prompt_eval_duration", nanoseconds(times_.prefill_ms));
    out.member("eval_count", usage_.completion_tokens).member("eval_duration", nanoseconds(times_.decode_ms));
    if (timings_wanted_) {
      out.key("timings");
      write_timings(out, times_);
    }
    return out.close_object().take();
  }

  ApiError failure() const {
    if (end_.error) return *end_.error;
    return {.status = 500, .type = "server_error", .code = "internal_error", .message = "the answer could not be finished"};
  }

  const std::string model_;
  const bool chat_, stream_, timings_wanted_;
  const std::int32_t top_logprobs_;
  TokenWriter tokens_;
  std::int64_t created_ = 0;
  Piece all_;
  std::string logprobs_;               // of tokens whose text has not been sent yet
  std::optional<ToolCallDelta> call_;  // that is being written
  ChoiceEnd end_{.ending = Ending::kFailed};
  Usage usage_;
  Timings times_;
};

}  // namespace

std::unique_ptr<ResponseWriter> make_ollama_writer(const OllamaRequest& request) { return std::make_unique<OllamaWriter>(request); }

std::string ollama_error_document(const ApiError& error) {
  return JsonText().open_object().member("error", error.message).close_object().take();
}

std::string ollama_load_document(const OllamaRequest& request, std::int64_t unix_seconds) {
  JsonText out = head(request.model_as_given, unix_seconds);
  if (request.chat) {
    out.key("message").open_object().member("role", "assistant").member("content", "").close_object();
  } else {
    out.member("response", "");
  }
  const bool unload = request.purpose == OllamaRequest::Purpose::kUnload;
  return out.member("done", true).member("done_reason", unload ? "unload" : "load").close_object().take();
}

}  // namespace weir::api
