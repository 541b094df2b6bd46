// SPDX-License-Identifier: Apache-2.0
// Requests of Ollama's dialect: /api/chat, /api/generate, /api/embed, /api/embeddings, /api/show.
#include <fmt/core.h>

#include <map>
#include <set>
#include <vector>

#include "api/ollama_options.h"
#include "api/ollama_schemas.h"
#include "api/openai_tools.h"
#include "api/text_fields.h"
#include "api/tool_call_fields.h"
#include "api/translation.h"

namespace weir::api {
namespace {

using json::Value;
using Draft = OllamaDraft;

constexpr const char* kTextOnly = "is not supported: this server's models read text only";

// ---- messages

struct Call {
  std::string id = {}, name = {};
  json::Object arguments = {};
};

const Fields<Call>& function_fields() {
  static const Fields<Call> fields = [] {
    Fields<Call> f;
    f.value("name", tool_name_schema(), [](const Value& value, const Path& path, Call& c) {
       return read_tool_name(value, path, c.name);
     }).required();
    f.value("arguments", json::Object{{"type", "object"}}, [](const Value& value, const Path& path, Call& c) -> ApiStatus {
      WEIR_ASSIGN(const json::Object* object, read_object(value, path));
      c.arguments = *object;
      return {};
    });
    f.ignore({"index", "description"});
    return f;
  }();
  return fields;
}

const Fields<Call>& call_fields() {
  static const Fields<Call> fields = tool_call_fields(function_fields());
  return fields;
}

struct Message {
  std::string role = {}, content = {}, thinking = {}, tool_name = {}, call_id = {};
  std::vector<Call> calls = {};
};

const Fields<Message>& message_fields() {
  static const Fields<Message> fields = [] {
    Fields<Message> f;
    f.value("role", schema(R"({"enum": ["system", "user", "assistant", "tool"]})"),
            [](const Value& value, const Path& path, Message& m) -> ApiStatus {
              WEIR_ASSIGN(m.role, read_name(value, path, {"system", "user", "assistant", "tool"}));
              return {};
            })
        .required();
    f.text("content", [](Message& m, std::string v) { m.content = std::move(v); });
    f.text("thinking", [](Message& m, std::string v) { m.thinking = std::move(v); });
    f.text("tool_name", [](Message& m, std::string v) { m.tool_name = std::move(v); }).note("Whose answer it is, of the role 'tool'.");
    f.text("name", [](Message& m, std::string v) { m.tool_name = std::move(v); });
    f.text("tool_call_id", [](Message& m, std::string v) { m.call_id = std::move(v); });
    f.value("tool_calls", json::Object{{"type", "array"}, {"items", call_fields().schema()}},
            [](const Value& value, const Path& path, Message& m) -> ApiStatus {
              WEIR_ASSIGN(const json::Array* array, read_array(value, path));
              for (std::size_t i = 0; i < array->size(); ++i) {
                Call call;
                WEIR_TRY(call_fields().read((*array)[i], Path(path, i), call));
                m.calls.push_back(std::move(call));
              }
              return {};
            });
    f.only("images", json::Array(), kTextOnly);
    return f;
  }();
  return fields;
}

// Turns messages into what templates read. Ollama's calls have no ids, or not always: answers are matched by name, else by order.
class Turns {
 public:
  ApiStatus add(Message message, const Path& path) {
    if (!message.calls.empty() && message.role != "assistant")
      return refuse(Path(path, "tool_calls"), "belong to messages of the role 'assistant'");
    json::Object out{{"role", message.role}};
    if (message.calls.empty() || !message.content.empty()) out["content"] = message.content;
    if (!message.thinking.empty()) out["reasoning_content"] = message.thinking;
    if (message.role == "tool") answer(message, out);
    if (!message.calls.empty()) out["tool_calls"] = calls_of(message);
    messages_.push_back(std::move(out));
    return {};
  }
  json::Array take() { return std::move(messages_); }

 private:
  // A call that waits for its answer, by when it was made.
  struct Open {
    std::string id, name;
  };
  using Calls = std::map<int, Open>;

  std::string new_id() { return fmt::format("call{:05}", ++made_); }  // 9 characters, as Mistral's templates want

