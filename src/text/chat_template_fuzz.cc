// SPDX-License-Identifier: Apache-2.0
// Any text as a template: it may be refused or fail, but compiling and rendering must come back.
#include <cstdint>
#include <string_view>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weir::json::Object context{
      {"messages", weir::json::Array{weir::json::Object{{"role", "user"}, {"content", "Hi"}},
                                     weir::json::Object{{"role", "assistant"}, {"content", nullptr}, {"tool_calls", weir::json::Array{}}}}},
      {"tools", nullptr},
      {"add_generation_prompt", true},
      {"bos_token", "<s>"},
      {"eos_token", "</s>"}};
  auto chat = weir::text::ChatTemplate::compile({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (chat) static_cast<void>(chat->render(context, 0));
  return 0;
}
