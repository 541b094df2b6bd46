// SPDX-License-Identifier: Apache-2.0
// The parser of formats whose reasoning and calls stand between marks. A machine over bytes: each byte has one meaning, so pieces can be
// cut anywhere. What may still become a mark, or a call whose function is not known yet, is held back and becomes content if it does not.
#include <algorithm>

#include "api/output_parser_calls.h"
#include "api/output_parser_start.h"
#include "base/check.h"

namespace weir::api {
namespace {

constexpr std::size_t kMaxSpace = 256;  // white space held back because a mark may follow

class MarkedParser final : public OutputParser {
 public:
  MarkedParser(const OutputFormat& format, const GenerationRequest& request, AnswerStart start, std::string id_seed);

  ParsedDelta push(std::string_view text) override {
    for (const char c : text) put(c);
    return writer_.take();
  }
  ParsedDelta finish() override;
  bool called_tools() const override { return writer_.calls() > 0; }
  bool in_reasoning() const override { return state_ == State::kReasoning; }

 private:
  enum class State { kText, kReasoning, kCall };
  enum class MarkKind { kReasoningOpen, kReasoningClose, kSilent, kSection, kCall, kBody };
  struct Mark {
    std::string_view text;
    MarkKind kind;
    bool operator==(const Mark&) const = default;
  };
  enum class Stage { kChoose, kMark, kBody };
  enum Awaited { kList, kOpen, kBodyOpen, kClose, kSeparator, kListClose, kSectionClose };

  void put(char c);
  // Text and reasoning.
  void put_text(char c);
  bool offered(const Mark& mark) const;
  void take_mark(Mark mark);
  void write(char c);
  void write_space();
  void write_raw(std::string_view text);
  // Calls.
  void begin_block(MarkKind kind, std::string_view mark);
  void begin_bare(const CallSyntax& syntax, char c);
  void put_call(char c);
  void choose(char c);
  bool may_begin(const CallSyntax& syntax, char c) const;
  void put_mark(char c);
  void put_body(char c);
  void enter(Awaited passed);
  void await(std::initializer_list<std::pair<std::string_view, Awaited>> marks);
  void begin_body(bool opened);
  void after_call();
  void end_block();
  void fail(std::size_t unread);

  const OutputFormat& format_;
  AnswerWriter writer_;
  State state_ = State::kText;
  std::vector<Mark> marks_;
  std::string part_;    // perhaps a mark
  std::string space_;   // white space that belongs to a mark if one follows
  bool trims_ = false;  // white space belongs to the mark before
  bool at_start_ = true, may_reason_, reasoning_begins_ = false;

