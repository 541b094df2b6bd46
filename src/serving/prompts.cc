// SPDX-License-Identifier: Apache-2.0
#include "serving/prompts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "engine/chat.h"

namespace weir::serving {
namespace {

using Prompt = api::AnswerContext::Prompt;

constexpr int kMaxDepth = 64;

// Letters and digits, so that filters of templates leave it alone; drawn anew by each process, so that nobody can write it.
const std::string& mark_start() {
  static const std::string mark = [] {
    std::random_device device;
    return fmt::format("WEIR{:08x}{:08x}{:08x}x", device(), device(), device());
  }();
  return mark;
}
constexpr char kMarkEnd = 'z';

std::string hidden(std::string_view text, const ControlTokens& controls, std::vector<std::string>& spellings) {
  std::string out;
  std::size_t done = 0;
  for (auto found = controls.find(text); found.at != std::string_view::npos; found = controls.find(text, done)) {
    out += text.substr(done, found.at - done);
    const std::string_view spelling = text.substr(found.at, found.size);
    auto known = std::ranges::find(spellings, spelling);
    if (known == spellings.end()) {
      known = spellings.insert(known, std::string(spelling));
    }
    out += mark_of(static_cast<std::size_t>(known - spellings.begin()));
    done = found.at + found.size;
  }
  out += text.substr(done);
  return out;
}

void hide(json::Value& value, const ControlTokens& controls, std::vector<std::string>& spellings, int depth) {
  if (depth > kMaxDepth) return;
  if (value.is_string()) {
    const std::string_view text = value.get_string();
    if (controls.find(text).at != std::string_view::npos) value = hidden(text, controls, spellings);
  } else if (value.is_array()) {
    for (json::Value& item : value.get_array()) hide(item, controls, spellings, depth + 1);
  } else if (value.is_object()) {
    json::Object& object = value.get_object();
    const bool in_keys =
        std::ranges::any_of(object, [&](const auto& member) { return controls.find(member.key()).at != std::string_view::npos; });
    for (auto& member : object) hide(member.value(), controls, spellings, depth + 1);
    if (!in_keys) return;
    json::Object renamed;
    for (auto& member : object) renamed[hidden(member.key(), controls, spellings)] = std::move(member.value());
    object = std::move(renamed);
  }
}

// Messages without content get an empty one. False when all have some.
bool give_content(json::Object& context) {
  bool given = false;
  for (json::Value& message : context["messages"].as_array()) {
    json::Value& content = message.as_object()["content"];
    if (!content.is_null()) continue;
    content = "";
    given = true;
  }
  return given;
}

// The last message's text gets a mark at its end, where the rendered text is cut. False when it has no text.
bool mark_last(json::Array& messages, const std::string& mark) {
  if (messages.empty() || !messages.back().is_object()) return false;
  json::Value* content = messages.back().get_object().if_contains("content");
  if (!content) return false;
  if (content->is_string()) {
    content->get_string().append(mark);
    return true;
  }
  if (!content->is_array() || content->get_array().empty() || !content->get_array().back().is_object()) return false;
  json::Value* text = content->get_array().back().get_object().if_contains("text");
  if (!text || !text->is_string()) return false;
  text->get_string().append(mark);
  return true;
}

}  // namespace

ControlTokens::ControlTokens(const tokenizer::Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const tokenizer::TokenKind kind = tokenizer.kind(id);
    if (kind != tokenizer::TokenKind::kControl && kind != tokenizer::TokenKind::kUnknown) continue;
    const std::string_view text = tokenizer.token_text(id);
    if (!text.empty()) by_first_[static_cast<unsigned char>(text.front())].push_back({std::string(text), id});
  }
  for (auto& entries : by_first_) std::ranges::stable_sort(entries, std::greater(), [](const Entry& e) { return e.text.size(); });
}

ControlTokens::Found ControlTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    for (const Entry& entry : by_first_[static_cast<unsigned char>(text[at])])
      if (text.substr(at).starts_with(entry.text)) return {at, entry.text.size(), entry.id};
  }
  return {};
}

std::string mark_of(std::size_t index) { return fmt::format("{}{}{}", mark_start(), index, kMarkEnd); }

void hide_control_tokens(json::Value& value, const ControlTokens& controls, std::vector<std::string>& spellings) {
  hide(value, controls, spellings, 0);
}

std::string with_spellings(std::string_view text, const std::vector<std::string>& spellings) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find(mark_start()); at != std::string_view::npos; at = text.find(mark_start(), done)) {
    std::size_t index = 0;
    const char* digits = text.data() + at + mark_start().size();
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), index);
    out += text.substr(done, at - done);
    done = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || index >= spellings.size() || done >= text.size() || text[done] != kMarkEnd) continue;
    out += spellings[index];
    ++done;
  }
  out += text.substr(done);
  return out;
}

PromptMaker::PromptMaker(const engine::LoadedModel& loaded) : loaded_(loaded) {
  if (loaded.tokenizer) controls_ = std::make_unique<ControlTokens>(*loaded.tokenizer);
}