  json::Array calls_of(const Message& message) {
    json::Array calls;
    for (const Call& call : message.calls) {
      const std::string id = call.id.empty() ? new_id() : call.id;
      calls.push_back(json::Object{{"type", "function"}, {"id", id}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      const int number = next_++;
      open_.emplace(number, Open{id, call.name});
      by_id_[id].insert(number);
      by_name_[call.name].insert(number);
    }
    return calls;
  }

  using Index = std::map<std::string, std::set<int>>;
  Calls::iterator first_of(const Index& index, const std::string& key) {
    const auto found = index.find(key);
    return found == index.end() || found->second.empty() ? open_.end() : open_.find(*found->second.begin());
  }

  void answer(const Message& message, json::Object& out) {
    const auto call = !message.call_id.empty()     ? first_of(by_id_, message.call_id)
                      : !message.tool_name.empty() ? first_of(by_name_, message.tool_name)
                                                   : open_.begin();
    std::string id = message.call_id, name = message.tool_name;
    if (call != open_.end()) {
      id = call->second.id;
      if (name.empty()) name = call->second.name;
      by_id_[call->second.id].erase(call->first);
      by_name_[call->second.name].erase(call->first);
      open_.erase(call);
    }
    out["tool_call_id"] = id.empty() ? new_id() : id;
    if (!name.empty()) out["name"] = name;
  }

  json::Array messages_;
  Calls open_;
  Index by_id_, by_name_;
  int made_ = 0, next_ = 0;
};

// ---- chat and generate

const Fields<Draft>& chat_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_ollama_fields(f);
    f.value("messages", json::Object{{"type", "array"}, {"items", message_fields().schema()}},
            [](const Value& value, const Path&, Draft& d) -> ApiStatus {
              d.messages = &value;
              return {};
            })
        .note("None: the model is loaded.");
    f.value("tools", tools_schema(), [](const Value& value, const Path& path, Draft& d) -> ApiStatus {
      WEIR_ASSIGN(d.out.generation.tools, read_tools(value, path));
      return {};
    });
    return f;
  }();
  return fields;
}

const Fields<Draft>& generate_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_ollama_fields(f);
    f.text("prompt", [](Draft& d, std::string v) { d.prompt = std::move(v); }).note("None: the model is loaded.");
    f.text("system", [](Draft& d, std::string v) { d.system = std::move(v); });
    f.boolean("raw", [](Draft& d, bool v) { d.raw = v; }).note("The prompt as it is, without the chat template.");
    f.only("suffix", "", "is not supported: these models do not fill in the middle");
    f.only("template", "", "cannot be given by a request: the model's own template is used");
    f.only("context", json::Array(), "is not supported: send the conversation to /api/chat");
    f.only("images", json::Array(), kTextOnly);
    return f;
  }();
  return fields;
}

void set_purpose(OllamaRequest& request, bool empty) {
  using Purpose = OllamaRequest::Purpose;
  if (!empty) return;
  request.purpose = request.keep_alive == Duration::zero() ? Purpose::kUnload : Purpose::kLoad;
}

ApiResult<Draft> read_draft(const json::Object& object, const Fields<Draft>& fields) {
  Draft draft;
  draft.out.generation.stream = true;
  WEIR_TRY(fields.read(object, Path(), draft));
  WEIR_TRY(finish_ollama(draft));
  return draft;
}

}  // namespace

std::string_view ollama_model_name(std::string_view given) {
  constexpr std::string_view kLatest = ":latest";
  if (given.ends_with(kLatest)) given.remove_suffix(kLatest.size());
  return given;
}

ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body) {
  WEIR_ASSIGN(const json::Object object, parse_body(body));
  WEIR_ASSIGN(Draft draft, read_draft(object, chat_fields()));
  GenerationRequest& request = draft.out.generation;
  const Path root, path(root, "messages");
  request.chat = true;
  if (draft.messages) {
    WEIR_ASSIGN(const json::Array* array, read_array(*draft.messages, path));
    Turns turns;
    for (std::size_t i = 0; i < array->size(); ++i) {
      const Path place(path, i);
      Message message;
      WEIR_TRY(message_fields().read((*array)[i], place, message));
      WEIR_TRY(turns.add(std::move(message), place));
    }
    request.messages = turns.take();
  }
  set_purpose(draft.out, request.messages.empty());
  return std::move(draft.out);
}

ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body) {
  WEIR_ASSIGN(const json::Object object, parse_body(body));
  WEIR_ASSIGN(Draft draft, read_draft(object, generate_fields()));
  GenerationRequest& request = draft.out.generation;
  request.input_field = "prompt";
  draft.out.chat = false;
  set_purpose(draft.out, draft.prompt.empty());
  if (draft.raw) {
    const Path root;
    if (!draft.system.empty()) return refuse(Path(root, "system"), "cannot be given with 'raw'", "conflicting_parameters");
    request.prompts.emplace_back(std::move(draft.prompt));
    return std::move(draft.out);
  }
  request.chat = true;
  if (!draft.system.empty()) request.messages.push_back(json::Object{{"role", "system"}, {"content", draft.system}});
  request.messages.push_back(json::Object{{"role", "user"}, {"content", draft.prompt}});
  return std::move(draft.out);
}

