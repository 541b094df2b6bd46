// SPDX-License-Identifier: Apache-2.0
#include "eval/template_cases.h"

#include <time.h>

#include <ctime>
#include <map>
#include <optional>

#include "base/file_io.h"
#include "base/sha256.h"
#include "formats/gguf_reader.h"
#include "text/chat_template.h"

namespace weir::eval {
namespace {

constexpr std::string_view kFromModel = "@gguf:";

// Finds the text of templates by name, and compiles each once.
class TemplateSource {
 public:
  TemplateSource(const TemplateOptions& options, const json::Object& known) : options_(options), known_(known) {}

  // kNotFound when the source is not here; kCorrupt when its SHA-256 is not the one that the cases were made with.
  Result<const text::ChatTemplate*> get(const std::string& name) {
    if (const auto found = compiled_.find(name); found != compiled_.end()) return &found->second;
    WEIR_ASSIGN(const std::string source, load(name));
    WEIR_TRY(check_digest(name, source));
    WEIR_ASSIGN(text::ChatTemplate compiled, text::ChatTemplate::compile(source, name.size() > 60 ? "case" : name));
    return &compiled_.emplace(name, std::move(compiled)).first->second;
  }

 private:
  // A name known to the file, or the text of a template itself.
  Result<std::string> load(const std::string& name) const {
    if (name.starts_with(kFromModel)) return from_model(name);
    const bool may_be_file = !name.empty() && name.size() < 200 && name.find_first_of("/\n{") == std::string::npos;
    for (const auto& folder : options_.folders) {
      const auto path = folder / (name + ".jinja");
      if (may_be_file && std::filesystem::exists(path)) return read_file(path, 1u << 20);
    }
    if (!known_.contains(name)) return name;
    return fail(ErrorCode::kNotFound, "template {} is not in any --templates folder", name);
  }

  Result<std::string> from_model(const std::string& name) const {
    if (options_.model.empty()) return fail(ErrorCode::kNotFound, "{} needs --model with that GGUF file", name);
    WEIR_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(options_.model));
    return file.get_string("tokenizer.chat_template");
  }

  Status check_digest(const std::string& name, const std::string& source) const {
    const json::Value* entry = json::find(known_, name);
    if (!entry || !entry->is_object()) return {};
    WEIR_ASSIGN(const std::string wanted, json::get_string_or(entry->get_object(), "sha256_utf8", ""));
    if (!wanted.empty() && wanted != sha256_of(source))
      return fail(ErrorCode::kNotFound, "{} here is another version than the cases were made with", name);
    return {};
  }

  const TemplateOptions& options_;
  const json::Object& known_;
  std::map<std::string, text::ChatTemplate> compiled_;
};

std::string first_difference(const std::string& found, const std::string& wanted) {
  std::size_t at = 0;
  while (at < found.size() && at < wanted.size() && found[at] == wanted[at]) ++at;
  const std::size_t from = at > 20 ? at - 20 : 0;
  return fmt::format("differs at byte {}: got {} instead of {}", at, boost::json::serialize(json::Value(found.substr(from, 60))),
                     boost::json::serialize(json::Value(wanted.substr(from, 60))));
}

// The instant in "… fixed at 2026-01-15T12:34:56 …", read as UTC.
std::optional<std::int64_t> fixed_time(const std::string& note) {
  const std::size_t digits = note.find_first_of("0123456789");
  std::tm time{};
  if (digits == std::string::npos || !::strptime(note.c_str() + digits, "%Y-%m-%dT%H:%M:%S", &time)) return std::nullopt;
  return static_cast<std::int64_t>(::timegm(&time));
}

Result<CaseResult> run_case(TemplateSource& source, const json::Object& entry) {
  CaseResult result;
  WEIR_ASSIGN(result.name, json::get_string_or(entry, "id", "case"));
  WEIR_ASSIGN(const std::string name, json::get_string(entry, "template"));
  const json::Value* context = json::find(entry, "context");
  if (!context || !context->is_object()) return fail(ErrorCode::kCorrupt, "case '{}' has no context", result.name);
  const bool wants_error = json::find(entry, "expected_error") != nullptr;
  WEIR_ASSIGN(const std::string wanted, json::get_string_or(entry, "expected", ""));
  WEIR_ASSIGN(const std::string clock, json::get_string_or(entry, "uses_clock", ""));
  const std::optional<std::int64_t> now = fixed_time(clock);

  const auto compiled = source.get(name);
  const auto rendered = compiled ? (*compiled)->render(context->get_object(), now) : Result<std::string>(std::unexpected(compiled.error()));
  if (!compiled && compiled.error().code == ErrorCode::kNotFound) {
    result.ok = false;
    result.figures["missing"] = true;
    result.detail = compiled.error().message;
  } else if (wants_error) {
    result.ok = !rendered;
    if (!result.ok) result.detail = "gave text where an error was expected";
  } else if (!rendered) {
    result.ok = false;
    result.detail = rendered.error().message;
  } else if (*rendered != wanted) {
    result.ok = false;
    result.detail = first_difference(*rendered, wanted);
  }
  return result;
}

}  // namespace

Result<FileReport> run_template_cases(const std::filesystem::path& file, const TemplateOptions& options) {
  FileReport report{.file = file.string(), .format = "templates"};
  WEIR_ASSIGN(const std::string text, read_file(file));
  WEIR_ASSIGN(const json::Value value, json::parse(text, file.string()));
  static const json::Object kNone;
  const json::Array* cases = value.is_array() ? &value.get_array() : nullptr;
  const json::Object* known = &kNone;
  if (value.is_object()) {
    const json::Value* list = json::find(value.get_object(), "cases");
    if (list && list->is_array()) cases = &list->get_array();
    const json::Value* templates = json::find(value.get_object(), "templates");
    if (templates && templates->is_object()) known = &templates->get_object();
  }
  if (!cases) return fail(ErrorCode::kCorrupt, "{}: should hold an array of cases", file.string());

  TemplateSource source(options, *known);
  std::int64_t missing = 0;
  for (const json::Value& entry : *cases) {
    WEIR_ASSIGN(const json::Object* object, json::as_object(entry, "cases"));
    WEIR_ASSIGN(CaseResult result, run_case(source, *object));
    missing += result.figures.contains("missing");
    report.add(std::move(result));
  }
  report.summary = {{"cases", report.cases.size()}, {"missing", missing}};
  return report;
}

}  // namespace weir::eval