api::ApiResult<std::vector<Prompt>> PromptMaker::make(const api::GenerationRequest& request) const {
  std::vector<Prompt> prompts;
  if (request.chat) {
    auto prompt = make_chat(request);
    if (!prompt) return std::unexpected(std::move(prompt).error());
    prompts.push_back(std::move(*prompt));
    return prompts;
  }
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto prompt = make_text(request.prompts[i], request, i);
    if (!prompt) return std::unexpected(std::move(prompt).error());
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

json::Object PromptMaker::context_of(const api::GenerationRequest& request, json::Array messages) const {
  json::Object context = request.template_arguments;
  json::Array tools;
  for (const api::Tool& tool : request.tools) tools.push_back(tool.as_given);
  context["messages"] = std::move(messages);
  context["tools"] = tools.empty() ? json::Value(nullptr) : json::Value(std::move(tools));
  context["add_generation_prompt"] = request.add_generation_prompt && !request.continue_final_message;
  return context;
}

api::ApiResult<Prompt> PromptMaker::make_chat(const api::GenerationRequest& request) const {
  if (!loaded_.tokenizer) return std::unexpected(api::bad_request("model", loaded_.tokenizer_error, "unsupported_model"));
  if (!loaded_.chat_template)
    return std::unexpected(
        api::bad_request(std::string(request.input_name()), "this model has no chat template: use /v1/completions", "no_chat_template"));
  json::Array messages = request.messages;
  std::vector<std::string> spellings;
  const std::string cut_mark = mark_start() + "end";
  if (request.continue_final_message && !mark_last(messages, cut_mark))
    return std::unexpected(api::bad_request("continue_final_message", "the last message has no text to go on from"));
  json::Value context = context_of(request, std::move(messages));
  hide_control_tokens(context, *controls_, spellings);
  context.get_object()["bos_token"] = engine::special_text(*loaded_.tokenizer, loaded_.tokenizer->bos);
  context.get_object()["eos_token"] = engine::special_text(*loaded_.tokenizer, loaded_.tokenizer->eos);

  auto rendered = loaded_.chat_template->render(context.get_object());
  // A turn that only calls tools has no content, which templates that know no tools cannot read: to them it is empty.
  if (!rendered && give_content(context.get_object())) rendered = loaded_.chat_template->render(context.get_object());
  if (!rendered) {
    // Whatever a template says about a request is the client's business: it names what the model cannot take.
    return std::unexpected(api::bad_request(std::string(request.input_name()),
                                            "the chat template refuses this conversation: " + rendered.error().message, "template_error"));
  }
  if (request.continue_final_message) {
    const std::size_t at = rendered->rfind(cut_mark);
    if (at == std::string::npos)
      return std::unexpected(api::bad_request("continue_final_message", "the chat template leaves the last message out"));
    rendered->resize(at);
  }
  Prompt prompt;
  if (spellings.empty()) {
    prompt.tokens = engine::encode_rendered(*loaded_.tokenizer, *rendered);
    prompt.text = std::move(*rendered);
  } else {
    prompt.tokens = encode_apart(*rendered, spellings);
    prompt.text = with_spellings(*rendered, spellings);
  }
  return prompt;
}

std::vector<TokenId> PromptMaker::encode_apart(std::string_view rendered, const std::vector<std::string>& spellings) const {
  std::vector<TokenId> ids;
  const auto add_plain = [&](std::string_view text) {
    if (text.empty()) return;
    const auto more = loaded_.tokenizer->encode(with_spellings(text, spellings), {.add_special = false, .parse_special = false});
    ids.insert(ids.end(), more.begin(), more.end());
  };
  std::size_t done = 0;
  for (auto found = controls_->find(rendered); found.at != std::string_view::npos; found = controls_->find(rendered, done)) {
    add_plain(rendered.substr(done, found.at - done));
    ids.push_back(found.id);
    done = found.at + found.size;
  }
  add_plain(rendered.substr(done));
  return ids;
}

api::ApiResult<Prompt> PromptMaker::make_text(const api::PromptInput& input, const api::GenerationRequest& request,
                                              std::size_t index) const {
  const auto path = [&] { return request.prompts.size() == 1 ? std::string("prompt") : fmt::format("prompt[{}]", index); };
  Prompt prompt;
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&input)) {
    const std::int32_t vocabulary = loaded_.model->traits().vocab_size;
    for (const TokenId id : *ids) {
      if (id < 0 || id >= vocabulary)
        return std::unexpected(api::bad_request(path(), fmt::format("token {} is not in [0, {})", id, vocabulary)));
    }
    prompt.tokens = *ids;
    if (loaded_.tokenizer) prompt.text = loaded_.tokenizer->decode(*ids, true);
  } else {
    if (!loaded_.tokenizer) return std::unexpected(api::bad_request("model", loaded_.tokenizer_error, "unsupported_model"));
    prompt.text = std::get<std::string>(input);
    // Whoever sends the whole prompt writes its special tokens too, as in what /v1/chat/completions/render gives.
    prompt.tokens = loaded_.tokenizer->encode(prompt.text, {.add_special = request.add_special, .parse_special = true});
    if (prompt.tokens.empty() && loaded_.tokenizer->bos) prompt.tokens.push_back(*loaded_.tokenizer->bos);  // a text from nothing
  }
  if (prompt.tokens.empty()) return std::unexpected(api::bad_request(path(), "the prompt is empty"));
  return prompt;
}

}  // namespace weir::serving
