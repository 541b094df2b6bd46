// SPDX-License-Identifier: Apache-2.0
// Tags to JSON.
#include "api/output_parser_tags.h"

#include <algorithm>

namespace weir::api {
namespace {

class TagReader final : public CallReader {
 public:
  TagReader(const CallSyntax& syntax, AnswerWriter& writer, bool opened)
      : tags_(syntax.tags), end_(tags_.function_close.empty() ? syntax.close : tags_.function_close), writer_(writer) {
    if (tags_.function_open.empty() || opened) {
      state_ = State::kName;
    } else {
      marks_.add(tags_.function_open, 0);
    }
    value_close_ = trimmed(tags_.parameter_close);
    drops_first_line_ = (tags_.value_open.empty() ? tags_.key_close : tags_.value_open).ends_with('\n');
    drops_last_line_ = tags_.parameter_close.starts_with('\n');
  }

  ReadStep step(char c) override;
  void finish() override;
  std::size_t unread() const override { return std::max<std::size_t>(marks_.read(), 1); }

 private:
  enum class State { kOpen, kName, kNext, kKey, kValueOpen, kValue };
  enum { kParameter, kEnd };
  ReadStep name(char c);
  ReadStep next(char c);
  ReadStep key(char c);
  ReadStep value(char c);
  void wait_for_next();
  bool begin_value();
  void add_to_value(char c);
  void end_value();

  const ArgumentTags& tags_;
  std::string_view end_, value_close_;
  bool drops_first_line_, drops_last_line_;
  AnswerWriter& writer_;
  const ToolTypes* tool_ = nullptr;
  State state_ = State::kOpen;
  MarkSet marks_;
  std::string text_;  // a name, a key, a value that is converted at its end
  std::string tail_;  // of the value: perhaps its closing tag
  std::vector<std::string> keys_;
  std::uint8_t types_ = kTypeAny;
  bool streams_ = false, first_byte_ = false;
};

ReadStep TagReader::step(char c) {
  switch (state_) {
    case State::kOpen: {
      const int mark = marks_.step(c);
      if (mark >= 0) state_ = State::kName;
      return mark == MarkSet::kNone ? ReadStep::kBad : ReadStep::kMore;
    }
    case State::kName: return name(c);
    case State::kNext: return next(c);
    case State::kKey: return key(c);
    case State::kValueOpen: {
      const int mark = marks_.step(c);
      if (mark >= 0) state_ = State::kValue;
      return mark == MarkSet::kNone ? ReadStep::kBad : ReadStep::kMore;
    }
    case State::kValue: return value(c);
  }
  return ReadStep::kBad;
}

ReadStep TagReader::name(char c) {
  const std::string_view mark = trimmed(tags_.name_close);
  const bool ended = mark.empty() && !is_name_character(c) && !(text_.empty() && is_json_space(c));
  if (!ended) {
    text_ += c;
    if (text_.size() > kMaxName) return ReadStep::kBad;
    if (mark.empty() || !text_.ends_with(mark)) return ReadStep::kMore;
    text_.resize(text_.size() - mark.size());
  }
  const std::string function(trimmed(text_));
  if (!writer_.begin_call(function)) return ReadStep::kBad;
  tool_ = writer_.find(function);
  writer_.arguments("{");
  wait_for_next();
  return ended ? next(c) : ReadStep::kMore;
}

void TagReader::wait_for_next() {
  text_.clear();
  marks_.clear();
  marks_.add(tags_.parameter_open, kParameter);
  marks_.add(end_, kEnd);
  state_ = State::kNext;
}

ReadStep TagReader::next(char c) {
  const int mark = marks_.step(c);
  if (mark == MarkSet::kNone) return ReadStep::kBad;
  if (mark == kParameter) state_ = State::kKey;
  if (mark != kEnd) return ReadStep::kMore;
  writer_.arguments("}");
  return ReadStep::kDone;
}

ReadStep TagReader::key(char c) {
  text_ += c;
  if (text_.size() > kMaxName) return ReadStep::kBad;
  const std::string_view plain = trimmed(tags_.key_close), as_json = trimmed(tags_.json_key_close);
  const bool is_json = !as_json.empty() && text_.ends_with(as_json);
  if (!is_json && !text_.ends_with(plain)) return ReadStep::kMore;
  text_.resize(text_.size() - (is_json ? as_json : plain).size());
  keys_.emplace_back(trimmed(text_));
  types_ = is_json ? kTypeAny : as_json.empty() ? tool_->types(keys_.back()) : kTypeString;
  return begin_value() ? ReadStep::kMore : ReadStep::kBad;
}

bool TagReader::begin_value() {
  if (std::ranges::count(keys_, keys_.back()) > 1) return false;
  std::string text = keys_.size() > 1 ? ", \"" : "\"";
  append_json_escaped(text, keys_.back());
  writer_.arguments(text + "\": ");
  streams_ = types_ == kTypeString && tags_.quote_open.empty();
  if (streams_) writer_.arguments("\"");
  text_.clear();
  tail_.clear();
  first_byte_ = true;
  marks_.clear();
  marks_.add(tags_.value_open, 0);
  state_ = tags_.value_open.empty() ? State::kValue : State::kValueOpen;
  return true;
}

ReadStep TagReader::value(char c) {
  if (std::exchange(first_byte_, false) && drops_first_line_ && c == '\n') return ReadStep::kMore;
  tail_ += c;
  while (!tail_.empty()) {
    std::string_view rest = tail_;
    if (drops_last_line_ && rest[0] == '\n') rest.remove_prefix(1);
    if (rest == value_close_) {
      end_value();
      wait_for_next();
      return ReadStep::kMore;
    }
    if (value_close_.starts_with(rest)) return ReadStep::kMore;
    add_to_value(tail_[0]);
    tail_.erase(0, 1);
  }
  return text_.size() > kMaxHeldValue ? ReadStep::kBad : ReadStep::kMore;
}

void TagReader::add_to_value(char c) {
  if (!streams_) {
    text_ += c;
    return;
  }
  std::string piece;
  append_json_escaped(piece, std::string_view(&c, 1));
  writer_.arguments(piece);
}

void TagReader::end_value() {
  if (streams_) {
    writer_.arguments("\"");
    return;
  }
  std::string_view text = text_;
  const bool quoted = !tags_.quote_open.empty() && text.size() >= tags_.quote_open.size() + tags_.quote_close.size() &&
                      text.starts_with(tags_.quote_open) && text.ends_with(tags_.quote_close);
  if (quoted) text = text.substr(tags_.quote_open.size(), text.size() - tags_.quote_open.size() - tags_.quote_close.size());
  writer_.arguments(json_value_of(text, quoted ? kTypeString : types_));
}

void TagReader::finish() {
  if (state_ != State::kValue) return;
  for (const char c : std::exchange(tail_, {})) add_to_value(c);
  if (!streams_ && !text_.empty()) end_value();
}

}  // namespace

std::unique_ptr<CallReader> make_tag_reader(const CallSyntax& syntax, AnswerWriter& writer, bool opened) {
  return std::make_unique<TagReader>(syntax, writer, opened);
}

}  // namespace weir::api
