// SPDX-License-Identifier: Apache-2.0
// Chat templates: Jinja as transformers runs it (trim_blocks, lstrip_blocks, loop controls, tojson, strftime_now,
// raise_exception, Python's string methods), rendered by minijinja in the Rust library of native/text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::text {

class ChatTemplate {
 public:
  // kCorrupt with the line when the template does not parse.
  static Result<ChatTemplate> compile(std::string_view source, std::string name);
  // A built-in template by name ("chatml", "llama2", …), for models that bring none. kNotFound lists the names.
  static Result<ChatTemplate> named(std::string_view name);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  const std::string& name() const { return name_; }
  // context: messages, tools, add_generation_prompt, bos_token, eos_token, … `unix_seconds` is the clock that strftime_now
  // reads (local time zone UTC); absent = now. kInvalidArgument with the template's own message when it raises.
  Result<std::string> render(const json::Object& context, std::optional<std::int64_t> unix_seconds = std::nullopt) const;

 private:
  ChatTemplate() = default;
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace weir::text
