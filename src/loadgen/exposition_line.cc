// SPDX-License-Identifier: Apache-2.0
#include "loadgen/exposition_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tokenizer/utf8.h"

namespace weir::loadgen {
namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool blank(char c) { return c == ' ' || c == '\t'; }

std::unexpected<Error> corrupt(const char* what) { return fail(ErrorCode::kCorrupt, "{}", what); }

// Reads a line from left to right.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool skip_blanks() {
    const std::size_t before = at_;
    while (!done() && blank(text_[at_])) ++at_;
    return at_ > before;
  }
  template <class Predicate>
  std::string_view take_while(Predicate predicate) {
    const std::size_t begin = at_;
    while (!done() && predicate(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string_view word() {
    return take_while([](char c) { return !blank(c); });
  }
  char next() { return text_[at_++]; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

Result<std::string> parse_label_value(Cursor& cursor, const ExpositionLimits& limits) {
  if (!cursor.take('"')) return corrupt("a label's value is not in quotes");
  std::string value;
  while (true) {
    if (cursor.done()) return corrupt("a label's value does not end");
    char c = cursor.next();
    if (c == '"') break;
    if (c == '\\') {
      if (cursor.done()) return corrupt("a label's value does not end");
      c = cursor.next();
      if (c == 'n')
        c = '\n';
      else if (c != '\\' && c != '"')
        return corrupt("a label's value has an escape other than \\\\, \\\" and \\n");
    }
    value += c;
    if (value.size() > limits.max_label_value) return corrupt("a label's value is too long");
  }
  if (tokenizer::valid_utf8_prefix(value) != value.size()) return corrupt("a label's value is not UTF-8");
  return value;
}

Result<MetricLabels> parse_labels(Cursor& cursor, const ExpositionLimits& limits) {
  MetricLabels labels;
  cursor.skip_blanks();
  while (!cursor.take('}')) {
    const std::string_view name = letter(cursor.peek()) ? cursor.take_while([](char c) { return letter(c) || digit(c); }) : "";
    if (name.empty() || name.size() > limits.max_name) return corrupt("a label has no proper name");
    if (labels.size() == limits.max_labels) return corrupt("a series has too many labels");
    cursor.skip_blanks();
    if (!cursor.take('=')) return corrupt("a label's name is not followed by '='");
    cursor.skip_blanks();
    WEIR_ASSIGN(std::string value, parse_label_value(cursor, limits));
    labels.emplace_back(name, std::move(value));
    cursor.skip_blanks();
    if (cursor.take(',')) {
      cursor.skip_blanks();
      continue;
    }
    if (cursor.peek() != '}') return corrupt("labels do not end with '}'");
  }
  std::sort(labels.begin(), labels.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(labels.begin(), labels.end(), same) != labels.end()) return corrupt("a series has a label twice");
  return labels;
}

// Milliseconds in one format, seconds with a fraction in the other.
bool is_time(std::string_view text) {
  const auto value = parse_metric_value(text);
  return value && std::isfinite(*value) && std::abs(*value) < 1e18;
}

Status parse_exemplar(Cursor& cursor, const ExpositionLimits& limits) {
  cursor.skip_blanks();
  if (!cursor.take('{')) return corrupt("an exemplar has no labels");
  WEIR_TRY(parse_labels(cursor, limits));
  cursor.skip_blanks();
  if (!parse_metric_value(cursor.word())) return corrupt("an exemplar has no proper value");
  if (cursor.skip_blanks() && !cursor.done() && !is_time(cursor.word())) return corrupt("an exemplar's time is no number");
  cursor.skip_blanks();
  if (!cursor.done()) return corrupt("something follows an exemplar");
  return {};
}

}  // namespace

bool is_metric_name(std::string_view name) {
  const auto fits = [](char c) { return letter(c) || c == ':'; };
  return !name.empty() && fits(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) { return fits(c) || digit(c); });
}

std::optional<double> parse_metric_value(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view rest = text;
  if (negative || text.starts_with('+')) rest.remove_prefix(1);
  const auto is = [&](std::string_view word) {
    return std::equal(rest.begin(), rest.end(), word.begin(), word.end(), [](char a, char b) { return (a | 0x20) == b; });
  };
  if (is("nan") && rest.size() == text.size()) return std::numeric_limits<double>::quiet_NaN();
  if (is("inf") || is("infinity")) return negative ? -HUGE_VAL : HUGE_VAL;
  if (rest.empty() || !(digit(rest[0]) || rest[0] == '.')) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return negative ? -value : value;
}

Result<SampleLine> parse_sample_line(std::string_view line, const ExpositionLimits& limits) {
  Cursor cursor(line);
  cursor.skip_blanks();
  SampleLine sample;
  sample.name = cursor.take_while([](char c) { return letter(c) || digit(c) || c == ':'; });
  if (!is_metric_name(sample.name)) return corrupt("a line begins with no metric's name");
  if (sample.name.size() > limits.max_name) return corrupt("a metric's name is too long");
  bool apart = cursor.skip_blanks();
  if (cursor.take('{')) {
    WEIR_ASSIGN(sample.labels, parse_labels(cursor, limits));
    apart = true;
    cursor.skip_blanks();
  }
  const auto value = apart ? parse_metric_value(cursor.word()) : std::nullopt;
  if (!value) return corrupt("a metric has no proper value");
  sample.value = *value;
  cursor.skip_blanks();
  if (!cursor.done() && cursor.peek() != '#') {
    if (!is_time(cursor.word())) return corrupt("a sample's time is no number");
    cursor.skip_blanks();
  }
  if (cursor.take('#')) {
    WEIR_TRY(parse_exemplar(cursor, limits));
  }
  if (!cursor.done()) return corrupt("something follows a sample");
  return sample;
}

}  // namespace weir::loadgen
