// SPDX-License-Identifier: Apache-2.0
// Prompts out of files: JSONL and ShareGPT. Whatever a file holds, it is an error that names the line, or a prompt.
#include <algorithm>
#include <cmath>

#include "loadgen/prompts.h"

namespace weir::loadgen {
namespace {

constexpr std::int64_t kMaxTokens = 4'000'000;

Result<std::int64_t> max_tokens_of(const json::Object& object, const PromptOptions& options, Random& outputs) {
  for (const char* key : {"max_tokens", "output_tokens", "output_length"})
    if (json::find(object, key)) {
      WEIR_ASSIGN(const std::int64_t tokens, json::get_int(object, key));
      if (tokens < 0 || tokens > kMaxTokens) return fail(ErrorCode::kInvalidArgument, "'{}' is out of range", key);
      return tokens;
    }
  return std::llround(std::min(options.output_tokens.draw(outputs), static_cast<double>(kMaxTokens)));
}

// The members of an array without its brackets, as they stand in a request.
std::string joined(const json::Array& array) {
  std::string text = boost::json::serialize(array);
  return text.substr(1, text.size() - 2);
}

Result<Conversation> parse_line(std::string_view line, const PromptOptions& options, Random& outputs) {
  WEIR_ASSIGN(const json::Value value, json::parse(line, "prompt"));
  Turn turn;
  if (value.is_string()) {
    const std::string text(value.get_string().data(), value.get_string().size());
    turn.content = options.chat ? message("user", text) : json_string(text);
    turn.max_tokens = std::llround(options.output_tokens.draw(outputs));
    return Conversation{{turn}};
  }
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "prompt"));
  WEIR_ASSIGN(turn.max_tokens, max_tokens_of(*object, options, outputs));
  if (const json::Value* messages = json::find(*object, "messages")) {
    if (!options.chat) return fail(ErrorCode::kInvalidArgument, "messages need chat completions");
    if (!messages->is_array() || messages->get_array().empty()) return fail(ErrorCode::kCorrupt, "'messages' is not a list of messages");
    turn.content = joined(messages->get_array());
    return Conversation{{turn}};
  }
  for (const char* key : {"prompt", "text", "text_input", "input", "question"}) {
    if (!json::find(*object, key)) continue;
    WEIR_ASSIGN(const std::string text, json::get_string(*object, key));
    turn.content = options.chat ? message("user", text) : json_string(text);
    return Conversation{{turn}};
  }
  return fail(ErrorCode::kCorrupt, "there is neither 'messages' nor 'prompt'");
}

// The human's words, each with the length of the answer that was recorded behind it.
Result<Conversation> parse_record(const json::Value& record, std::int64_t turns, const PromptOptions& options, const Vocabulary& vocabulary,
                                  Random& outputs) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(record, "record"));
  const json::Value* said = json::find(*object, "conversations");
  if (!said || !said->is_array()) return fail(ErrorCode::kCorrupt, "'conversations' is missing");
  Conversation conversation;
  bool human_spoke = false;
  for (const json::Value& part : said->get_array()) {
    WEIR_ASSIGN(const json::Object* one, json::as_object(part, "turn"));
    WEIR_ASSIGN(const std::string from, json::get_string_or(*one, "from", ""));
    WEIR_ASSIGN(const std::string text, json::get_string_or(*one, "value", ""));
    if (from == "human" || from == "user") {
      if (static_cast<std::int64_t>(conversation.turns.size()) >= turns || text.empty()) break;
      conversation.turns.push_back({.content = options.chat ? message("user", text) : json_string(text),
                                    .max_tokens = std::llround(options.output_tokens.draw(outputs)),
                                    .prompt_tokens = vocabulary.count(text)});
      human_spoke = true;
    } else if (human_spoke) {
      conversation.turns.back().max_tokens = std::max<std::int64_t>(1, vocabulary.count(text));
      human_spoke = false;
    }
  }
  return conversation;
}

}  // namespace

Result<std::vector<Conversation>> jsonl_prompts(std::string_view text, const PromptOptions& options) {
  Random outputs(options.seed, kOutputLengthStream);
  std::vector<Conversation> conversations;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto conversation = parse_line(line, options, outputs);
    if (!conversation) return std::unexpected(std::move(conversation).error().with_context(fmt::format("line {}", number)));
    conversations.push_back(std::move(*conversation));
    if (static_cast<std::int64_t>(conversations.size()) >= options.count) break;
  }
  if (conversations.empty()) return fail(ErrorCode::kCorrupt, "there are no prompts");
  return conversations;
}

Result<std::vector<Conversation>> sharegpt_prompts(std::string_view text, const PromptOptions& options, const Vocabulary& vocabulary) {
  WEIR_ASSIGN(const json::Value value, json::parse(text, "ShareGPT file", {.max_bytes = 2ull << 30}));
  if (!value.is_array()) return fail(ErrorCode::kCorrupt, "a ShareGPT file is an array of records");
  Random outputs(options.seed, kOutputLengthStream), lengths(options.seed, kPromptLengthStream), order(options.seed, kOrderStream);
  std::vector<Conversation> conversations;
  // In a seeded order (Fisher and Yates), so that a part of the file stands for all of it.
  std::vector<std::size_t> indices(value.get_array().size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  for (std::size_t i = indices.size(); i > 1; --i) std::swap(indices[i - 1], indices[order.below(i)]);
  for (const std::size_t index : indices) {
    const std::int64_t turns = std::llround(std::clamp(options.turns.draw(lengths), 1.0, 1000.0));
    auto conversation = parse_record(value.get_array()[index], options.chat ? turns : 1, options, vocabulary, outputs);
    if (!conversation) return std::unexpected(std::move(conversation).error().with_context(fmt::format("record {}", index)));
    if (!conversation->turns.empty()) conversations.push_back(std::move(*conversation));
    if (static_cast<std::int64_t>(conversations.size()) >= options.count) break;
  }
  if (conversations.empty()) return fail(ErrorCode::kCorrupt, "no record begins with a human's words");
  return conversations;
}

}  // namespace weir::loadgen
