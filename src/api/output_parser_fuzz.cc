// SPDX-License-Identifier: Apache-2.0
// Any text in any format, cut anywhere: the same as in one piece, and without tools or reasoning not a byte is lost. The input's first
// bytes choose format, request and cuts.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "api/output_json_scanner.h"
#include "api/output_parser_testing.h"

namespace {

using namespace weir;  // NOLINT: a program of one file

bool same(const api::testing::Answer& a, const api::testing::Answer& b) {
  if (a.content != b.content || a.reasoning != b.reasoning || a.calls.size() != b.calls.size()) return false;
  for (std::size_t i = 0; i < a.calls.size(); ++i) {
    if (a.calls[i].id != b.calls[i].id || a.calls[i].name != b.calls[i].name || a.calls[i].arguments != b.calls[i].arguments) return false;
  }
  return true;
}

std::vector<std::string_view> cut(std::string_view text, std::uint8_t step) {
  std::vector<std::string_view> pieces;
  for (std::size_t size = 1; !text.empty(); size = (size * 7 + step) % 11 + 1) {
    const std::string_view piece = text.substr(0, step == 0 ? 1 : size);
    pieces.push_back(piece);
    text.remove_prefix(piece.size());
  }
  return pieces;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3 || size > 20000) return 0;
  const auto names = api::output_format_names();
  const api::OutputFormat& format = *api::find_output_format(names[data[0] % names.size()]);
  api::GenerationRequest request = api::testing::request_with_tools();
  if (data[1] & 1) request.tool_choice.parallel = false;
  if (data[1] & 2) request.separate_reasoning = false;
  const std::string_view prompt = data[1] & 4 ? "<think>\n" : data[1] & 8 ? "<|start|>assistant<|channel|>analysis<|message|>" : "";
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);

  const api::testing::Answer whole = api::testing::parse(format, request, prompt, {text});
  if (!same(whole, api::testing::parse(format, request, prompt, cut(text, data[2])))) std::abort();
  if (whole.content.size() + whole.reasoning.size() > text.size()) std::abort();
  for (const auto& call : whole.calls) {
    if (json::parse(call.arguments, "arguments")) continue;
    // Cut or wrong in the middle: still a beginning of JSON.
    api::JsonScanner scanner(true);
    for (const char c : call.arguments) {
      if (scanner.step(c) == api::ReadStep::kBad) std::abort();
    }
  }
  request.tools.clear();
  const api::testing::Answer plain = api::testing::parse(*api::find_output_format("none"), request, "", cut(text, data[2]));
  if (plain.content != text) std::abort();
  return 0;
}
