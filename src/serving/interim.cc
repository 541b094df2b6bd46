// SPDX-License-Identifier: Apache-2.0
// Stands in for parts of src/api that are being written; goes away with the first of them.
#include <array>

#include "api/endpoints.h"
#include "api/openai_chat.h"
#include "api/output_format.h"

namespace weir::api {
namespace {
json::Object any_schema() { return {{"type", "object"}}; }
constexpr std::array kEndpoints{Endpoint{.method = "POST",
                                         .path = "/v1/chat/completions",
                                         .operation = "createChatCompletion",
                                         .handler = "chat_completion",
                                         .tag = "chat",
                                         .summary = "",
                                         .uses_model = true,
                                         .request = {"ChatRequest", any_schema}}};
class PlainParser final : public OutputParser {
  ParsedDelta push(std::string_view text) override { return {.content = std::string(text)}; }
  ParsedDelta finish() override { return {}; }
  bool called_tools() const override { return false; }
  bool in_reasoning() const override { return false; }
};
}  // namespace

__attribute__((weak)) json::Object openai_error_schema() { return any_schema(); }
__attribute__((weak)) std::span<const Endpoint> all_endpoints() { return kEndpoints; }
__attribute__((weak)) std::unique_ptr<OutputParser> OutputParser::create(const OutputFormat&, const GenerationRequest&, std::string_view,
                                                                         std::string) {
  return std::make_unique<PlainParser>();
}
__attribute__((weak)) ApiResult<std::optional<grammar::GrammarSpec>> answer_grammar(const OutputFormat&, const GenerationRequest& request,
                                                                                    std::string_view, const tokenizer::Tokenizer&) {
  return request.options.grammar;
}
__attribute__((weak)) const OutputFormat* guess_output_format(std::string_view, const std::function<bool(std::string_view)>&) {
  return find_output_format("none");
}
}  // namespace weir::api
