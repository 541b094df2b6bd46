// SPDX-License-Identifier: Apache-2.0
// Calls as JSON, as a name with JSON, and as Python. Those between tags are in output_parser_tags.cc.
#include "api/output_parser_calls.h"

#include <algorithm>

#include "api/output_parser_tags.h"
#include "api/output_python_scanner.h"

namespace weir::api {
namespace {

// Takes the bytes of a JSON string's inside to what they stand for, one at a time; half a surrogate pair alone is wrong.
class StringDecoder {
 public:
  // False: not a byte of a string. `out` gets what is complete.
  bool step(char c, std::string& out) {
    text_ += c;
    if (text_[0] != '\\') {
      out += std::exchange(text_, {});
      return true;
    }
    const bool code = text_.size() > 1 && text_[1] == 'u';
    if (text_.size() < (code ? 6u : 2u)) return true;
    const bool high = code && text_.size() == 6 && std::string_view("dD").find(text_[2]) != std::string_view::npos && text_[3] >= '8' &&
                      std::string_view("89abAB").find(text_[3]) != std::string_view::npos;
    if (high || (text_.size() > 6 && text_.size() < 12)) return text_.size() < 8 || text_.substr(6, 2) == "\\u";
    const auto value = json::parse('"' + std::exchange(text_, {}) + '"', "text");
    if (!value) return false;
    out += value->get_string();
    return true;
  }
  bool ended(char c) const { return text_.empty() && c == '"'; }

 private:
  std::string text_;  // an escape
};

// {"name": …, "arguments": {…}}, in either order; with an id or a type beside them. The arguments may be a text that holds the object.
class JsonCallReader final : public CallReader {
 public:
  explicit JsonCallReader(AnswerWriter& writer) : writer_(writer) {}
  ReadStep step(char c) override;

 private:
  enum class State { kOpen, kKeyStart, kKey, kColon, kValue, kName, kArguments, kQuoted, kOther, kNext };
  enum class Member { kName, kArguments, kOther };
  bool known_key();
  ReadStep value(char c);
  ReadStep arguments(char c);
  ReadStep quoted_arguments(char c);
  ReadStep next(char c);
  bool begin();