// ---- embeddings, show

namespace {

struct EmbedDraft {
  OllamaEmbedRequest out = {};
};

void set_model(OllamaEmbedRequest& request, std::string given) {
  request.embedding.model = ollama_model_name(given);
  request.model_as_given = std::move(given);
}

template <class T>
ApiStatus check_options(const Value& value, const Path& path, T&) {
  Draft draft;
  return read_ollama_options(value, path, draft);
}

template <class T>
ApiStatus check_keep_alive(const Value& value, const Path& path, T&) {
  WEIR_TRY(read_keep_alive(value, path));
  return {};
}

void add_embed_fields(Fields<EmbedDraft>& f) {
  f.text("model", [](EmbedDraft& d, std::string v) { set_model(d.out, std::move(v)); }).required();
  f.value("options", ollama_options_schema(), check_options<EmbedDraft>);
  f.value("keep_alive", keep_alive_schema(), check_keep_alive<EmbedDraft>);
}

ApiStatus read_inputs(const Value& value, const Path& path, EmbedDraft& draft) {
  std::vector<PromptInput>& inputs = draft.out.embedding.inputs;
  if (value.is_string()) {
    inputs.emplace_back(std::string(value.get_string()));
    return {};
  }
  if (!value.is_array()) return wrong_type(path, "a text or a list of texts", value);
  WEIR_ASSIGN(std::vector<std::string> texts, read_texts(value, path, static_cast<std::size_t>(kMaxPrompts)));
  if (texts.empty()) return refuse(path, "is an empty list", "empty");
  for (std::string& text : texts) inputs.emplace_back(std::move(text));
  return {};
}

const Fields<EmbedDraft>& embed_fields() {
  static const Fields<EmbedDraft> fields = [] {
    Fields<EmbedDraft> f;
    add_embed_fields(f);
    f.value("input", schema(R"({"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "maxItems": 4096,
                                "items": {"type": "string"}}]})"),
            read_inputs)
        .required();
    f.boolean("truncate", [](EmbedDraft& d, bool v) {
       d.out.embedding.cut = v;
     }).note("true: texts that are too long lose their end; else they are an error.");
    f.integer("dimensions", {1, 1 << 20}, [](EmbedDraft& d, std::int64_t v) { d.out.embedding.dimensions = v; });
    return f;
  }();
  return fields;
}

const Fields<EmbedDraft>& embeddings_fields() {
  static const Fields<EmbedDraft> fields = [] {
    Fields<EmbedDraft> f;
    add_embed_fields(f);
    f.text("prompt", [](EmbedDraft& d, std::string v) { d.out.embedding.inputs.emplace_back(std::move(v)); }).required();
    return f;
  }();
  return fields;
}

struct ShowDraft {
  std::string model;
};

const Fields<ShowDraft>& show_fields() {
  static const Fields<ShowDraft> fields = [] {
    Fields<ShowDraft> f;
    f.text("model", [](ShowDraft& d, std::string v) { d.model = std::move(v); });
    f.text("name", [](ShowDraft& d, std::string v) {
       if (d.model.empty()) d.model = std::move(v);
     }).note("What 'model' was called before.");
    f.ignore({"verbose", "system", "template", "options"});
    return f;
  }();
  return fields;
}

}  // namespace

ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body) {
  EmbedDraft draft;
  draft.out.embedding.normalize = true;  // as Ollama documents it
  WEIR_TRY(read_body(body, embed_fields(), draft));
  return std::move(draft.out);
}

ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body) {
  EmbedDraft draft;
  draft.out.one = true;
  draft.out.embedding.input_field = "prompt";
  WEIR_TRY(read_body(body, embeddings_fields(), draft));
  return std::move(draft.out);
}

ApiResult<std::string> parse_ollama_show(std::string_view body) {
  ShowDraft draft;
  WEIR_TRY(read_body(body, show_fields(), draft));
  const Path root;
  if (draft.model.empty()) return refuse(Path(root, "model"), "is missing", "missing_required_parameter");
  return std::string(ollama_model_name(draft.model));
}

json::Object ollama_chat_request_schema() { return chat_fields().schema(); }
json::Object ollama_generate_request_schema() { return generate_fields().schema(); }
json::Object ollama_embed_request_schema() { return embed_fields().schema(); }
json::Object ollama_embeddings_request_schema() { return embeddings_fields().schema(); }
json::Object ollama_show_request_schema() {
  json::Object described = show_fields().schema();
  described["anyOf"] = schema(R"([{"required": ["model"], "properties": {"model": {"type": "string", "minLength": 1}}},
    {"required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}])");
  return described;
}

}  // namespace weir::api
