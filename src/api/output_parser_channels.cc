// SPDX-License-Identifier: Apache-2.0
// The parser of answers that are several messages, each with a header that tells where it belongs: OpenAI's Harmony.
#include <algorithm>

#include "api/output_parser_calls.h"
#include "api/output_parser_start.h"

namespace weir::api {
namespace {

constexpr std::size_t kMaxHeader = 512;

class ChannelParser final : public OutputParser {
 public:
  ChannelParser(const OutputFormat& format, const GenerationRequest& request, std::string_view start, std::string id_seed);

  ParsedDelta push(std::string_view text) override {
    for (const char c : text) put(c);
    return writer_.take();
  }
  ParsedDelta finish() override;
  bool called_tools() const override { return writer_.calls() > 0; }
  bool in_reasoning() const override { return state_ == State::kReasoning; }

 private:
  enum class State { kHeader, kReasoning, kContent, kCall, kArguments, kCalled };
  void put(char c);
  void put_header(char c);
  bool may_be_header() const;
  void begin_message();
  std::string_view word_after(std::string_view mark) const;
  void put_text(char c);
  void end_message(std::string_view mark);
  void put_call(char c);
  void put_arguments(char c);
  void write(std::string_view text);

  const ChannelMarks& marks_;
  AnswerWriter writer_;
  State state_ = State::kHeader;
  std::string header_;  // with what the prompt has of it
  std::string raw_;     // what of it came as text, and is content if it is no header
  std::string part_;    // perhaps a mark
  std::string function_;
  JsonScanner scanner_{true};
};

ChannelParser::ChannelParser(const OutputFormat& format, const GenerationRequest& request, std::string_view start, std::string id_seed)
    : marks_(format.channels), writer_(request, format.ids, std::move(id_seed)) {
  const std::size_t message = start.find(marks_.message);
  if (start.size() < kMaxHeader || message < kMaxHeader) header_ = start.substr(0, message);
  if (message != start.npos) begin_message();
}

void ChannelParser::put(char c) {
  switch (state_) {
    case State::kHeader: return put_header(c);
    case State::kCall: return put_call(c);
    case State::kArguments: return put_arguments(c);
    default: return put_text(c);
  }
}

void ChannelParser::put_header(char c) {
  header_ += c;
  raw_ += c;
  if (header_.ends_with(marks_.message)) return begin_message();
  if (may_be_header() && raw_.size() <= kMaxHeader) return;
  // Text without a header.
  state_ = State::kContent;
  header_.clear();
  for (const char byte : std::exchange(raw_, {})) put_text(byte);
}

bool ChannelParser::may_be_header() const {
  if (header_.size() > raw_.size()) return true;  // begun in the prompt
  std::string_view text = raw_;
  while (!text.empty() && is_json_space(text[0])) text.remove_prefix(1);
  const auto fits = [&](std::string_view mark) { return mark.starts_with(text) || text.starts_with(mark); };
  return fits(marks_.start) || fits(marks_.channel) || fits(marks_.constrain) || fits(marks_.message) || fits("to=");
}

std::string_view ChannelParser::word_after(std::string_view mark) const {
  const std::size_t at = header_.find(mark);
  if (at == header_.npos) return {};
  std::string_view word = std::string_view(header_).substr(at + mark.size());
  return word.substr(0, word.find_first_of(" \t\r\n<"));
}

void ChannelParser::begin_message() {
  const std::string_view recipient = word_after("to="), channel = word_after(marks_.channel);
  state_ = channel == marks_.reasoning ? State::kReasoning : State::kContent;
  if (!recipient.empty()) {
    function_ = recipient.substr(recipient.starts_with(marks_.recipient) ? marks_.recipient.size() : 0);
    state_ = writer_.find(function_) ? State::kCall : State::kContent;
    scanner_ = JsonScanner(true);
  }
  const bool shown = (!recipient.empty() && state_ == State::kContent) || (state_ == State::kReasoning && !writer_.separates_reasoning());
  if (shown) write(raw_);  // a message to somebody unknown is content as it stands
  if (state_ != State::kCall) raw_.clear();
  header_.clear();
}

void ChannelParser::write(std::string_view text) { state_ == State::kReasoning ? writer_.reasoning(text) : writer_.content(text); }

void ChannelParser::put_text(char c) {
  if (state_ == State::kCalled && part_.empty()) {
    if (is_json_space(c)) return;
  }
  part_ += c;
  while (!part_.empty()) {
    bool prefix = false;
    for (const std::string_view mark : {marks_.end, marks_.call, marks_.last, marks_.start, marks_.channel}) {
      if (mark == part_) return end_message(mark);
      prefix |= mark.starts_with(part_);
    }
    if (prefix) return;
    if (state_ == State::kCalled) state_ = State::kContent;
    write(std::string_view(part_).substr(0, 1));
    part_.erase(0, 1);
  }
}

void ChannelParser::end_message(std::string_view mark) {
  part_.clear();
  const bool begins_next = mark == marks_.start || mark == marks_.channel;
  if (state_ == State::kReasoning && !writer_.separates_reasoning() && !begins_next) write(mark);
  state_ = State::kHeader;
  raw_ = begins_next ? std::string(mark) : std::string();
  header_ = raw_;
}

void ChannelParser::put_call(char c) {
  raw_ += c;
  if (is_json_space(c) && raw_.size() <= 2 * kMaxHeader) return;
  if (c == '{' && writer_.begin_call(function_)) {
    raw_.clear();
    state_ = State::kArguments;
    return put_arguments(c);
  }
  raw_.pop_back();
  if (c == '<' && writer_.begin_call(function_)) {  // nothing is handed to the function
    writer_.arguments("{}");
    state_ = State::kCalled;
  } else {
    state_ = State::kContent;
    write(raw_);
  }
  raw_.clear();
  put_text(c);
}

void ChannelParser::put_arguments(char c) {
  const bool in_string = scanner_.in_string();
  const ReadStep step = scanner_.step(c);
  if (step == ReadStep::kBad) {
    state_ = State::kContent;
    return put_text(c);
  }
  std::string piece;
  append_json_byte(piece, c, in_string);
  writer_.arguments(piece);
  if (step == ReadStep::kDone) state_ = State::kCalled;
}

ParsedDelta ChannelParser::finish() {
  if (state_ == State::kCall && writer_.begin_call(function_)) {
    writer_.arguments("{}");
  } else if (state_ == State::kCalled) {
    part_.clear();
  } else {
    if (state_ == State::kHeader || state_ == State::kCall) state_ = State::kContent;
    write(raw_ + part_);
  }
  raw_.clear();
  part_.clear();
  return writer_.take();
}

}  // namespace

std::unique_ptr<OutputParser> make_channel_parser(const OutputFormat& format, const GenerationRequest& request, std::string_view start,
                                                  std::string id_seed) {
  return std::make_unique<ChannelParser>(format, request, start, std::move(id_seed));
}

}  // namespace weir::api