  AnswerWriter& writer_;
  State state_ = State::kOpen;
  Member member_ = Member::kOther;
  std::string key_, name_, early_;
  bool named_ = false, has_arguments_ = false, begun_ = false, whole_ = false;
  JsonScanner scanner_;
  StringDecoder decoder_;
};

ReadStep JsonCallReader::step(char c) {
  if (state_ == State::kArguments) return arguments(c);
  if (state_ == State::kQuoted) return quoted_arguments(c);
  if (state_ == State::kOther) {
    const ReadStep step = scanner_.step(c);
    if (step == ReadStep::kMore || step == ReadStep::kBad) return step;
    state_ = State::kNext;
    return step == ReadStep::kDone ? ReadStep::kMore : this->step(c);
  }
  if (state_ == State::kKey || state_ == State::kName) {
    std::string& text = state_ == State::kKey ? key_ : name_;
    if (c != '"') {
      text += c;
      return c == '\\' || text.size() > kMaxName ? ReadStep::kBad : ReadStep::kMore;
    }
    if (state_ == State::kKey) {
      state_ = State::kColon;
      return known_key() ? ReadStep::kMore : ReadStep::kBad;
    }
    named_ = true;
    state_ = State::kNext;
    if (!writer_.find(name_)) return ReadStep::kBad;
    return !has_arguments_ || begin() ? ReadStep::kMore : ReadStep::kBad;
  }
  if (is_json_space(c)) return ReadStep::kMore;
  switch (state_) {
    case State::kOpen: state_ = State::kKeyStart; return c == '{' ? ReadStep::kMore : ReadStep::kBad;
    case State::kKeyStart:
      key_.clear();
      state_ = State::kKey;
      return c == '"' ? ReadStep::kMore : ReadStep::kBad;
    case State::kColon: state_ = State::kValue; return c == ':' ? ReadStep::kMore : ReadStep::kBad;
    case State::kValue: return value(c);
    default: return next(c);
  }
}

bool JsonCallReader::known_key() {
  static constexpr std::string_view kNames[] = {"name", "tool_name"};
  static constexpr std::string_view kArguments[] = {"arguments", "parameters"};
  static constexpr std::string_view kOthers[] = {"id", "tool_call_id", "call_id", "type", "index"};
  const auto is_in = [&](const auto& list) { return std::ranges::find(list, key_) != std::end(list); };
  member_ = is_in(kNames) ? Member::kName : is_in(kArguments) ? Member::kArguments : Member::kOther;
  if (member_ == Member::kName) return !named_;
  if (member_ == Member::kArguments) return !has_arguments_;
  return is_in(kOthers);
}

ReadStep JsonCallReader::value(char c) {
  if (member_ == Member::kName) {
    state_ = State::kName;
    return c == '"' ? ReadStep::kMore : ReadStep::kBad;
  }
  if (member_ == Member::kOther) {
    scanner_ = JsonScanner();
    state_ = State::kOther;
    return step(c);
  }
  has_arguments_ = true;
  scanner_ = JsonScanner(true);
  state_ = State::kArguments;
  if (c == '"') {
    state_ = State::kQuoted;
    return ReadStep::kMore;
  }
  return c == '{' && (!named_ || begin()) ? arguments(c) : ReadStep::kBad;
}

ReadStep JsonCallReader::quoted_arguments(char c) {
  if (decoder_.ended(c)) {
    state_ = State::kNext;
    const bool nothing = !begun_ && early_.empty();
    if (nothing && !named_) early_ = "{}";
    return whole_ || nothing ? ReadStep::kMore : ReadStep::kBad;
  }
  std::string text;
  if (!decoder_.step(c, text)) return ReadStep::kBad;
  for (const char byte : text) {
    const bool before = !begun_ && early_.empty();
    if ((whole_ || before) && is_json_space(byte)) continue;
    if (before && named_ && (byte != '{' || !begin())) return ReadStep::kBad;
    if (whole_ || arguments(byte) == ReadStep::kBad) return ReadStep::kBad;
    whole_ = state_ == State::kNext;
  }
  state_ = State::kQuoted;
  return ReadStep::kMore;
}

ReadStep JsonCallReader::arguments(char c) {
  const bool in_string = scanner_.in_string();
  const ReadStep step = scanner_.step(c);
  if (step == ReadStep::kBad) return step;
  std::string piece;
  append_json_byte(piece, c, in_string);
  if (begun_) {
    writer_.arguments(piece);
  } else {
    early_ += piece;
    if (early_.size() > kMaxEarlyArguments) return ReadStep::kBad;
  }
  if (step == ReadStep::kDone) state_ = State::kNext;
  return ReadStep::kMore;
}

bool JsonCallReader::begin() {
  if (!writer_.begin_call(name_)) return false;
  begun_ = true;
  writer_.arguments(early_);
  return true;
}

ReadStep JsonCallReader::next(char c) {
  if (c == ',') {
    state_ = State::kKeyStart;
    return ReadStep::kMore;
  }
  if (c != '}' || !named_) return ReadStep::kBad;
  if (!begun_) {  // a function without parameters
    early_ = "{}";
    if (!begin()) return ReadStep::kBad;
  }
  return ReadStep::kDone;
}

// The name up to its mark, then an object.
class NamedJsonReader final : public CallReader {
 public:
  NamedJsonReader(const CallSyntax& syntax, AnswerWriter& writer) : syntax_(syntax), writer_(writer) {}
  ReadStep step(char c) override;

 private:
  ReadStep name(char c);
  bool take_name(std::string_view text);

  const CallSyntax& syntax_;
  AnswerWriter& writer_;
  std::string text_, name_;
  bool named_ = false, begun_ = false;
  JsonScanner scanner_{true};
};

ReadStep NamedJsonReader::step(char c) {
  if (!named_) return name(c);
  if (!begun_ && is_json_space(c)) return ReadStep::kMore;
  const bool in_string = scanner_.in_string();
  const ReadStep step = scanner_.step(c);
  if (step == ReadStep::kBad) return step;
  if (!begun_ && !writer_.begin_call(name_)) return ReadStep::kBad;
  begun_ = true;
  std::string piece;
  append_json_byte(piece, c, in_string);
  writer_.arguments(piece);
  return step;
}

ReadStep NamedJsonReader::name(char c) {
  const std::string_view mark = trimmed(syntax_.name_close);
  if (c == '{' && !mark.ends_with('{')) {  // the mark was left out
    if (!take_name(text_)) return ReadStep::kBad;
    return step(c);
  }
  text_ += c;
  if (text_.ends_with(mark)) {
    return take_name(std::string_view(text_).substr(0, text_.size() - mark.size())) ? ReadStep::kMore : ReadStep::kBad;
  }
  return text_.size() > kMaxName + 128 ? ReadStep::kBad : ReadStep::kMore;
}

bool NamedJsonReader::take_name(std::string_view text) {
  text = trimmed(text);
  if (!syntax_.name_prefix.empty() && text.starts_with(syntax_.name_prefix)) text.remove_prefix(syntax_.name_prefix.size());
  if (!syntax_.id_mark.empty()) text = trimmed(text.substr(0, text.find(syntax_.id_mark)));
  name_ = text;
  named_ = true;
  return writer_.find(name_) != nullptr;
}

// name(key=value, …)
class PythonCallReader final : public CallReader {
 public:
  explicit PythonCallReader(AnswerWriter& writer) : writer_(writer) {}
  ReadStep step(char c) override;
  void finish() override {
    std::string out;
    if (state_ == State::kValue && value_.finish(out)) writer_.arguments(out);
  }

