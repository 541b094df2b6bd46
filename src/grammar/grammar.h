// SPDX-License-Identifier: Apache-2.0
// What an answer must look like, and its compiled form. A grammar that is not fully supported is an error that names the feature,
// before any token is made; nothing in it is ever ignored.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/vocabulary.h"

struct weir_grammar;

namespace weir::grammar {

enum class GrammarKind {
  kJsonObject,  // any JSON object
  kJsonSchema,  // text: the schema
  kRegex,       // text: an expression that the whole answer matches
  kChoice,      // one of `choices`
  kLark         // text: a grammar in llguidance's dialect of Lark, which may contain %json {schema}
};

enum class JsonWhitespace {
  kFlexible,  // a space or an indented new line between JSON tokens
  kNone
};

struct GrammarSpec {
  GrammarKind kind = GrammarKind::kJsonObject;
  std::string text = {};
  std::vector<std::string> choices = {};
  JsonWhitespace whitespace = JsonWhitespace::kFlexible;

  bool operator==(const GrammarSpec&) const = default;
};

// Immutable; threads may share it.
class Grammar {
 public:
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  const GrammarSpec& spec() const { return spec_; }
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return vocabulary_; }
  const weir_grammar* native() const { return native_; }

  // Matchers share what the lexer learns; when that has failed or grown too large, new requests should compile anew.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void set_failed() const { failed_.store(true, std::memory_order_relaxed); }

 private:
  friend Result<std::shared_ptr<const Grammar>> compile(const GrammarSpec&, const std::shared_ptr<const Vocabulary>&);
  Grammar(GrammarSpec spec, std::shared_ptr<const Vocabulary> vocabulary, weir_grammar* native);

  GrammarSpec spec_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  weir_grammar* native_;
  mutable std::atomic<bool> failed_ = false;
};

// kInvalidArgument: the text is wrong; kUnsupported: it uses what cannot be enforced, named in the message; kExhausted: too large or
// too much work. Takes from a fraction of a millisecond to seconds, so not for the engine's thread.
Result<std::shared_ptr<const Grammar>> compile(const GrammarSpec& spec, const std::shared_ptr<const Vocabulary>& vocabulary);

}  // namespace weir::grammar
