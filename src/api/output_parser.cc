// SPDX-License-Identifier: Apache-2.0
// Which parser, and where the answer begins.
#include "api/output_parser_calls.h"
#include "api/output_parser_start.h"

namespace weir::api {
namespace {

// The message that the answer goes on in.
std::string_view unfinished_message(const GenerationRequest& request) {
  if (!request.continue_final_message || request.messages.empty() || !request.messages.back().is_object()) return {};
  const json::Value* content = json::find(request.messages.back().get_object(), "content");
  return content && content->is_string() ? std::string_view(content->get_string()) : std::string_view();
}

}  // namespace

AnswerStart answer_start(const OutputFormat& format, const GenerationRequest& request, std::string_view rendered_prompt) {
  const std::string_view open = trimmed(format.reasoning.open), close = trimmed(format.reasoning.close);
  if (close.empty()) return AnswerStart::kNoReasoning;
  if (const std::string_view begun = unfinished_message(request); !begun.empty()) {
    const std::size_t opened = begun.rfind(open), closed = begun.rfind(close);
    const bool inside = opened != begun.npos && (closed == begun.npos || closed < opened);
    return inside ? AnswerStart::kInReasoning : AnswerStart::kNoReasoning;
  }
  const std::string_view prompt = trimmed(rendered_prompt);
  if (prompt.ends_with(open)) return AnswerStart::kInReasoning;
  if (prompt.ends_with(close)) return AnswerStart::kNoReasoning;
  return format.reasoning.always ? AnswerStart::kInReasoning : AnswerStart::kMayReason;
}

std::string_view channel_start(const ChannelMarks& marks, std::string_view rendered_prompt) {
  const std::size_t at = rendered_prompt.rfind(marks.start);
  if (at == rendered_prompt.npos) return {};
  std::string_view rest = rendered_prompt.substr(at + marks.start.size());
  if (!rest.starts_with(marks.role)) return {};
  rest.remove_prefix(marks.role.size());
  return rest.find(marks.end) == rest.npos ? rest : std::string_view();
}

std::unique_ptr<OutputParser> OutputParser::create(const OutputFormat& format, const GenerationRequest& request,
                                                   std::string_view rendered_prompt, std::string id_seed) {
  if (!format.channels.message.empty()) {
    return make_channel_parser(format, request, channel_start(format.channels, rendered_prompt), std::move(id_seed));
  }
  return make_marked_parser(format, request, answer_start(format, request, rendered_prompt), std::move(id_seed));
}

}  // namespace weir::api