 private:
  enum class State { kName, kKeyStart, kKey, kEquals, kValue, kNext };
  ReadStep key_start(char c);
  ReadStep key_end(char c);
  ReadStep value(char c);

  AnswerWriter& writer_;
  State state_ = State::kName;
  std::string name_;
  std::vector<std::string> keys_;
  PythonScanner value_;
};

ReadStep PythonCallReader::step(char c) {
  switch (state_) {
    case State::kName:
      if (name_.empty() && is_json_space(c)) return ReadStep::kMore;
      if (c == '(') {
        state_ = State::kKeyStart;
        if (!writer_.begin_call(name_)) return ReadStep::kBad;
        writer_.arguments("{");
        return ReadStep::kMore;
      }
      name_ += c;
      return is_name_character(c) && name_.size() <= kMaxName ? ReadStep::kMore : ReadStep::kBad;
    case State::kKey:
      if (is_name_character(c)) {
        keys_.back() += c;
        return keys_.back().size() <= kMaxName ? ReadStep::kMore : ReadStep::kBad;
      }
      state_ = State::kEquals;
      return key_end(c);
    case State::kEquals: return key_end(c);
    case State::kValue: return value(c);
    default: return key_start(c);
  }
}

ReadStep PythonCallReader::key_start(char c) {
  if (is_json_space(c)) return ReadStep::kMore;
  if (c == ')') {
    writer_.arguments("}");
    return ReadStep::kDone;
  }
  if (state_ == State::kNext) {
    state_ = State::kKeyStart;
    return c == ',' ? ReadStep::kMore : ReadStep::kBad;
  }
  keys_.emplace_back(1, c);
  state_ = State::kKey;
  return is_name_character(c) ? ReadStep::kMore : ReadStep::kBad;
}

ReadStep PythonCallReader::key_end(char c) {
  if (is_json_space(c)) return ReadStep::kMore;
  if (c != '=' || std::ranges::count(keys_, keys_.back()) > 1) return ReadStep::kBad;
  std::string text = keys_.size() > 1 ? ", \"" : "\"";
  append_json_escaped(text, keys_.back());
  writer_.arguments(text + "\": ");
  value_ = PythonScanner();
  state_ = State::kValue;
  return ReadStep::kMore;
}

ReadStep PythonCallReader::value(char c) {
  std::string out;
  const ReadStep step = value_.step(c, out);
  if (!out.empty()) writer_.arguments(out);
  if (step == ReadStep::kDone || step == ReadStep::kDoneBefore) state_ = State::kNext;
  if (step == ReadStep::kDoneBefore) return key_start(c);
  return step == ReadStep::kBad ? step : ReadStep::kMore;
}

}  // namespace

std::unique_ptr<CallReader> make_call_reader(const CallSyntax& syntax, AnswerWriter& writer, bool opened) {
  switch (syntax.body) {
    case CallBody::kJson: return std::make_unique<JsonCallReader>(writer);
    case CallBody::kNamedJson: return std::make_unique<NamedJsonReader>(syntax, writer);
    case CallBody::kTagged: return make_tag_reader(syntax, writer, opened);
    case CallBody::kPython: return std::make_unique<PythonCallReader>(writer);
  }
  return nullptr;
}

bool begins_body(const CallSyntax& syntax, char c) {
  if (syntax.body == CallBody::kJson) return c == '{';
  if (syntax.body == CallBody::kTagged && !syntax.tags.function_open.empty()) return c == syntax.tags.function_open[0];
  return is_name_character(c);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

int MarkSet::step(char c) {
  if (part_.empty() && is_json_space(c)) return kWaiting;
  part_ += c;
  bool prefix = false;
  for (const auto& [mark, id] : marks_) {
    if (mark == part_) {
      part_.clear();
      return id;
    }
    prefix |= mark.starts_with(part_);
  }
  return prefix ? kWaiting : kNone;
}

}  // namespace weir::api
