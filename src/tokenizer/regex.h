// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizer files on PCRE2. Those files are written for Oniguruma (Ruby's syntax), so an expression is
// translated first: what means something else in PCRE2 (\s, \w, \b, \h, $, …) is spelt out, what has no equal is refused.
// Matching is bounded in steps, stack and time, so that no expression or text can hang or crash.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::tokenizer {

class Regex {
 public:
  struct Match {
    std::size_t begin, end;
  };

  // kUnsupported naming the construct, kCorrupt when it is not an expression.
  static Result<Regex> compile(std::string_view oniguruma);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first match at or after `from` in valid UTF-8. A search that exceeds its limits finds nothing.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

  const std::string& source() const { return source_; }

 private:
  struct Compiled;
  Regex(std::string source, std::unique_ptr<Compiled> compiled);

  std::string source_;
  std::unique_ptr<Compiled> compiled_;
};

// While one lives, all searches of its thread together may take a few seconds for each megabyte; then they find nothing. Only
// an expression made to be slow gets there.
class RegexTimeLimit {
 public:
  explicit RegexTimeLimit(std::size_t text_bytes);
  ~RegexTimeLimit();
  RegexTimeLimit(const RegexTimeLimit&) = delete;
  RegexTimeLimit& operator=(const RegexTimeLimit&) = delete;
};

// The expression in PCRE2's syntax (with PCRE2_UTF and PCRE2_UCP).
Result<std::string> translate_regex(std::string_view oniguruma);

}  // namespace weir::tokenizer
