// SPDX-License-Identifier: Apache-2.0
// Where the parsers put what they find: content, reasoning, calls. Knows which functions may be called and makes the calls' ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/generation_request.h"
#include "api/output.h"
#include "api/output_format_table.h"
#include "api/tool_types.h"

namespace weir::api {

class AnswerWriter {
 public:
  AnswerWriter(const GenerationRequest& request, IdStyle ids, std::string id_seed);

  void content(std::string_view text) { delta_.content += text; }
  // Into its own field, or with the content when that was asked for.
  void reasoning(std::string_view text) { (separate_ ? delta_.reasoning : delta_.content) += text; }
  bool separates_reasoning() const { return separate_; }

  bool wants_calls() const { return !tools_.empty(); }
  const ToolTypes* find(std::string_view function) const;
  // Begins a call; false when there is no such function, or no further call may be.
  bool begin_call(std::string_view function);
  void arguments(std::string_view json);  // of the call begun last

  std::int32_t calls() const { return calls_; }
  std::uint64_t changes() const { return changes_; }  // grows when a call begins or goes on
  ParsedDelta take() { return std::exchange(delta_, {}); }

 private:
  std::string make_id() const;

  std::vector<ToolTypes> tools_;
  bool separate_, parallel_;
  IdStyle ids_;
  std::string id_seed_;
  std::int32_t calls_ = 0;
  std::uint64_t changes_ = 0;
  ParsedDelta delta_;
};

}  // namespace weir::api
