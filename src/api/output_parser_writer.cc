// SPDX-License-Identifier: Apache-2.0
// Deltas and ids.
#include "api/output_parser_writer.h"

#include <algorithm>

#include "base/sha256.h"

namespace weir::api {

AnswerWriter::AnswerWriter(const GenerationRequest& request, IdStyle ids, std::string id_seed)
    : separate_(request.separate_reasoning), parallel_(request.tool_choice.parallel), ids_(ids), id_seed_(std::move(id_seed)) {
  if (request.tool_choice.kind != ToolChoice::Kind::kNone) tools_ = tool_types(request.tools);
}

const ToolTypes* AnswerWriter::find(std::string_view function) const {
  const auto found = std::ranges::find(tools_, function, &ToolTypes::name);
  return found == tools_.end() ? nullptr : &*found;
}

bool AnswerWriter::begin_call(std::string_view function) {
  if (!find(function) || (calls_ > 0 && !parallel_)) return false;
  delta_.tool_calls.push_back({.index = calls_, .id = make_id(), .name = std::string(function)});
  ++calls_;
  ++changes_;
  return true;
}

void AnswerWriter::arguments(std::string_view json) {
  ++changes_;
  if (json.empty()) return;
  const std::int32_t index = calls_ - 1;
  if (delta_.tool_calls.empty() || delta_.tool_calls.back().index != index) delta_.tool_calls.push_back({.index = index});
  delta_.tool_calls.back().arguments += json;
}

// Letters and digits from a hash of the answer's seed and the call's number.
std::string AnswerWriter::make_id() const {
  static constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const std::string hash = sha256_of(id_seed_ + '/' + std::to_string(calls_));
  const std::size_t size = ids_ == IdStyle::kNine ? 9 : 24;
  std::string id = ids_ == IdStyle::kNine ? "" : "call_";
  for (std::size_t i = 0; i < size; ++i) id += kLetters[static_cast<std::size_t>(std::stoul(hash.substr(2 * i, 2), nullptr, 16)) % 62];
  return id;
}

}  // namespace weir::api
