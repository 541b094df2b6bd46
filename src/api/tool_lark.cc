// SPDX-License-Identifier: Apache-2.0
// Lark's syntax.
#include "api/tool_lark.h"

#include <fmt/core.h>

#include "api/output_json_scanner.h"
#include "api/output_parser_calls.h"

namespace weir::api {
namespace {

constexpr std::string_view kAnything = "/(?s:.)*/";

std::string lark_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == 0x7f) {
      out += "\\u007f";
    } else {
      append_json_escaped(out, std::string_view(&c, 1));
    }
  }
  return out + '"';
}

}  // namespace

std::pair<std::size_t, TokenId> LarkWriter::special_at(std::string_view text) const {
  if (text.empty() || (text[0] != '<' && text[0] != '[')) return {0, 0};
  const std::size_t end = text.find(text[0] == '<' ? '>' : ']');
  if (end == text.npos) return {0, 0};
  const auto id = tokenizer_.find(text.substr(0, end + 1));
  const bool special = id && (tokenizer_.kind(*id) == tokenizer::TokenKind::kControl);
  return special ? std::pair{end + 1, *id} : std::pair<std::size_t, TokenId>{0, 0};
}

bool LarkWriter::begins_special(std::string_view text) const { return special_at(text).first > 0; }

std::string LarkWriter::text(std::string_view text) const {
  std::string out, plain;
  const auto flush = [&] {
    if (!plain.empty()) out += lark_string(plain) + ' ';
    plain.clear();
  };
  while (!text.empty()) {
    const auto [size, id] = special_at(text);
    if (size > 0) {
      flush();
      out += fmt::format("<[{}]> ", id);
    } else {
      plain += text[0];
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  flush();
  return out;
}

std::string LarkWriter::schema(const json::Value& schema) { return "%json " + boost::json::serialize(schema) + ' '; }

std::string LarkWriter::rule(std::string_view body) {
  const std::string name = fmt::format("r{}", count_++);
  rules_ += fmt::format("{}: {}\n", name, body);
  return name + ' ';
}

std::string LarkWriter::terminal(std::string_view body) {
  const std::string name = fmt::format("T{}", count_++);
  rules_ += fmt::format("{}: {}\n", name, body);
  return name + ' ';
}

std::string LarkWriter::expression_without(const std::vector<std::string_view>& marks) const {
  std::string out(kAnything);
  for (const std::string_view mark : marks) {
    if (!mark.empty() && !begins_special(mark)) out += fmt::format(" & ~({} {} {})", kAnything, lark_string(mark), kAnything);
  }
  return out;
}

std::string LarkWriter::text_without(const std::vector<std::string_view>& marks) {
  return terminal(expression_without(marks) + " & /(?s:.)+/");
}

std::string LarkWriter::text_until(std::string_view mark, const std::vector<std::string_view>& without) {
  if (begins_special(mark)) {
    return fmt::format("{}? {}", text_without(without), text(mark));
  }
  std::vector<std::string_view> marks = without;
  marks.push_back(trimmed(mark));
  return terminal(fmt::format("({}) {}", expression_without(marks), lark_string(mark)));
}

}  // namespace weir::api