  // The block of calls being read.
  const CallSyntax* syntax_ = nullptr;
  std::string_view opening_;
  Stage stage_ = Stage::kChoose;
  MarkSet awaited_;
  std::unique_ptr<CallReader> reader_;
  std::int32_t calls_before_ = 0;                                // the body being read
  std::string held_;                                             // since the last byte that is surely a call's
  bool in_section_ = false, in_list_ = false, between_ = false;  // between calls: one has ended
};

MarkedParser::MarkedParser(const OutputFormat& format, const GenerationRequest& request, AnswerStart start, std::string id_seed)
    : format_(format), writer_(request, format.ids, std::move(id_seed)), may_reason_(start == AnswerStart::kMayReason) {
  const auto add = [&](std::string_view text, MarkKind kind) {
    const Mark mark{trimmed(text), kind};
    if (!mark.text.empty() && std::ranges::find(marks_, mark) == marks_.end()) marks_.push_back(mark);
  };
  add(format.reasoning.open, MarkKind::kReasoningOpen);
  add(format.reasoning.close, MarkKind::kReasoningClose);
  for (const std::string_view mark : format.silent) add(mark, MarkKind::kSilent);
  if (writer_.wants_calls()) {
    for (const CallSyntax& syntax : format.calls) {
      add(syntax.section_open, MarkKind::kSection);
      // A brace or a bracket alone begins no call.
      if (trimmed(syntax.open).size() > 2) add(syntax.open, MarkKind::kCall);
      add(syntax.tags.function_open, MarkKind::kBody);
    }
  }
  if (start == AnswerStart::kInReasoning) {
    state_ = State::kReasoning;
    reasoning_begins_ = true;
    trims_ = writer_.separates_reasoning();
  }
}

void MarkedParser::put(char c) {
  if (state_ == State::kCall) return put_call(c);
  if (state_ == State::kText && at_start_ && part_.empty() && writer_.wants_calls()) {
    for (const CallSyntax& syntax : format_.calls) {
      if (syntax.bare && may_begin(syntax, c)) return begin_bare(syntax, c);
    }
  }
  put_text(c);
}

bool MarkedParser::offered(const Mark& mark) const {
  switch (mark.kind) {
    case MarkKind::kReasoningOpen: return state_ == State::kReasoning ? reasoning_begins_ : may_reason_;
    case MarkKind::kReasoningClose: return state_ == State::kReasoning;
    default: return state_ == State::kText;
  }
}

void MarkedParser::put_text(char c) {
  part_ += c;
  while (!part_.empty()) {
    bool prefix = false;
    for (const Mark& mark : marks_) {
      if (!offered(mark)) continue;
      if (mark.text == part_) return take_mark(mark);
      prefix |= mark.text.starts_with(part_);
    }
    if (prefix) return;
    const char first = part_[0];
    part_.erase(0, 1);
    write(first);
  }
}

void MarkedParser::take_mark(Mark mark) {
  part_.clear();
  const bool is_reasoning = mark.kind == MarkKind::kReasoningOpen || mark.kind == MarkKind::kReasoningClose;
  if (!is_reasoning && mark.kind != MarkKind::kSilent) return begin_block(mark.kind, mark.text);
  if (is_reasoning && !writer_.separates_reasoning()) {
    write_space();
    writer_.content(mark.text);
    trims_ = false;
  } else {
    space_.clear();
    trims_ = true;
  }
  if (!is_reasoning) return;
  reasoning_begins_ = may_reason_ = false;
  state_ = mark.kind == MarkKind::kReasoningOpen ? State::kReasoning : State::kText;
  at_start_ = true;
}

void MarkedParser::write(char c) {
  if (is_json_space(c)) {
    if (trims_) return;
    space_ += c;
    if (space_.size() >= kMaxSpace) write_space();
    return;
  }
  write_space();
  write_raw(std::string_view(&c, 1));
}

void MarkedParser::write_space() {
  if (!space_.empty()) state_ == State::kReasoning ? writer_.reasoning(space_) : writer_.content(space_);
  space_.clear();
}

void MarkedParser::write_raw(std::string_view text) {
  if (text.empty()) return;
  state_ == State::kReasoning ? writer_.reasoning(text) : writer_.content(text);
  trims_ = at_start_ = may_reason_ = reasoning_begins_ = false;
}

void MarkedParser::begin_block(MarkKind kind, std::string_view mark) {
  state_ = State::kCall;
  held_ = std::exchange(space_, {}) + std::string(mark);
  opening_ = mark;
  in_section_ = in_list_ = between_ = false;
  stage_ = Stage::kChoose;
  syntax_ = nullptr;
  if (kind != MarkKind::kBody) return;
  for (const CallSyntax& syntax : format_.calls) {
    if (trimmed(syntax.tags.function_open) == mark && !syntax_) syntax_ = &syntax;
  }
  begin_body(true);
}

void MarkedParser::begin_bare(const CallSyntax& syntax, char c) {
  state_ = State::kCall;
  held_ = std::exchange(space_, {});
  in_section_ = in_list_ = between_ = false;
  syntax_ = &syntax;
  enter(kSectionClose);
  put_call(c);
}

void MarkedParser::put_call(char c) {
  // White space around marks between calls is nobody's.
  if (between_ && stage_ == Stage::kMark && awaited_.read() == 0 && is_json_space(c)) return;
  held_ += c;
  switch (stage_) {
    case Stage::kChoose: return choose(c);
    case Stage::kMark: return put_mark(c);
    case Stage::kBody: return put_body(c);
  }
}

// Several ways of writing calls may begin with the same mark: what follows tells.
void MarkedParser::choose(char c) {
  if (is_json_space(c)) {
    if (held_.size() > kMaxSpace) fail(1);
    return;
  }
  for (const CallSyntax& syntax : format_.calls) {
    const bool in_call = trimmed(syntax.open) == opening_ && begins_body(syntax, c);
    in_section_ = trimmed(syntax.section_open) == opening_ && may_begin(syntax, c);
    if (!in_call && !in_section_) continue;
    syntax_ = &syntax;
    enter(in_call ? kOpen : kSectionClose);
    return stage_ == Stage::kMark ? put_mark(c) : put_body(c);
  }
  fail(1);
}

bool MarkedParser::may_begin(const CallSyntax& syntax, char c) const {
  for (const std::string_view mark : {trimmed(syntax.list_open), trimmed(syntax.open)}) {
    if (!mark.empty()) return mark[0] == c;
  }
  return begins_body(syntax, c);
}

// What comes after the mark just read; kSectionClose stands for the section's beginning.
void MarkedParser::enter(Awaited passed) {
  const CallSyntax& s = *syntax_;
  if (passed == kSectionClose && !trimmed(s.list_open).empty()) return await({{s.list_open, kList}});
  if (passed == kList) in_list_ = true;
  if (passed != kOpen && !trimmed(s.open).empty()) return await({{s.open, kOpen}});
  begin_body(false);
}

void MarkedParser::await(std::initializer_list<std::pair<std::string_view, Awaited>> marks) {
  awaited_.clear();
  for (const auto& [text, id] : marks) awaited_.add(text, id);
  stage_ = Stage::kMark;
}

void MarkedParser::begin_body(bool opened) {
  reader_ = make_call_reader(*syntax_, writer_, opened);
  stage_ = Stage::kBody;
  between_ = false;
  calls_before_ = writer_.calls();
}

void MarkedParser::put_body(char c) {
  const std::uint64_t before = writer_.changes();
  const ReadStep step = reader_->step(c);
  if (writer_.changes() != before) {
    held_.clear();
    at_start_ = may_reason_ = false;
  }
  if (step == ReadStep::kBad) {
    // Had the byte changed something and been wrong, it would be lost.
    if (held_.empty()) held_ += c;
    return fail(reader_->unread());
  }
  if (step != ReadStep::kDone) return;
  held_.clear();
  reader_.reset();
  between_ = true;
  const bool own_end = syntax_->body == CallBody::kTagged && syntax_->tags.function_close.empty();
  if (own_end || trimmed(syntax_->close).empty()) return after_call();
  await({{syntax_->close, kClose}});
}

void MarkedParser::after_call() {
  const CallSyntax& s = *syntax_;
  const bool more = in_list_ || in_section_ || s.bare || !trimmed(s.separator).empty() || !trimmed(s.section_close).empty();
  if (!more) return end_block();
  await({{s.separator, kSeparator}, {s.open, kOpen}, {s.tags.function_open, kBodyOpen}});
  if (in_list_) awaited_.add(s.list_close, kListClose);
  if (!in_list_) awaited_.add(s.section_close, kSectionClose);
}

void MarkedParser::put_mark(char c) {
  const bool bodies_follow = between_ && trimmed(syntax_->open).empty() && syntax_->tags.function_open.empty();
  if (bodies_follow && awaited_.read() == 0 && begins_body(*syntax_, c)) {
    begin_body(false);
    return put_body(c);
  }
  const int mark = awaited_.step(c);
  if (mark == MarkSet::kWaiting) return;
  if (mark == MarkSet::kNone) return fail(awaited_.read());
  switch (mark) {
    case kBodyOpen: return begin_body(true);
    case kClose: held_.clear(); return after_call();
    case kListClose:
      held_.clear();
      in_list_ = false;
      if (!in_section_ || trimmed(syntax_->section_close).empty()) return end_block();
      return await({{syntax_->section_close, kSectionClose}});
    case kSectionClose: return end_block();
    case kSeparator: between_ = false; return enter(kSeparator);
    default: between_ = between_ && mark != kOpen; return enter(static_cast<Awaited>(mark));
  }
}

void MarkedParser::end_block() {
  state_ = State::kText;
  held_.clear();
  reader_.reset();
  trims_ = true;
}

// What has not become a call is content. Its last bytes may begin something else.
void MarkedParser::fail(std::size_t unread) {
  const std::string held = std::exchange(held_, {});
  const std::size_t kept = held.size() - std::min(unread, held.size());
  const bool was_between = between_;
  end_block();
  trims_ = was_between;
  write_raw(std::string_view(held).substr(0, kept));
  at_start_ = may_reason_ = false;
  for (const char c : std::string_view(held).substr(kept)) put(c);
}

ParsedDelta MarkedParser::finish() {
  if (state_ == State::kCall) {
    // Of a call that has begun, a mark or a name that is cut is of no use.
    const bool ours = between_ || (reader_ && writer_.calls() > calls_before_);
    if (reader_) reader_->finish();
    const std::string held = std::exchange(held_, {});
    end_block();
    if (!ours) write_raw(held);
    return writer_.take();
  }
  for (const char c : std::exchange(part_, {})) write(c);
  write_space();
  return writer_.take();
}

}  // namespace

std::unique_ptr<OutputParser> make_marked_parser(const OutputFormat& format, const GenerationRequest& request, AnswerStart start,
                                                 std::string id_seed) {
  return std::make_unique<MarkedParser>(format, request, start, std::move(id_seed));
}

}  // namespace weir::api
