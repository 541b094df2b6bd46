// SPDX-License-Identifier: Apache-2.0
// How an answer begins, which the end of the prompt tells: many templates open the reasoning themselves, or close it at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/output_format.h"
#include "api/output_format_table.h"

namespace weir::api {

enum class AnswerStart { kInReasoning, kMayReason, kNoReasoning };

AnswerStart answer_start(const OutputFormat& format, const GenerationRequest& request, std::string_view rendered_prompt);

// With channels: what the prompt has of the first message's header or text, behind the role.
std::string_view channel_start(const ChannelMarks& marks, std::string_view rendered_prompt);

std::unique_ptr<OutputParser> make_marked_parser(const OutputFormat& format, const GenerationRequest& request, AnswerStart start,
                                                 std::string id_seed);
std::unique_ptr<OutputParser> make_channel_parser(const OutputFormat& format, const GenerationRequest& request, std::string_view start,
                                                  std::string id_seed);

}  // namespace weir::api
