// SPDX-License-Identifier: Apache-2.0
// Compiling a spec with the Rust library.
#include "grammar/grammar.h"

#include <utility>

#include "base/json.h"
#include "grammar/native.h"

namespace weir::grammar {
namespace {

weir_grammar_kind native_kind(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonObject: return WEIR_GRAMMAR_JSON_OBJECT;
    case GrammarKind::kJsonSchema: return WEIR_GRAMMAR_JSON_SCHEMA;
    case GrammarKind::kRegex: return WEIR_GRAMMAR_REGEX;
    case GrammarKind::kChoice: return WEIR_GRAMMAR_CHOICE;
    case GrammarKind::kLark: return WEIR_GRAMMAR_LARK;
  }
  return WEIR_GRAMMAR_JSON_OBJECT;
}

const char* name(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonObject: return "JSON object";
    case GrammarKind::kJsonSchema: return "JSON schema";
    case GrammarKind::kRegex: return "regular expression";
    case GrammarKind::kChoice: return "choice";
    case GrammarKind::kLark: return "Lark grammar";
  }
  return "grammar";
}

}  // namespace

Grammar::Grammar(GrammarSpec spec, std::shared_ptr<const Vocabulary> vocabulary, weir_grammar* native)
    : spec_(std::move(spec)), vocabulary_(std::move(vocabulary)), native_(native) {}

Grammar::~Grammar() { weir_grammar_free(native_); }

Result<std::shared_ptr<const Grammar>> compile(const GrammarSpec& spec, const std::shared_ptr<const Vocabulary>& vocabulary) {
  WEIR_ASSIGN(const weir_vocabulary* words, vocabulary->native());
  const std::string source =
      spec.kind == GrammarKind::kChoice ? boost::json::serialize(json::Array(spec.choices.begin(), spec.choices.end())) : spec.text;
  weir_grammar* compiled = nullptr;
  NativeError error;
  const bool compact = spec.whitespace == JsonWhitespace::kNone;
  const weir_text_code code =
      weir_grammar_compile(words, native_kind(spec.kind), source.data(), source.size(), compact, &compiled, &error.text);
  if (code != WEIR_TEXT_OK) return std::unexpected(error.as_error(code).error().with_context(name(spec.kind)));
  return std::shared_ptr<const Grammar>(new Grammar(spec, vocabulary, compiled));
}

}  // namespace weir::grammar
