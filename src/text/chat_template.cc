// SPDX-License-Identifier: Apache-2.0
// The C++ face of the Rust library: owns the handle, turns its codes into errors.
#include "text/chat_template.h"

#include <ctime>
#include <utility>

#include "text/named_templates.h"
#include "weir_text.h"

namespace weir::text {
namespace {

// A text of the library, freed at the end.
struct OwnedText {
  weir_text text{nullptr, 0};
  OwnedText() = default;
  OwnedText(const OwnedText&) = delete;
  OwnedText& operator=(const OwnedText&) = delete;
  ~OwnedText() { weir_text_free(text); }
  std::string str() const { return text.size ? std::string(text.data, text.size) : std::string(); }
};

ErrorCode error_code(weir_text_code code) {
  switch (code) {
    case WEIR_TEXT_SYNTAX: return ErrorCode::kCorrupt;
    case WEIR_TEXT_UNSUPPORTED: return ErrorCode::kUnsupported;
    case WEIR_TEXT_LIMIT: return ErrorCode::kExhausted;
    case WEIR_TEXT_PANIC: return ErrorCode::kInternal;
    default: return ErrorCode::kInvalidArgument;
  }
}

std::unexpected<Error> to_error(weir_text_code code, const OwnedText& message) {
  return std::unexpected(Error{error_code(code), message.str()});
}

}  // namespace

Result<ChatTemplate> ChatTemplate::compile(std::string_view source, std::string name) {
  weir_template* compiled = nullptr;
  OwnedText error;
  const weir_text_code code = weir_template_compile(source.data(), source.size(), name.data(), name.size(), &compiled, &error.text);
  if (code != WEIR_TEXT_OK) return to_error(code, error);
  ChatTemplate result;
  result.name_ = std::move(name);
  result.handle_ = compiled;
  return result;
}

Result<ChatTemplate> ChatTemplate::named(std::string_view name) {
  const NamedTemplate* found = find_named_template(name);
  if (!found) return fail(ErrorCode::kNotFound, "no built-in chat template \"{}\"; there are: {}", name, named_template_list());
  return compile(found->source, std::string(name));
}

ChatTemplate::~ChatTemplate() { weir_template_free(static_cast<weir_template*>(handle_)); }

ChatTemplate::ChatTemplate(ChatTemplate&& other) noexcept : name_(std::move(other.name_)), handle_(std::exchange(other.handle_, nullptr)) {}

ChatTemplate& ChatTemplate::operator=(ChatTemplate&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(handle_, other.handle_);
  return *this;
}

Result<std::string> ChatTemplate::render(const json::Object& context, std::optional<std::int64_t> unix_seconds) const {
  const std::string json = boost::json::serialize(context);
  const std::int64_t now = unix_seconds.value_or(static_cast<std::int64_t>(std::time(nullptr)));
  OwnedText text;
  const weir_text_code code = weir_template_render(static_cast<const weir_template*>(handle_), json.data(), json.size(), now, &text.text);
  if (code != WEIR_TEXT_OK) return to_error(code, text);
  return text.str();
}

}  // namespace weir::text
